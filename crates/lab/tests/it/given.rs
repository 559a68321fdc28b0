//! Drives and measures a server that pgdyno does not own, and leaves it as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pgdyno_exec::journal::Journal;
use pgdyno_exec::paths::state_dir;
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::file::{Override, Source};
use pgdyno_lab::{Consent, run};
use pgdyno_model::progress::{Activity, Event, Notice, Progress, Silent, Warning};
use pgdyno_model::record::SessionEnd;
use pgdyno_model::target::{Address, Secret};
use pgdyno_postgres::server_wide::put_back_leftovers;
use pgdyno_postgres::sweep::{Outcome, sweep};
use pgdyno_postgres::{Cluster, ExternalServer, ServerWide, StopMode};
use pgdyno_provision::{BenchError, ThisHost};
use pgdyno_store::Store;
use pgdyno_test_support::{assert_contains, create_cluster as made, install};

use crate::quickstart::{quickstart, quickstart_on};

static GO_ON: AtomicBool = AtomicBool::new(false);

/// A server with somebody's table in it, reached over TCP with a password.
struct Theirs {
    cluster: Cluster,
    dsn: String,
    password: String,
    home: pgdyno_test_support::Scratch,
}

impl Theirs {
    fn start() -> Self {
        let (mut cluster, home) = made(install(None));
        cluster.start(&GO_ON).unwrap();
        let mut client = cluster.control("postgres").unwrap();
        client
            .batch_execute("CREATE TABLE theirs (a int); INSERT INTO theirs VALUES (42)")
            .unwrap();
        let target = cluster.target("postgres");
        let password = target.password.unwrap().reveal().to_owned();
        let Address::Tcp { host, port } = target.address else { panic!("asked for TCP") };
        let dsn = format!("postgresql://postgres:{password}@{host}:{port}/postgres");
        Self { cluster, dsn, password, home }
    }

    fn sql(&self, sql: &str) {
        self.cluster.control("postgres").unwrap().batch_execute(sql).unwrap();
    }

    fn number(&self, sql: &str) -> i64 {
        self.cluster.control("postgres").unwrap().query_one(sql, &[]).unwrap().get(0)
    }

    fn schemas(&self) -> i64 {
        self.number("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pgdyno%'")
    }

    fn store(&self) -> PathBuf {
        self.home.path().join("store.sqlite3")
    }

    /// Removes this server's settings and schemas from the journal of the account that runs the
    /// test: the server is gone for good.
    fn forget(&self) {
        let Address::Tcp { port, .. } = self.cluster.target("postgres").address else {
            panic!("asked for TCP")
        };
        let named = format!("port='{port}'");
        for entry in std::fs::read_dir(state_dir().join("made")).unwrap().flatten() {
            if std::fs::read_to_string(entry.path()).is_ok_and(|text| text.contains(&named)) {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
    }

    /// Returns the settings in `postgresql.auto.conf`, as `name=value` with spaces between them.
    fn altered(&self) -> String {
        let sql = "SELECT coalesce(string_agg(name || '=' || setting, ' ' ORDER BY name), '') \
                   FROM pg_file_settings WHERE sourcefile LIKE '%auto.conf'";
        self.cluster.control("postgres").unwrap().query_one(sql, &[]).unwrap().get(0)
    }

    fn run(&self, sets: &[&str]) -> Result<run::Outcome, BenchError> {
        run::run(&self.resolved(sets), &self.store(), &Silent, &GO_ON)
    }

    fn resolved(&self, sets: &[&str]) -> ResolvedExperiment {
        quickstart_on(&self.dsn, &[&["experiment.seed=1"], sets].concat())
    }
}

/// Asks the run to stop once a trial is done.
struct OneTrial(AtomicBool);

impl Progress for OneTrial {
    fn event(&self, event: &Event) {
        if matches!(event, Event::TrialDone { .. }) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

fn holds(path: &Path, needle: &str) -> bool {
    let bytes = std::fs::read(path).unwrap();
    bytes.windows(needle.len()).any(|w| w == needle.as_bytes())
}

#[test]
fn a_given_server_is_measured_and_left_as_it_was() {
    let theirs = Theirs::start();
    let outcome = theirs.run(&["factors.clients=[2]"]).unwrap();
    assert_eq!((outcome.end, outcome.failed), (SessionEnd::Completed, 0));
    assert_eq!(theirs.schemas(), 0, "pgdyno's schema is gone");
    assert_eq!(theirs.number("SELECT sum(a) FROM theirs"), 42);

    let store = Store::open_existing(theirs.store()).unwrap();
    let trials = store.trials(&outcome.run).unwrap();
    assert_eq!(trials.len(), 2);
    for trial in &trials {
        let count = trial.server_count.as_ref().unwrap();
        assert!(trial.measurement.as_ref().unwrap().transactions > 0);
        assert_eq!(count.rows, count.rows_expected);
    }
    drop(store);
    assert!(!holds(&theirs.store(), &theirs.password), "the store must not hold the password");
}

#[test]
fn what_cannot_be_changed_is_refused_by_name_before_anything_is_measured() {
    let theirs = Theirs::start();
    let error = theirs.run(&["factors.fsync=[\"on\", \"off\"]"]).unwrap_err();
    assert_contains(error.to_string(), &["fsync", "whole server"]);
    assert!(error.help().unwrap().contains("alter_system"), "{:?}", error.help());
    let error = theirs.run(&["factors.synchronous_commit=[\"maybe\"]"]).unwrap_err().to_string();
    assert!(error.contains("maybe"), "{error}");
    for (setting, why) in [
        ("shared_buffers", "restart"),
        ("block_size", "cannot be changed"),
        ("shared_bufers", "no such"),
    ] {
        let factor = format!("factors.{setting}=[\"16MB\", \"32MB\"]");
        let error = theirs.run(&[&factor, "postgres.alter_system=true"]).unwrap_err().to_string();
        assert!(error.contains(setting) && error.contains(why), "{error}");
    }
    for (twice, alter_system) in [
        ("work_mem=[\"4MB\", 8192, \"4096kB\"]", "false"),
        ("checkpoint_timeout=[\"1h\", 3600]", "true"),
    ] {
        let sets = [format!("factors.{twice}"), format!("postgres.alter_system={alter_system}")];
        let error = theirs.run(&sets.each_ref().map(String::as_str)).unwrap_err().to_string();
        assert!(error.contains("two levels are one") && error.contains("to the server"), "{error}");
    }
    let error = theirs
        .run(&["factors.checkpoint_timeout=[\"1h\", \"maybe\"]", "postgres.alter_system=true"]);
    assert!(error.unwrap_err().to_string().contains("checkpoint_timeout"));
    assert_eq!((theirs.schemas(), theirs.altered().as_str()), (0, ""));
}

#[test]
fn settings_of_the_whole_server_change_between_trials_and_are_put_back() {
    let theirs = Theirs::start();
    theirs.sql("ALTER SYSTEM SET checkpoint_timeout = '7min'");
    theirs.sql("SELECT pg_reload_conf()");
    let outcome = theirs
        .run(&[
            "factors={}",
            "factors.wal={ small = { checkpoint_timeout = \"10min\", Max_Wal_Size = \"100MB\" }, \
             usual = { checkpoint_timeout = \"20min\" } }",
            // Another data set on the same server.
            "factors.scale=[1, 2]",
            "factors.synchronous_commit=[\"off\"]",
            "postgres.alter_system=true",
        ])
        .unwrap();
    assert_eq!((outcome.end, outcome.failed), (SessionEnd::Completed, 0));
    let store = Store::open_existing(theirs.store()).unwrap();
    let plan = store.run(&outcome.run).unwrap().plan;
    let trials = store.trials(&outcome.run).unwrap();
    assert_eq!(trials.len(), 4);
    for trial in trials {
        let (levels, facts) = (&plan.treatments[trial.treatment].levels, trial.server.unwrap());
        let is_small = levels.get("wal").unwrap().to_string() == "small";
        let seconds = if is_small { "600" } else { "1200" };
        assert_eq!(facts.setting("checkpoint_timeout"), Some(seconds), "{levels}");
        let size = facts.setting("max_wal_size");
        assert_eq!(size == Some("100"), is_small, "{levels} {size:?}");
    }
    assert_eq!(theirs.altered(), "checkpoint_timeout=7min", "what they had set is as it was");
    assert_eq!(
        theirs.number("SELECT setting::bigint FROM pg_settings WHERE name = 'checkpoint_timeout'"),
        420
    );
    assert_eq!(theirs.schemas(), 0);
}

#[test]
fn settings_are_put_back_after_an_interruption_and_what_others_set_is_left() {
    let theirs = Theirs::start();
    let sets = [
        "factors={}",
        "factors.checkpoint_timeout=[\"10min\", \"20min\"]",
        "postgres.alter_system=true",
    ];
    let progress = OneTrial(AtomicBool::new(false));
    let outcome =
        run::run(&theirs.resolved(&sets), &theirs.store(), &progress, &progress.0).unwrap();
    assert_eq!((outcome.end, theirs.altered().as_str()), (SessionEnd::Interrupted, ""));

    /// Changes a setting that pgdyno has set, right before pgdyno puts it back.
    struct Meddler<'a>(&'a Theirs);
    impl Progress for Meddler<'_> {
        fn event(&self, event: &Event) {
            if matches!(event, Event::TakingDown) {
                self.0.sql("ALTER SYSTEM SET checkpoint_timeout = '13min'");
            }
        }
    }
    run::run(&theirs.resolved(&sets), &theirs.store(), &Meddler(&theirs), &GO_ON).unwrap();
    assert_eq!(theirs.altered(), "checkpoint_timeout=13min");
}

#[test]
fn what_a_killed_process_left_changed_is_put_back_by_the_journal() {
    let theirs = Theirs::start();
    let state = theirs.home.path().join("journal");
    let journal = Journal::open(&state).unwrap();
    let dsn = Secret::new(theirs.dsn.clone());
    let given = ExternalServer::connect(&dsn).unwrap();
    let asked =
        BTreeMap::from([("checkpoint_timeout".to_owned(), BTreeSet::from(["11min".to_owned()]))]);
    let wanted = BTreeMap::from([("checkpoint_timeout".to_owned(), "11min".to_owned())]);
    let leave = || {
        let mut changed = ServerWide::record(&given, &dsn, &asked, &journal).unwrap();
        changed.apply(&wanted).unwrap();
        assert_eq!(theirs.altered(), "checkpoint_timeout=11min");
        std::mem::forget(changed);
        // Whoever wrote it is gone.
        for file in std::fs::read_dir(state.join("made")).unwrap().flatten() {
            let Ok(mut entry) =
                serde_json::from_slice::<serde_json::Value>(&std::fs::read(file.path()).unwrap())
            else {
                continue;
            };
            entry["owner"]["pid"] = i32::MAX.into();
            std::fs::write(file.path(), entry.to_string()).unwrap();
            assert!(
                !holds(&file.path(), &theirs.password),
                "the journal must not hold the password"
            );
        }
    };

    // Without the password the sweep tells what is left, and keeps it in mind.
    leave();
    let swept = sweep(&journal, &GO_ON).unwrap();
    assert!(
        matches!(&swept[0].outcome, Outcome::Failed { why } if why.contains("PGPASSWORD")),
        "{swept:?}"
    );
    assert_eq!(
        (theirs.altered().as_str(), journal.entries().unwrap().len()),
        ("checkpoint_timeout=11min", 1)
    );
    // A run on that server has it.
    let told = put_back_leftovers(&given, &journal).unwrap();
    assert!(told.len() == 1 && told[0].contains("checkpoint_timeout"), "{told:?}");
    assert_eq!((theirs.altered().as_str(), journal.entries().unwrap().len()), ("", 0));

    // Where no password is asked for, the sweep does it by itself.
    let hba = theirs.cluster.data().join("pg_hba.conf");
    std::fs::write(&hba, "local all all trust\nhost all all 127.0.0.1/32 trust\n").unwrap();
    theirs.sql("SELECT pg_reload_conf()");
    leave();
    let swept = sweep(&journal, &GO_ON).unwrap();
    assert_eq!((swept.len(), &swept[0].outcome), (1, &Outcome::PutBack));
    assert_eq!((theirs.altered().as_str(), journal.entries().unwrap().len()), ("", 0));
}

#[test]
fn a_schema_that_is_somebody_elses_is_left_whatever_its_comment_says() {
    let theirs = Theirs::start();
    theirs.sql("CREATE SCHEMA pgdyno; CREATE TABLE pgdyno.precious (a int)");
    let error = theirs.run(&["factors={}"]).unwrap_err();
    assert!(
        error.to_string().contains("pgdyno did not make it") && error.help().is_some(),
        "{error}"
    );
    assert_eq!(theirs.number("SELECT count(*) FROM pgdyno.precious"), 0);

    // A comment alone makes it no more ours: the journal has to name it.
    for comment in ["made by pgdyno", "made by pgdyno 00112233445566778899aabbccddeeff"] {
        theirs.sql(&format!("COMMENT ON SCHEMA pgdyno IS '{comment}'"));
        let error = theirs.run(&["factors={}"]).unwrap_err();
        assert!(error.to_string().contains("journal") && error.help().is_some(), "{error}");
        assert_eq!(theirs.number("SELECT count(*) FROM pgdyno.precious"), 0);
    }
}

/// Executes a statement as another session would, once a trial is done. Keeps the events.
struct Meanwhile<'a>(&'a Theirs, &'a str, Mutex<Vec<String>>);

impl Progress for Meanwhile<'_> {
    fn event(&self, event: &Event) {
        match event {
            Event::TrialDone { .. } => self.0.sql(self.1),
            Event::Note(Notice::ExternalServer(line))
            | Event::Warning(Warning::NotTakenDown(line)) => {
                self.2.lock().unwrap().push(line.clone());
            }
            _ => {}
        }
    }
}

/// Stops the server when the run begins to take down.
struct GoesAway<'a> {
    cluster: Mutex<&'a mut Cluster>,
    /// Whether the server comes back once the run waits for it; otherwise the user stops the run.
    comes_back: bool,
    stop: AtomicBool,
    told: Mutex<Vec<String>>,
}

impl Progress for GoesAway<'_> {
    fn event(&self, event: &Event) {
        match event {
            Event::TakingDown => self.cluster.lock().unwrap().stop(StopMode::Immediate),
            Event::Working { activity: Activity::AwaitingServer { .. }, .. } => {
                match self.comes_back {
                    true => self.cluster.lock().unwrap().start(&GO_ON).unwrap(),
                    false => self.stop.store(true, Ordering::Relaxed),
                }
            }
            Event::Warning(Warning::NotTakenDown(line)) => {
                self.told.lock().unwrap().push(line.clone());
            }
            _ => {}
        }
    }
}

#[test]
fn a_server_that_is_restarted_as_a_run_ends_is_waited_for_and_left_as_it_was() {
    let mut theirs = Theirs::start();
    let sets =
        ["factors={}", "factors.checkpoint_timeout=[\"11min\"]", "postgres.alter_system=true"];
    for comes_back in [true, false] {
        let (resolved, store) = (theirs.resolved(&sets), theirs.store());
        let away = GoesAway {
            cluster: Mutex::new(&mut theirs.cluster),
            comes_back,
            stop: AtomicBool::new(false),
            told: Mutex::default(),
        };
        let outcome = run::run(&resolved, &store, &away, &away.stop).unwrap();
        assert_eq!(outcome.end, SessionEnd::Completed);
        let told = away.told.into_inner().unwrap();
        if comes_back {
            assert_eq!(told, [""; 0]);
            assert_eq!((theirs.altered().as_str(), theirs.schemas()), ("", 0));
            continue;
        }
        // All that stays is named, with the command that removes it.
        let names = ["checkpoint_timeout of server", "schema pgdyno of server"];
        let is_told = |name| told.iter().any(|l| l.contains(name) && l.contains("pgdyno clean"));
        assert!(told.len() == 2 && names.into_iter().all(is_told), "{told:?}");
    }
    theirs.forget();
}

#[test]
fn what_others_put_beside_or_upon_our_tables_stays_and_is_named() {
    let theirs = Theirs::start();
    let sql = "CREATE TABLE IF NOT EXISTS pgdyno.precious (a int); \
               CREATE OR REPLACE VIEW upon AS SELECT bid FROM pgdyno.pgbench_branches";
    let meanwhile = Meanwhile(&theirs, sql, Mutex::default());
    let outcome =
        run::run(&theirs.resolved(&["factors={}"]), &theirs.store(), &meanwhile, &GO_ON).unwrap();
    assert_eq!((outcome.end, outcome.failed), (SessionEnd::Completed, 0));
    let told = meanwhile.2.into_inner().unwrap().join("\n");
    assert_contains(&told, &["view public.upon", "pgdyno.precious", "pgdyno clean"]);
    assert_eq!(theirs.number("SELECT count(*) FROM pgdyno.precious"), 0);
    assert_eq!(theirs.number("SELECT count(*) FROM upon"), 1);
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'pgdyno'";
    assert_eq!(theirs.number(tables), 2, "all of ours that could be dropped are");
    // As long as that is so, the schema cannot be used again.
    let error = theirs.run(&["factors={}"]).unwrap_err();
    assert!(error.to_string().contains("pgdyno.precious"), "{error}");
    assert_eq!(theirs.number(tables), 2);
    // Then it goes.
    theirs.sql("DROP VIEW upon; ALTER TABLE pgdyno.precious SET SCHEMA public");
    assert_eq!(theirs.run(&["factors={}"]).unwrap().end, SessionEnd::Completed);
    assert_eq!((theirs.schemas(), theirs.number("SELECT count(*) FROM public.precious")), (0, 0));
}

#[test]
fn a_schema_that_the_file_names_keeps_what_was_in_it() {
    let theirs = Theirs::start();
    let outcome = theirs.run(&["factors={}", "postgres.schema=public"]).unwrap();
    assert_eq!(outcome.end, SessionEnd::Completed);
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(theirs.number(tables), 1, "theirs is left, and none of the workload's");

    // What others make there while the run goes on is theirs too.
    let meanwhile =
        Meanwhile(&theirs, "CREATE TABLE IF NOT EXISTS public.late (a int)", Mutex::default());
    let resolved = theirs.resolved(&["factors={}", "postgres.schema=public"]);
    assert_eq!(
        run::run(&resolved, &theirs.store(), &meanwhile, &GO_ON).unwrap().end,
        SessionEnd::Completed
    );
    assert_eq!((theirs.number(tables), theirs.number("SELECT count(*) FROM public.late")), (2, 0));
    theirs.sql("DROP TABLE public.late");

    // A table of theirs that has the name of one of the workload's is never dropped.
    theirs.sql("CREATE TABLE pgbench_tellers (mine int); INSERT INTO pgbench_tellers VALUES (7)");
    let outcome = theirs.run(&["factors={}", "postgres.schema=public"]).unwrap();
    assert_eq!(outcome.end, SessionEnd::Failed);
    assert_eq!(theirs.number("SELECT sum(mine) FROM pgbench_tellers"), 7);
    assert_eq!(theirs.number(tables), 2);
}

#[test]
fn what_a_file_says_of_its_load_is_done() {
    let theirs = Theirs::start();
    let script = theirs.home.path().join("batch.sql");
    std::fs::write(
        &script,
        "INSERT INTO theirs VALUES (:batch);\nSELECT 1 / (random() > 0.5)::int;\n",
    )
    .unwrap();
    let scripts = format!("workload.scripts=[{{ file = \"{}\" }}]", script.display());
    let outcome = theirs
        .run(&[
            "factors={}",
            "factors.rate=[20, 60]",
            "load.define={ batch = 7 }",
            "load.on_error=continue",
            "load.reconnect=true",
            "load.latency_limit=\"5s\"",
            "load.clients=2",
            "between.vacuum=false",
            "postgres.schema=public",
            &scripts,
        ])
        .unwrap();
    let store = Store::open_existing(theirs.store()).unwrap();
    let trials = store.trials(&outcome.run).unwrap();
    assert_eq!(trials.len(), 2);
    let begun = |n: usize| {
        let m = trials[n].measurement.as_ref().unwrap();
        assert_eq!((m.counters.aborted_clients, &trials[n].failure), (0, &None));
        // A busy machine may complete none in the window.
        let by_zero = m.counters.failures.get("22012").copied().unwrap_or_default();
        assert_eq!(by_zero, m.failed, "division by zero fails, and the client goes on");
        let ended = m.acknowledged() + m.failed + m.counters.failed_outside;
        assert!(
            m.counters.reconnections >= ended,
            "{} connections for {ended} transactions",
            m.counters.reconnections
        );
        assert_eq!(m.service.as_ref().map(pgdyno_model::Latencies::count), Some(m.latency.count()));
        ended
    };
    let (few, many) = (begun(0), begun(1));
    // 1.1 s at 20 and 60 a second: 22 and 66, give or take five standard deviations.
    assert!(few < 46 && many < 107 && few < many + 46, "{few} {many}");
    let sevens = theirs.number("SELECT count(*) FROM theirs WHERE a = 7");
    assert_eq!(u64::try_from(sevens).unwrap(), few + many);
    groups_run_side_by_side(&theirs);
}

/// Runs a workload of two groups, one of them as a role of its own.
fn groups_run_side_by_side(theirs: &Theirs) {
    theirs.sql(
        "CREATE ROLE analyst LOGIN PASSWORD 'hunter2'; \
         CREATE TABLE who (role text, client int, batch int); GRANT INSERT ON who TO analyst",
    );
    let folder = theirs.home.path().join("mixed");
    std::fs::create_dir(&folder).unwrap();
    let write = |file: &str, text: &str| std::fs::write(folder.join(file), text).unwrap();
    write("put.sql", "INSERT INTO public.who VALUES (current_user, :client_id, :batch);\n");
    write("pause.sql", "\\sleep 1 ms\nSELECT 1;\n");
    write(
        "workload.toml",
        "description = 'mixed'\nheadline = 'put'\n[data]\n\
         [[group]]\nname = 'writers'\nclients = 1\n\
         script = [{ file = 'put.sql', weight = 3 }, { file = 'pause.sql' }]\n\
         [[group]]\nname = 'analysts'\nclients = 1\nthink_time = '5ms'\n\
         script = [{ file = 'put.sql' }]\n",
    );
    let dsn = theirs.dsn.replacen(&format!("postgres:{}", theirs.password), "analyst:hunter2", 1);
    let toml = std::fs::read_to_string(folder.join("workload.toml")).unwrap();
    let with = |condition: &str, broken: &str| {
        let more = format!("[[consistency]]\ncondition = '{condition}'\nbroken = '{broken}'\n");
        write("workload.toml", &format!("{toml}{more}"));
    };
    with("three clients", "SELECT count(*) FROM public.who WHERE client > 2");
    let text = format!(
        "[experiment]\nrepeats = 1\n[workload]\nname = \"{}/\"\n\
         [load]\nthreads = 2\nduration = \"1s\"\nwarm_up = \"100ms\"\ndefine = {{ batch = 7 }}\n\
         [factors]\n\"groups.writers.clients\" = [2]\n[groups.analysts]\npostgres.dsn = \"{dsn}\"\n\
         [between]\nvacuum = false\n",
        folder.display()
    );
    let source = Source::new(Path::new("mixed.toml"), text);
    let server = Override::text("postgres.dsn", &theirs.dsn, "postgres.dsn");
    let resolved = ResolvedExperiment::new(source, vec![server], &ThisHost).unwrap();
    let outcome = run::run(&resolved, &theirs.store(), &Silent, &GO_ON).unwrap();
    let store = Store::open_existing(theirs.store()).unwrap();
    let [trial] = &store.trials(&outcome.run).unwrap()[..] else { panic!() };
    assert_eq!(trial.failure, None);
    let m = trial.measurement.as_ref().unwrap();
    let told = |script: &pgdyno_model::measurement::ScriptMeasurement| {
        format!("{} {}", script.group.as_deref().unwrap(), script.name)
    };
    let told: Vec<String> = m.scripts.iter().map(told).collect();
    assert_eq!(told, ["writers put", "writers pause", "analysts put"]);
    assert!(m.compared().unwrap() < m.tps().unwrap(), "{m:?}");
    // Clients are numbered group by group, and each group's have its server.
    let roles = "SELECT count(DISTINCT (role, client)) FROM who WHERE batch = 7 \
                 AND (role, client) IN (('postgres', 0), ('postgres', 1), ('analyst', 2))";
    assert_eq!(theirs.number(roles), 3);
    assert_eq!(theirs.number("SELECT count(DISTINCT (role, client)) FROM who"), 3);
    with("two clients", "SELECT count(DISTINCT client) - 2 FROM public.who");
    let resolved = ResolvedExperiment::new(resolved.source, resolved.overrides, &ThisHost).unwrap();
    let broken = run::run(&resolved, &theirs.store(), &Silent, &GO_ON).unwrap();
    let failure = store.trials(&broken.run).unwrap()[0].failure.clone().unwrap();
    assert_eq!(failure.message, "1 row breaks the workload's condition `two clients`");
    let run = store.run(&outcome.run).unwrap();
    let plan = serde_json::to_string(&run.plan).unwrap();
    let kept = format!("{}{}{plan}", run.experiment, run.overrides.join(" "));
    assert!(!kept.contains("hunter2") && plan.contains("\"server\":\""), "{kept}");
}

#[test]
fn two_servers_are_levels_of_one_randomised_run_that_can_be_resumed() {
    let (base, head) = (Theirs::start(), Theirs::start());
    let dsns = [format!("base:={}", base.dsn), format!("head:={}", head.dsn)];
    let sets = [
        "experiment.repeats=2",
        "factors.clients=[2]",
        "factors.synchronous_commit=[\"on\"]",
        "postgres.schema=public",
    ];
    let resolved = quickstart(Override::servers(&dsns).unwrap(), &sets);
    let told = pgdyno_lab::dry_run(&resolved).unwrap();
    assert!(
        told.contains("On the given server 127.0.0.1:") && !told.contains(&base.password),
        "{told}"
    );
    assert!(!told.contains("public_2"), "each server has the schema that was named: {told}");

    let progress = OneTrial(AtomicBool::new(false));
    let outcome = run::run(&resolved, &base.store(), &progress, &progress.0).unwrap();
    assert_eq!(outcome.end, SessionEnd::Interrupted);
    let servers = Override::servers(&dsns).unwrap();
    let resumed = run::resume(
        &outcome.run,
        &servers,
        &[],
        Consent::default(),
        &base.store(),
        &Silent,
        &GO_ON,
    )
    .unwrap();
    assert_eq!((resumed.end, resumed.failed), (SessionEnd::Completed, 0));

    let store = Store::open_existing(base.store()).unwrap();
    let (plan, trials) =
        (store.run(&resumed.run).unwrap().plan, store.trials(&resumed.run).unwrap());
    let levels: Vec<String> =
        plan.treatments.iter().map(|t| t.levels.get("server").unwrap().to_string()).collect();
    assert_eq!(levels, ["base", "head"]);
    // Each trial ran on its level's server.
    for trial in &trials {
        let server = plan.treatments[trial.treatment].server.clone().unwrap();
        let pgdyno_model::facts::BuildSource::Given { address } =
            &trial.server.as_ref().unwrap().build
        else {
            panic!("{:?}", trial.server)
        };
        assert!(server.starts_with(address.as_str()), "{server} {address}");
    }
    assert_eq!(trials.len(), 4);
    drop(store);
    for theirs in [&base, &head] {
        assert_eq!(theirs.number("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), 1);
        assert_eq!(theirs.number("SELECT sum(a) FROM theirs"), 42);
        assert!(!holds(&base.store(), &theirs.password), "the store must not hold a password");
    }
}
