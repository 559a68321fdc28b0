//! A managed cluster from its making to its removal, on a real server.
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use pgdyno_model::experiment::Connect;
use pgdyno_model::target::Address;
use pgdyno_model::{Advice, FailureKind};
use pgdyno_postgres::{Applied, Cluster, ClusterError, SettingsError, StopMode};
use pgdyno_test_support::{Place, RUN, skip, test_name};

fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
}

fn show(cluster: &Cluster, name: &str) -> String {
    cluster.control("postgres").unwrap().query_one(&format!("SHOW {name}"), &[]).unwrap().get(0)
}

fn assert_shows(cluster: &Cluster, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(show(cluster, name), *value, "{name}");
    }
}

#[test]
fn a_cluster_is_made_changed_and_removed_without_trace() {
    let place = Place::new();
    let mut spec = place.spec();
    spec.settings = settings(&[("shared_buffers", "16MB"), ("Work_Mem", "1MB")]);
    let mut cluster = Cluster::create(spec, &place.journal, &RUN).unwrap();
    assert!(!cluster.is_running());
    let treatment = settings(&[("synchronous_commit", "off"), ("max_connections", "25")]);
    assert_eq!(cluster.apply(&treatment, &RUN).unwrap(), Applied::Restarted { because: vec![] });
    assert!(cluster.is_running());
    let first_pid = cluster.pid();
    assert_eq!(std::fs::metadata(cluster.data()).unwrap().uid(), cluster.spec().account.uid);
    assert_shows(&cluster, &[("synchronous_commit", "off"), ("work_mem", "1MB")]);

    // The same again changes nothing; a reload suffices for most; what is not named goes back to
    // the base.
    assert_eq!(cluster.apply(&treatment, &RUN).unwrap(), Applied::Nothing);
    let reloadable = settings(&[
        ("work_mem", "2MB"),
        ("max_connections", "25"),
        ("checkpoint_timeout", "10 min"),
    ]);
    assert_eq!(cluster.apply(&reloadable, &RUN).unwrap(), Applied::Reloaded);
    assert_eq!(cluster.pid(), first_pid);
    let expected =
        [("synchronous_commit", "on"), ("work_mem", "2MB"), ("checkpoint_timeout", "10min")];
    assert_shows(&cluster, &expected);

    // Some settings take a restart, and only they are blamed for it.
    let postmaster =
        settings(&[("shared_buffers", "24MB"), ("max_connections", "25"), ("work_mem", "3MB")]);
    let restarted = Applied::Restarted { because: vec!["shared_buffers".into()] };
    assert_eq!(cluster.apply(&postmaster, &RUN).unwrap(), restarted);
    assert_ne!(cluster.pid(), first_pid);
    assert_shows(&cluster, &[("shared_buffers", "24MB")]);
    let base =
        Applied::Restarted { because: vec!["max_connections".into(), "shared_buffers".into()] };
    assert_eq!(cluster.apply(&BTreeMap::new(), &RUN).unwrap(), base);
    assert_shows(&cluster, &[("shared_buffers", "16MB"), ("work_mem", "1MB")]);

    let facts = cluster.facts().unwrap();
    assert!(facts.version.starts_with("PostgreSQL 1"), "{}", facts.version);
    assert_eq!(facts.version_num / 10000, cluster.spec().install.major);
    assert_eq!(facts.setting("shared_buffers"), Some("2048"));
    assert_eq!(facts.setting("fsync"), Some("on"));
    assert_eq!(facts.setting("application_name"), None);

    // Stopped and started again, its settings are still those.
    cluster.stop(StopMode::Fast);
    assert!(!cluster.is_running());
    cluster.start(&RUN).unwrap();
    assert_shows(&cluster, &[("work_mem", "1MB")]);
    cluster.remove().unwrap();
    assert!(place.is_clean());
}

#[test]
fn hosts_that_are_let_in_already_cause_no_reload() {
    let place = Place::new();
    let mut spec = place.spec();
    spec.listen = Some(Ipv4Addr::LOCALHOST.into());
    let mut cluster = Cluster::create(spec, &place.journal, &RUN).unwrap();
    cluster.start(&RUN).unwrap();
    let read = |sql: &str| -> String {
        cluster.control("postgres").unwrap().query_one(sql, &[]).unwrap().get(0)
    };
    let loaded_at = || read("SELECT pg_conf_load_time()::text");
    let admit = |address: &str| {
        cluster.admit(&[address.parse().unwrap()].into(), &RUN).unwrap();
        loaded_at()
    };
    let first = admit("127.0.0.2");
    assert_eq!(admit("127.0.0.2"), first);
    assert_ne!(admit("127.0.0.3"), first);
    let let_in = "SELECT string_agg(address, ' ' ORDER BY address) FROM pg_hba_file_rules";
    assert_eq!(read(let_in), "127.0.0.1 127.0.0.3");
    cluster.remove().unwrap();
}

#[test]
fn a_server_that_dies_is_noticed_and_comes_back() {
    let place = Place::new();
    let mut cluster = place.cluster();
    cluster.start(&RUN).unwrap();
    let mark = cluster.log_mark();
    cluster
        .control("postgres")
        .unwrap()
        .batch_execute("CREATE TABLE kept AS SELECT 1 AS n")
        .unwrap();
    let pid = rustix::process::Pid::from_raw(cluster.pid().unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    while cluster.is_running() {
        std::thread::yield_now();
    }
    assert!(matches!(cluster.check_running(), Err(ClusterError::Died { .. })));
    cluster.start(&RUN).unwrap();
    let kept = cluster.control("postgres").unwrap().query_one("SELECT n FROM kept", &[]).unwrap();
    assert_eq!(kept.get::<_, i32>(0), 1);
    assert!(cluster.log_since(mark).contains("automatic recovery in progress"));
    drop(cluster);
    assert!(place.is_clean());
}

#[test]
fn memory_that_an_ended_server_still_holds_is_waited_for() {
    /// Attaches the segment with the given id, says so, and lets go of it a second later.
    const HOLD: &str = "import ctypes, sys, time
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_ssize_t
assert libc.shmat(int(sys.argv[1]), None, 0) != -1
print('held', flush=True)
time.sleep(1)";
    let place = Place::new();
    let mut cluster = place.cluster();
    cluster.start(&RUN).unwrap();
    let lock_file = std::fs::read_to_string(cluster.data().join("postmaster.pid")).unwrap();
    let segment = lock_file.lines().nth(6).and_then(|line| line.split_whitespace().nth(1)).unwrap();
    cluster.kill();
    assert!(cluster.wait_dead());
    let mut python = Command::new("python3");
    let python = python.args(["-c", HOLD, segment]).stdout(Stdio::piped()).spawn();
    let Ok(mut holder) = python else { return skip(test_name!(), "there is no python3") };
    let mut said = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "held\n");

    let mark = cluster.log_mark();
    cluster.start(&RUN).unwrap();
    assert!(cluster.log_since(mark).contains("pre-existing shared memory block"));
    assert!(holder.wait().unwrap().success());
}

#[test]
fn over_tcp_the_password_is_asked_for_and_never_shown() {
    let place = Place::new();
    let mut spec = place.spec();
    spec.connect = Connect::Tcp;
    let mut cluster = Cluster::create(spec, &place.journal, &RUN).unwrap();
    cluster.start(&RUN).unwrap();
    let target = cluster.target("postgres");
    assert!(matches!(&target.address, Address::Tcp { host, .. } if host == "127.0.0.1"));
    let password = target.password.clone().unwrap();
    let mut client = pgdyno_connect::control::connect(&target).unwrap();
    assert_eq!(
        client.query_one("SHOW password_encryption", &[]).unwrap().get::<_, String>(0),
        "scram-sha-256"
    );
    let mut wrong = target;
    wrong.password = Some(pgdyno_model::target::Secret::new("not it".into()));
    let error = pgdyno_connect::control::connect(&wrong).err().unwrap();
    assert!(error.to_string().contains("password authentication failed"), "{error}");
    assert!(!format!("{error} {error:?} {cluster:?} {wrong:?}").contains("not it"));
    let everything = format!("{cluster:?} {} {:?}", cluster.log_since(0), cluster.facts().unwrap());
    assert!(!everything.contains(password.reveal()));
    for step in cluster.spec().steps() {
        assert!(!format!("{step}").contains(password.reveal()));
    }
    for file in std::fs::read_dir(&cluster.spec().directory).unwrap().map(|f| f.unwrap().path()) {
        let held =
            std::fs::read_to_string(&file).is_ok_and(|text| text.contains(password.reveal()));
        assert!(!held, "{} holds the password", file.display());
    }
}

#[test]
fn settings_are_judged_by_the_server_before_any_load() {
    let place = Place::new();
    let mut cluster = place.cluster();
    cluster.start(&RUN).unwrap();
    let own =
        |pairs: &[(&str, &str)]| -> Vec<(String, String)> { settings(pairs).into_iter().collect() };
    let good = [
        ("shared_buffers", "64MB"),
        ("wal_compression", "on"),
        ("search_path", "a, b"),
        ("synchronous_standby_names", "FIRST 1 (a, b)"),
        ("application_name", "it's, a \\ test"),
        ("fsync", "off"),
    ];
    cluster.check_settings(&own(&good)).unwrap();
    let bad = [
        ("synchronous_comit", "off"),
        ("wal_level", "none"),
        ("checkpoint_timeout", "1s"),
        ("block_size", "16384"),
        ("port", "1"),
    ];
    let error = cluster.check_settings(&own(&bad)).unwrap_err();
    let SettingsError::Refused(problems) = &error else { panic!("{error}") };
    let told: Vec<_> =
        problems.iter().map(|p| (p.name.as_str(), p.why.as_str(), p.help.as_deref())).collect();
    assert_eq!(told[0], ("block_size", "it is fixed when the server is built or made", None));
    assert!(
        told[1].0 == "checkpoint_timeout" && told[1].1.contains("outside the valid range"),
        "{told:?}"
    );
    assert_eq!(told[2], ("port", "pgdyno sets it itself on a server that it manages", None));
    let near = Some("did you mean synchronous_commit?");
    assert_eq!(told[3], ("synchronous_comit", "this server has no such setting", near));
    assert!(
        told[4].0 == "wal_level" && told[4].2.is_some_and(|h| h.contains("replica")),
        "{told:?}"
    );
    // Nothing of it had an effect, also not at the next start.
    cluster.stop(StopMode::Fast);
    cluster.start(&RUN).unwrap();
    assert_shows(&cluster, &[("shared_buffers", "128MB"), ("fsync", "on")]);
}

#[test]
fn a_setting_that_the_server_cannot_start_with_is_told_with_its_log() {
    let place = Place::new();
    let mut cluster = place.cluster();
    let error = cluster
        .apply(&settings(&[("shared_preload_libraries", "no_such_library")]), &RUN)
        .unwrap_err();
    assert!(matches!(error, ClusterError::DidNotStart { .. }));
    assert!(error.to_string().contains("could not access file \"no_such_library\""), "{error}");
    // The next treatment is not harmed by it.
    cluster.apply(&BTreeMap::new(), &RUN).unwrap();
    let error = cluster.apply(&settings(&[("work_mem", "much")]), &RUN).unwrap_err();
    assert!(matches!(error, ClusterError::Settings(SettingsError::NotObtained(_))), "{error}");
    cluster.apply(&settings(&[("work_mem", "5MB")]), &RUN).unwrap();
}

#[test]
fn what_was_begun_is_removed_when_told_to_stop() {
    let place = Place::new();
    let error = Cluster::create(place.spec(), &place.journal, &AtomicBool::new(true)).unwrap_err();
    assert_eq!(error.kind(), FailureKind::Interrupted);
    let mut cluster = place.cluster();
    let error = cluster.start(&AtomicBool::new(true)).unwrap_err();
    assert_eq!(error.kind(), FailureKind::Interrupted);
    drop(cluster);
    assert!(place.is_clean());
}

#[test]
fn initdb_options_of_the_users_are_passed_on_and_their_errors_told() {
    let place = Place::new();
    let mut spec = place.spec();
    spec.initdb = vec!["--wal-segsize=3".into()];
    let error = Cluster::create(spec, &place.journal, &RUN).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    // Majors spell the number differently.
    assert!(cause.contains("must be a power of"), "{cause}");
    assert!(place.is_clean());
    let mut spec = place.spec();
    spec.initdb =
        vec!["--wal-segsize=4".into(), "--data-checksums".into(), "--locale=C.UTF-8".into()];
    let mut cluster = Cluster::create(spec, &place.journal, &RUN).unwrap();
    cluster.start(&RUN).unwrap();
    assert_shows(&cluster, &[("wal_segment_size", "4MB")]);
    assert_shows(&cluster, &[("data_checksums", "on")]);
    assert_shows(&cluster, &[("lc_messages", "C.UTF-8")]);
}

#[test]
fn a_server_without_fsync_is_refused_unless_that_was_asked_for() {
    let place = Place::new();
    let mut cluster = Cluster::create(place.spec(), &place.journal, &RUN).unwrap();
    cluster.start(&RUN).unwrap();
    cluster.control("postgres").unwrap().batch_execute("ALTER SYSTEM SET fsync = off").unwrap();
    cluster.stop(StopMode::Fast);
    let refused = cluster.start(&RUN);
    assert!(matches!(refused, Err(ClusterError::Settings(SettingsError::FsyncOff))), "{refused:?}");
    assert!(!cluster.is_running());
    cluster.apply(&settings(&[("fsync", "off")]), &RUN).unwrap();
    assert_shows(&cluster, &[("fsync", "off")]);
    cluster.remove().unwrap();
    assert!(place.is_clean());
}
