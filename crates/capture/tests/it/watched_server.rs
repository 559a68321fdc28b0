//! A server with `pg_stat_statements`, and a load that runs on it.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use pgdyno_capture::ConnectOptions;
use pgdyno_engine::script::{Script, WeightedScript};
use pgdyno_engine::{LoadSpec, run_load};
use pgdyno_model::Measurement;
use pgdyno_model::target::{Address, Target};
use pgdyno_postgres::Cluster;
use pgdyno_test_support::load::{TPCB, TPCB_TABLES, lasting, spec, unwatched};
use pgdyno_test_support::{RUN, Scratch, Session, create_cluster, install};

/// Tables with values that no file may have, and what only PostgreSQL itself could make of them.
const SECRETS: &str = "
    CREATE TABLE people (
        id serial PRIMARY KEY, name text NOT NULL DEFAULT 'canary', code int UNIQUE,
        born date, note jsonb, seen timestamptz DEFAULT now(), CHECK (name <> 'canary-check'));
    CREATE INDEX people_name ON people (name) WHERE name <> 'canary-predicate';
    INSERT INTO people (name, code, born, note)
        SELECT 'canary ' || n, 987654000 + n, date '1987-06-05' + n % 9,
               jsonb_build_object('canary', n)
        FROM generate_series(1, 500) n;
    COMMENT ON TABLE people IS 'canary';
    CREATE FUNCTION today() RETURNS date LANGUAGE sql AS 'SELECT current_date';
    CREATE TABLE visits (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(), person int REFERENCES people,
        at date DEFAULT today());
    CREATE INDEX visits_at ON visits (at);
    INSERT INTO visits (person, at) SELECT n, '1987-06-09' FROM generate_series(1, 300) n;
    CREATE TYPE mood AS ENUM ('canary-sad', 'canary-ok');
    CREATE TABLE moods (id int PRIMARY KEY, mood mood);
    INSERT INTO moods VALUES (1, 'canary-ok');
    CREATE FUNCTION greeting(name text) RETURNS text LANGUAGE sql AS $$ SELECT 'canary ' || name $$;
    ANALYZE";

/// Statements about them.
const SECRET_STATEMENTS: &str = "\
\\set code random(987654001, 987654500)
SELECT /* canary */ name, born FROM people WHERE code = :code;
SELECT count(*) FROM people WHERE name = 'canary 7' AND born BETWEEN '1987-06-05' AND '1987-06-07';
INSERT INTO people (name, born) VALUES ('canary new', '1987-06-09');
SELECT at FROM visits WHERE id = '98765000-0000-4000-8000-000000000001';
INSERT INTO visits (id, person) VALUES (gen_random_uuid(), 7);
SELECT greeting('canary');
SELECT id FROM moods WHERE mood = 'canary-ok';
SET application_name = 'canary';
";

/// Server of a test's own.
pub struct WatchedServer {
    cluster: Cluster,
    #[expect(dead_code, reason = "its drop removes the folder, after the cluster's")]
    home: Scratch,
}

impl WatchedServer {
    /// Starts a server with the databases `original`, with tables, and `twin`, without.
    pub fn start(major: Option<u32>) -> Self {
        let (mut cluster, home) = create_cluster(install(major));
        fs::write(cluster.data().join("pg_hba.conf"), "local all all trust\n").unwrap();
        let preload = ("shared_preload_libraries".to_owned(), "pg_stat_statements".to_owned());
        cluster.apply(&BTreeMap::from([preload]), &RUN).unwrap();
        let server = Self { cluster, home };
        for database in ["original", "twin"] {
            server.ask("postgres", &format!("CREATE DATABASE {database}"));
            server.ask(database, "CREATE EXTENSION pg_stat_statements");
        }
        server.ask("original", TPCB_TABLES);
        server.ask("original", SECRETS);
        server.ask(
            "original",
            "CREATE ROLE reader LOGIN; ALTER ROLE reader SET default_transaction_read_only = on;
             GRANT pg_read_all_stats TO reader;
             GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
             CREATE ROLE stranger LOGIN",
        );
        server
    }

    pub fn ask(&self, database: &str, sql: &str) {
        Session::new(&self.target(database)).ask(sql);
    }

    pub fn target(&self, database: &str) -> Target {
        self.cluster.control_target(database)
    }

    /// Returns connection options for a role; none: the superuser.
    pub fn options(&self, database: &str, role: Option<&str>) -> ConnectOptions {
        let target = self.target(database);
        let Address::Unix { directory, port } = &target.address else { panic!("{target:?}") };
        let dsn = format!(
            "host={} port={port} user={} dbname={database}",
            directory.display(),
            role.unwrap_or(&target.user)
        );
        ConnectOptions { dsn_or_dbname: Some(dsn), ..ConnectOptions::default() }
    }

    /// Runs TPC-B and statements about the other tables for so long.
    pub fn run_load(&self, length: Duration) -> Measurement {
        let secrets = Script::parse("secrets", SECRET_STATEMENTS).unwrap();
        let tpcb = spec(self.target("original"), TPCB);
        let mut scripts = tpcb.scripts.clone();
        scripts[0].weight = 20;
        scripts.push(WeightedScript::new(secrets.into(), 1));
        let load =
            LoadSpec { clients: 3.try_into().unwrap(), length: lasting(length), scripts, ..tpcb };
        run_load(&load, &unwatched(&RUN)).unwrap()
    }
}
