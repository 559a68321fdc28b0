//! Telemetry and a DSN's server, on a live one.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::time::{Duration, Instant};

use common::Place;
use pgdyno_host::postgres::{Cluster, Given, GivenError};
use pgdyno_host::telemetry::{Sampler, Watched, probes};
use pgdyno_model::experiment::Connect;
use pgdyno_model::facts::BuildSource;
use pgdyno_model::target::{Address, Secret};
use pgdyno_model::telemetry::{Kind, Table};

fn values(table: &Table, column: &str) -> Vec<f64> {
    let index = table.columns.iter().position(|c| c.name == column).unwrap();
    table.samples.iter().filter_map(|s| s.values[index]).collect()
}

fn watch(cluster: &Cluster) -> Vec<Table> {
    let mut load = cluster.control("load").unwrap();
    let watched = Watched::new(Some(cluster.data()), &cluster.control_target("postgres"), "load");
    let sampler = Sampler::start(probes(&watched), Duration::from_millis(50));
    let opened = Instant::now();
    // A session tells its counts to the others about once a second, and when it ends.
    while opened.elapsed() < Duration::from_millis(1500) {
        load.batch_execute("INSERT INTO t VALUES (1)").unwrap();
    }
    drop(load);
    let counted = || -> i64 {
        let mut control = cluster.control("postgres").unwrap();
        let query = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'load'";
        control.query_one(query, &[]).unwrap().get(0)
    };
    let until = Instant::now() + Duration::from_secs(30);
    while counted() < 3 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    sampler.finish(opened, Instant::now())
}

#[test]
fn counters_only_grow_and_the_loads_commits_are_among_them() {
    for major in [None, Some(18)] {
        let place = Place::new();
        let mut spec = place.spec();
        if let Some(major) = major {
            spec.install = common::fetched(major);
        }
        let mut cluster = Cluster::create(spec, &place.journal, &common::RUN).unwrap();
        cluster.start(&common::RUN).unwrap();
        cluster.control("postgres").unwrap().batch_execute("CREATE DATABASE load").unwrap();
        cluster.control("load").unwrap().batch_execute("CREATE TABLE t (n int)").unwrap();
        let tables = watch(&cluster);
        let table = |name: &str| tables.iter().find(|t| t.probe == name);
        for table in &tables {
            assert!(table.samples.iter().all(|s| s.values.len() == table.columns.len()));
            assert!(table.samples.windows(2).all(|w| w[0].t_s < w[1].t_s));
            for column in table.columns.iter().filter(|c| c.kind == Kind::Counter) {
                let grown = values(table, &column.name);
                // The kernel may take back idle and iowait time that it had counted on another CPU.
                let steady =
                    grown.windows(2).all(|w| w[0] <= w[1]) || ["idle", "iowait"].contains(&&*column.name);
                assert!(steady, "{} {}: {grown:?}", table.probe, column.name);
            }
        }
        let commits = values(table("pg_stat_database").unwrap(), "xact_commit");
        assert!(commits.last().unwrap() - commits[0] >= 2.0, "{commits:?}");
        assert!(!values(table("pg_stat_wal").unwrap(), "wal_bytes").is_empty());
        let cpu = values(table("cpu").unwrap(), "user");
        assert!(cpu.last().unwrap() > &0.0);
        assert!(values(table("memory").unwrap(), "Dirty").iter().all(|v| *v >= 0.0));
        let disk = table("diskstats").unwrap();
        assert!(disk.unavailable.is_some() || !disk.samples.is_empty());
        assert_eq!(table("pg_stat_checkpointer").is_some(), cluster.spec().install.major >= 17);
    }
}

#[test]
fn a_server_that_dies_ends_its_own_probes_only() {
    let place = Place::new();
    let mut cluster = place.cluster();
    cluster.start(&common::RUN).unwrap();
    let watched = Watched::new(Some(cluster.data()), &cluster.control_target("postgres"), "postgres");
    let sampler = Sampler::start(probes(&watched), Duration::from_millis(20));
    let opened = Instant::now();
    std::thread::sleep(Duration::from_millis(100));
    cluster.stop(pgdyno_host::postgres::StopMode::Immediate);
    std::thread::sleep(Duration::from_millis(100));
    let tables = sampler.finish(opened, Instant::now());
    let unavailable = |name: &str| tables.iter().find(|t| t.probe == name).unwrap().unavailable.clone();
    assert!(unavailable("pg_stat_wal").is_some());
    assert_eq!(unavailable("cpu"), None);
    // And where there is none to begin with, the tables say why.
    let watched = Watched::new(None, &cluster.control_target("postgres"), "postgres");
    let tables = Sampler::start(probes(&watched), Duration::from_millis(20)).finish(opened, Instant::now());
    let wal = tables.iter().find(|t| t.probe == "pg_stat_wal").unwrap();
    assert!(wal.unavailable.as_ref().unwrap().contains("cannot connect"), "{wal:?}");
}

#[test]
fn a_given_server_is_driven_by_uri_and_by_keywords_without_showing_its_password() {
    let place = Place::new();
    let mut spec = place.spec();
    spec.connect = Connect::Tcp;
    let mut cluster = Cluster::create(spec, &place.journal, &common::RUN).unwrap();
    cluster.start(&common::RUN).unwrap();
    let target = cluster.target("postgres");
    let Address::Tcp { host, port } = &target.address else { panic!("not TCP") };
    let password = target.password.as_ref().unwrap().reveal();
    for dsn in [
        format!("postgresql://postgres:{password}@{host}:{port}/postgres"),
        format!("host={host} port={port} user=postgres password={password} dbname=postgres"),
    ] {
        let given = Given::connect(&Secret::new(dsn)).unwrap();
        assert_eq!(given.target().password.as_ref().map(Secret::reveal), Some(password));
        let facts = given.facts().unwrap();
        assert_eq!(facts.build, BuildSource::Given { address: format!("{host}:{port}") });
        assert_eq!(given.data_directory(), Some(cluster.data()));
        assert!(!format!("{given:?} {facts:?}").contains(password));
    }
    let wrong = format!("postgresql://postgres:x{password}@{host}:{port}/postgres");
    let error = Given::connect(&Secret::new(wrong)).unwrap_err();
    assert!(matches!(error, GivenError::Refused { .. }) && error.help().is_some());
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains(password) && shown.contains("password authentication failed"), "{shown}");
    let nowhere = Given::connect(&Secret::new("postgresql://u:pw@127.0.0.1:1/db".into())).unwrap_err();
    assert!(nowhere.to_string().contains("refused"), "{nowhere}");
}
