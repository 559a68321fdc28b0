//! The first minutes after an installation: over an older version, without root, without
//! PostgreSQL, without network.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{self, Ended, World, ended, is_root, unpacked, write_old_store};
use pgdyno_test_support::{RELEASE_MOUNTS, assert_contains, needs};
use serde_json::Value;

/// An account without rights.
const NOBODY: u32 = 65534;

fn fixtures(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder)
}

/// Where a treatment's mean tps stands in a run's JSON.
fn tps(run: &Value) -> Vec<f64> {
    let treatments = run["treatments"].as_array().unwrap();
    treatments.iter().map(|treatment| treatment["tps"]["mean"].as_f64().unwrap()).collect()
}

#[test]
fn a_store_of_0_1_0_is_read_as_any_other_and_stays_as_it_is() {
    let world = World::new();
    let store = world.store();
    write_old_store(&store);
    let before = fs::read(&store).unwrap();
    let html = world.path("run.html");
    let commands: [&[&str]; 6] = [
        &["list"],
        &["show", "latest"],
        &["show", "quickstart-20261123-062451-hupj", "--json"],
        &["compare", "latest:1", "latest:3"],
        &["verify"],
        &["report", "-o", html.to_str().unwrap()],
    ];
    for command in commands {
        let ended = world.run(command);
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{command:?}");
    }
    let now = world.show("latest");
    let then: Value = serde_json::from_slice(&unpacked("0.1.0.json.xz")).unwrap();
    for (key, value) in then["run"].as_object().unwrap() {
        assert_eq!(now["run"][key], *value, "{key}");
    }
    assert_eq!(tps(&now), tps(&then));
    assert!(fs::read_to_string(html).unwrap().contains("\"pgdyno_version\":\"0.1.0\""));
    assert!(fs::read(&store).unwrap() == before, "reading changes nothing");
}

#[test]
fn a_store_of_0_1_0_takes_new_results() {
    let world = World::new();
    write_old_store(&world.store());
    let report = fixtures("audit/tests/fixtures/audit/pgdyno-scripts.txt");
    let audited = world.run(&["audit", report.to_str().unwrap()]);
    assert!(matches!(audited.code, Some(0 | 3)), "{}", audited.err);
    let imports = world.run(&["list", "--imported", "--json"]).json();
    assert_eq!(imports.as_array().unwrap().len(), 1);
    world.run(&["verify"]).exits(0);
    assert_eq!(world.show("latest")["run"]["pgdyno_version"], "0.1.0");
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_left_as_it_is() {
    let world = World::new();
    let store = world.store();
    write_old_store(&store);
    let database = rusqlite::Connection::open(&store).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    drop(database);
    let before = fs::read(&store).unwrap();
    let report = fixtures("audit/tests/fixtures/audit/pgdyno-scripts.txt");
    let commands: [&[&str]; 6] = [
        &["list"],
        &["show", "latest"],
        &["report"],
        &["verify"],
        &["run", "quickstart"],
        &["audit", report.to_str().unwrap()],
    ];
    for command in commands {
        let ended = world.run(command).with_case(format!("{command:?}")).exits(1);
        let version = env!("CARGO_PKG_VERSION");
        for word in ["newer pgdyno", "schema 99", version, "help: ", "--store"] {
            assert!(ended.err.contains(word), "{command:?}, {word}: {}", ended.err);
        }
    }
    assert!(fs::read(&store).unwrap() == before);
    world.assert_nothing_left();
}

#[test]
fn every_experiment_file_of_0_1_0_is_planned() {
    let world = World::new();
    let folder = fixtures("experiment/tests/fixtures/experiments/0.1.0");
    let files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(files.len(), 10);
    for file in files {
        let planned = world.run(&["run", file.to_str().unwrap(), "--dry-run"]);
        assert_eq!(planned.code, Some(0), "{}: {}", file.display(), planned.err);
        assert!(planned.out.contains("Trials, in order"), "{}", file.display());
    }
}

/// A machine on which pgdyno was just installed: an account without rights and without network.
struct NewMachine {
    world: World,
    program: PathBuf,
    /// Whether PostgreSQL is installed.
    has_postgresql: bool,
}

impl NewMachine {
    fn new(has_postgresql: bool) -> Self {
        let world = World::new();
        // The account may not enter the folder that the program was built in.
        let program = world.path("pgdyno");
        fs::copy(env!("CARGO_BIN_EXE_pgdyno"), &program).unwrap();
        for folder in ["home", "disk"] {
            let path = world.path(folder);
            fs::create_dir_all(&path).unwrap();
            chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        Self { world, program, has_postgresql }
    }

    fn home(&self) -> PathBuf {
        self.world.path("home")
    }

    /// Runs pgdyno in namespaces of its own, so that nothing else is hidden or cut off.
    fn run(&self, args: &[&str]) -> Ended {
        let hide = match self.has_postgresql {
            true => "",
            false => {
                "if [ -d /usr/lib/postgresql ]; then mount -t tmpfs none /usr/lib/postgresql; fi;"
            }
        };
        let script = format!(
            "{RELEASE_MOUNTS}{hide} exec setpriv --reuid={NOBODY} --regid={NOBODY} \
             --clear-groups \"$@\""
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "--net", "sh", "-c", &script, "sh"]).arg(&self.program).args(args);
        command.env_clear().env("HOME", self.home()).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        ended(command.current_dir(self.home()).stdin(Stdio::null()).output().unwrap())
    }

    /// Runs pgdyno, which must refuse with a help that has all `words`. Returns what it said.
    fn refuses(&self, args: &[&str], words: &[&str]) -> String {
        let ended = self.run(args).with_case(format!("{args:?}")).exits(1);
        let (_, help) = ended.err.split_once("help: ").unwrap_or_default();
        for word in words {
            assert!(help.contains(word), "{args:?}, {word}: {}", ended.err);
        }
        ended.err
    }
}

#[test]
fn without_root_postgresql_and_network_the_first_commands_work() {
    needs!(is_root);
    let machine = NewMachine::new(false);
    let disk: &str = &machine.world.disk().display().to_string();
    let commands: [&[&str]; 8] = [
        &[],
        &["--version"],
        &["doctor", disk],
        &["recipes"],
        &["run", "quickstart", "--dry-run"],
        &["run", "filesystems", "--dry-run"],
        &["fsync", disk, "--duration", "1ms"],
        &["list"],
    ];
    for command in commands {
        machine.run(command).with_case(format!("{command:?}")).exits(0);
    }
    let doctor = machine.run(&["doctor", disk]).out;
    assert_contains(&doctor, &["none here", "only root"]);
}

#[test]
fn without_postgresql_and_network_the_help_names_every_way_to_a_server() {
    needs!(is_root);
    let machine = NewMachine::new(false);
    let archives = machine.home().join(".cache/pgdyno/archives");
    let ways = [
        "apt install postgresql",
        "dnf install postgresql-server",
        "postgres.bindir",
        "PGDYNO_MAVEN",
        archives.to_str().unwrap(),
        "--dsn",
        "fsync",
    ];
    let disk = machine.world.disk();
    machine.refuses(&["run", "quickstart"], &ways);
    machine.refuses(&["crash", "--fault", "process", "--storage", disk.to_str().unwrap()], &ways);
    assert!(fs::read_dir(archives).unwrap().next().is_none(), "no piece of a download is left");
}

#[test]
fn without_network_the_help_names_the_version_that_is_installed() {
    needs!(is_root);
    let machine = NewMachine::new(true);
    let is_missing = |major: &&str| !Path::new("/usr/lib/postgresql").join(major).exists();
    let missing = ["18", "17", "16", "15"].into_iter().find(is_missing).unwrap();
    let set = format!("postgres.version={missing}");
    let said = machine.refuses(&["run", "quickstart", "--set", &set], &["--set postgres.version="]);
    assert!(!said.contains(&format!("--set {set}")), "{said}");
}

#[test]
fn without_root_what_takes_root_is_refused_once_and_before_anything_is_fetched() {
    needs!(is_root);
    let machine = NewMachine::new(false);
    let disk = machine.world.disk();
    let crash =
        ["crash", "--fault", "power", "--filesystem", "ext4", "--storage", disk.to_str().unwrap()];
    let commands: [&[&str]; 4] =
        [&["run", "filesystems"], &["run", "zfs-xfs"], &["run", "crash-matrix"], &crash];
    for command in commands {
        let said = machine.refuses(command, &["as root", "pgdyno run quickstart"]);
        assert!(!said.contains("fetch") && !said.contains("warning"), "{command:?}: {said}");
    }
    let folder = machine.world.file("closed/file", "");
    let closed = folder.parent().unwrap();
    machine.refuses(&["fsync", closed.to_str().unwrap()], &["directory", "root"]);
}

#[test]
fn without_root_and_network_an_installed_server_is_measured() {
    needs!(is_root);
    let machine = NewMachine::new(true);
    let quick = support::quick(&machine.world, "quickstart", &["experiment.repeats=1"]);
    machine.run(&quick.iter().map(String::as_str).collect::<Vec<_>>()).exits(0);
    assert_eq!(machine.world.left_behind(), Vec::<PathBuf>::new());
    let shown = machine.run(&["show", "latest", "--json"]).json();
    assert_eq!(shown["run"]["pgdyno_version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(shown["run"]["state"], "completed");
}

#[test]
fn pgbench_without_a_server_says_so_and_what_to_check() {
    let world = World::new();
    let sockets = world.disk();
    world
        .run(&["pgbench", "-h", sockets.to_str().unwrap(), "-t", "1", "bench"])
        .exits(1)
        .says(".s.PGSQL.5432")
        .says("hint: ");
}
