//! Dry runs of a managed server, word for word.
use std::collections::BTreeMap;

use pgdyno_exec::account::Account;
use pgdyno_model::experiment::Connect;
use pgdyno_model::facts::BuildSource;
use pgdyno_postgres::{ClusterSpec, Install};
use pgdyno_test_support::assert_contains;

fn spec() -> ClusterSpec {
    ClusterSpec {
        is_clone: false,
        install: Install {
            bindir: "/usr/lib/postgresql/17/bin".into(),
            version: "17.11".into(),
            major: 17,
            source: BuildSource::Found {
                bindir: "/usr/lib/postgresql/17/bin".into(),
                how: "Debian".into(),
            },
        },
        directory: "/mnt/nvme 1/pgdyno-0a1b2c3d".into(),
        wal: None,
        tablespaces: Vec::new(),
        initdb: vec!["--wal-segsize=64".into(), "--data-checksums".into()],
        settings: BTreeMap::from([("Shared_Buffers".into(), "1GB".into())]),
        connect: Connect::Socket,
        listen: None,
        account: Account { name: "postgres".into(), uid: 4_000_000_000, gid: 104 },
        socket_base: "/run".into(),
    }
}

fn shown(steps: &[pgdyno_exec::Step]) -> String {
    steps.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_step_is_shown_in_order() {
    insta::assert_snapshot!(shown(&spec().steps()));
    insta::assert_snapshot!(shown(&spec().take_down_steps()), @r"
    stop the server in '/mnt/nvme 1/pgdyno-0a1b2c3d/data'
    remove /run/pgdyno-0a1b2c3d and all below it, if it bears pgdyno's marker
    remove '/mnt/nvme 1/pgdyno-0a1b2c3d' and all below it, if it bears pgdyno's marker
    ");
}

#[test]
fn over_tcp_it_listens_on_this_machine_alone() {
    let all = shown(&ClusterSpec { connect: Connect::Tcp, ..spec() }.steps());
    assert_contains(&all, &["listen_addresses = '127.0.0.1'\n", "port = '(a free one)'"]);
}

#[test]
fn for_generators_on_other_hosts_it_listens_on_one_address_with_tls() {
    let listening = ClusterSpec { listen: Some("10.0.0.1".parse().unwrap()), ..spec() };
    let all = shown(&listening.steps());
    assert_contains(
        &all,
        &[
            "listen_addresses = '10.0.0.1'",
            "port = '(a free one)'",
            "ssl = 'on'",
            "hba_file = '/mnt/nvme 1/pgdyno-0a1b2c3d/pg_hba.conf'",
            "write '/mnt/nvme 1/pgdyno-0a1b2c3d/server.key' (mode 0600, of postgres):\n    \
             (a private key)",
            "hostssl all postgres 10.0.0.1/32 scram-sha-256",
        ],
    );
}

#[test]
fn the_users_locale_replaces_pgdynos() {
    let mut spec = spec();
    spec.initdb = vec!["--locale".into(), "de_DE.UTF-8".into(), "-E".into(), "LATIN1".into()];
    let all = shown(&spec.steps());
    let initdb = all.lines().find(|l| l.starts_with("run as")).unwrap();
    assert!(initdb.ends_with("--no-instructions --locale de_DE.UTF-8 -E LATIN1"), "{initdb}");
}
