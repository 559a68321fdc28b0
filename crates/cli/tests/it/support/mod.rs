//! Runs the real binary in a world of its own: directories, store, state; and finds what it may
//! have left behind.

pub mod alike;
pub mod docs;
mod ended;
pub mod fake_server;
pub mod live;
pub mod lying_server;
pub mod terminal;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub use ended::{Ended, ended, finish};
use pgdyno_test_support::{Scratch, quick_install, small_workload, traces, wait_for};

/// A directory tree for one test. The PostgreSQL cache is the user's own, so that a build is
/// fetched once.
pub struct World {
    root: Scratch,
}

/// Returns whether this machine lets disks be emulated; otherwise says that `test` is skipped.
pub fn emulates_disks(test: &str) -> bool {
    let why = if !rustix::process::geteuid().is_root() {
        "only root makes filesystems".to_owned()
    } else if let Err(e) = std::fs::File::options().read(true).write(true).open("/dev/fuse") {
        format!("/dev/fuse cannot be opened: {e}")
    } else {
        return true;
    };
    pgdyno_test_support::skip(test, &why);
    false
}

/// Returns whether the process is root; otherwise says that `test` is skipped.
pub fn is_root(test: &str) -> bool {
    pgdyno_test_support::is_root(test, "only root makes filesystems")
}

impl World {
    pub fn new() -> Self {
        let root = Scratch::new();
        let _ = root.create_folder("disk");
        Self { root }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The storage directory of this world's runs.
    pub fn disk(&self) -> PathBuf {
        self.path("disk")
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn command<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Command {
        self.wrapped(&[], args)
    }

    /// The command `wrapper`, whose last arguments are pgdyno and `args`; pgdyno itself if there is
    /// none.
    pub fn wrapped<S: AsRef<std::ffi::OsStr>>(&self, wrapper: &[&str], args: &[S]) -> Command {
        let mut words = wrapper.iter().chain(&[env!("CARGO_BIN_EXE_pgdyno")]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args(args).current_dir(self.root.path()).stdin(Stdio::null());
        command.env("XDG_DATA_HOME", self.path("data")).env("XDG_STATE_HOME", self.path("state"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") && name != "PGDYNO_MAVEN" {
                command.env_remove(name);
            }
        }
        if let Some(install) = quick_install() {
            command.env("PG_CONFIG", install.program("pg_config"));
        }
        command
    }

    pub fn run<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Ended {
        ended(self.command(args).output().unwrap())
    }

    /// Runs the words of `line`, none of which has a space.
    pub fn run_line(&self, line: &str) -> Ended {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs `crash --json` on this world's disk with `options`, none of which has a space.
    pub fn crash(&self, options: &str) -> Ended {
        self.run_line(&format!("crash --json --storage {} {options}", self.disk().display()))
    }

    pub fn spawn<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The name of a workload that loads few rows.
    pub fn small_workload(&self) -> String {
        small_workload(self.root.path()).display().to_string()
    }

    /// `show RUN --json`.
    pub fn show(&self, run: &str) -> serde_json::Value {
        self.run(&["show", run, "--json"]).exits(0).json()
    }

    /// The document in the page that `report` makes of `ids`.
    pub fn page(&self, ids: &[&str]) -> serde_json::Value {
        self.run(&[&["report", "-o", "-"], ids].concat()).exits(0).page()
    }

    /// Returns the files where clusters are made, and those that the journal still names.
    pub fn left_behind(&self) -> Vec<PathBuf> {
        [self.disk(), self.path("state/pgdyno/made")]
            .iter()
            .filter_map(|directory| std::fs::read_dir(directory).ok())
            .flat_map(|entries| entries.flatten().map(|e| e.path()))
            .filter(|path| path.file_name().is_none_or(|name| name != ".lock"))
            .collect()
    }

    /// Returns mounts, loop devices and emulated disks that lie in this world.
    pub fn traces(&self) -> Vec<String> {
        traces(self.root.path())
    }

    pub fn assert_nothing_left(&self) {
        assert_eq!(self.left_behind(), Vec::<PathBuf>::new());
        assert_eq!(self.servers(), Vec::<i32>::new());
    }

    /// The processes that serve emulated disks of this world.
    pub fn disk_servers(&self) -> Vec<i32> {
        let named =
            format!("PGDYNO_EMULATED_DISK={}", self.disk().canonicalize().unwrap().display());
        let serves = |pid: &i32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&named)
        };
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(serves).collect()
    }

    /// Asserts that nothing of this world is mounted, attached, served or left, nor a ledger.
    pub fn assert_gone(&self) {
        assert_eq!(self.traces(), [""; 0]);
        assert_eq!(self.disk_servers(), [0; 0]);
        self.assert_nothing_left();
        let state = std::fs::read_dir(self.path("state/pgdyno")).into_iter().flatten().flatten();
        let names = state.map(|entry| entry.file_name().to_string_lossy().into_owned());
        assert_eq!(names.filter(|name| name.contains("ledgers")).collect::<Vec<_>>(), [""; 0]);
    }

    /// The postmasters whose data directories lie in this world: by their working directory, so
    /// only ours.
    pub fn servers(&self) -> Vec<i32> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
            let Ok(cwd) = std::fs::read_link(entry.path().join("cwd")) else { continue };
            if cwd.starts_with(self.disk()) && cwd.join("postmaster.pid").exists() {
                let first = std::fs::read_to_string(cwd.join("postmaster.pid")).unwrap_or_default();
                if first.lines().next().and_then(|l| l.trim().parse().ok()) == Some(pid) {
                    found.push(pid);
                }
            }
        }
        found
    }

    /// Waits until `what` happens; fails after a minute.
    pub fn until(&self, what: &str, mut happened: impl FnMut() -> bool) {
        wait_for(what, || happened().then_some(()));
    }

    /// Waits until a process ends that is no child of this test's. It is later than its run: it
    /// tells the command of `--notify`.
    pub fn until_gone(&self, pid: i32) {
        self.until("the process to end", || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            // Its parent may take its time to ask how it ended.
            stat.map_or(true, |stat| stat.rsplit_once(") ").is_none_or(|(_, f)| f.starts_with('Z')))
        });
    }

    /// The completed trials of the newest run, read from the store beside a process that may be
    /// writing it.
    pub fn trials_stored(&self) -> i64 {
        read_column(&self.store(), "SELECT count(*) FROM trial").map_or(0, |counts| counts[0])
    }

    /// The store of this world's runs.
    pub fn store(&self) -> PathBuf {
        self.path("data/pgdyno/store.sqlite3")
    }
}

/// The one column that `sql` reads in a store, also beside a process that may be writing it.
pub fn read_column<T: rusqlite::types::FromSql>(
    store: &Path,
    sql: &str,
) -> rusqlite::Result<Vec<T>> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let store = rusqlite::Connection::open_with_flags(store, flags)?;
    let mut query = store.prepare(sql)?;
    query.query_map([], |row| row.get(0))?.collect()
}

/// Settings that leave one trial of the quickstart, for tests of a run's work around trials.
pub const ONE_TRIAL: [&str; 3] =
    ["factors.clients=[1]", "factors.synchronous_commit=[\"off\"]", "experiment.repeats=1"];

/// Has runs compared also where the load generator may have been the limit of one of them: the
/// tests beside it take the CPUs.
pub const FORCE: &str = "--force";

/// Returns the arguments of a short `run FILE-or-recipe`: its clusters lie on this world's disk,
/// and its load leaves the CPUs to the tests beside it. Later `sets` take the place of earlier
/// ones.
pub fn quick<'a>(world: &World, what: &'a str, sets: &[&'a str]) -> Vec<String> {
    at_full_speed(world, what, &[&["load.rate=100"], sets].concat())
}

/// Returns arguments like [`quick`], with a load as fast as the server answers.
pub fn at_full_speed<'a>(world: &World, what: &'a str, sets: &[&'a str]) -> Vec<String> {
    let disk = format!("storage.disk.directory={}", world.disk().display());
    // A file of the test's own names its workload.
    let workload =
        (what == "quickstart").then(|| format!("workload.name={}", world.small_workload()));
    let short = [
        disk.as_str(),
        "load.duration=1s",
        "load.warm_up=100ms",
        "workload.scale=1",
        "telemetry.fsync=20ms",
        "experiment.repeats=3",
    ];
    let short = short.into_iter().chain(workload.as_deref());
    with_sets(&["run", what], short.chain(sets.iter().copied()))
}

/// Returns `words` with a `--set` for each of `sets`.
pub fn with_sets<'a>(words: &[&str], sets: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let sets = sets.into_iter().flat_map(|set| ["--set", set]);
    words.iter().copied().chain(sets).map(str::to_owned).collect()
}

/// Returns whether the file exists and is not empty.
pub fn is_filled(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.len() > 0)
}

/// The answer to an HTTP request, such as `GET /`, on a port of this machine; none where nobody
/// listens.
pub fn ask(port: u16, request: &str) -> Option<String> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request = format!("{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    let _ = connection.read_to_end(&mut answer);
    Some(String::from_utf8(answer).unwrap())
}

/// The fixture `name` of the store's tests, unpacked.
pub fn unpacked(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../store/tests/fixtures/store");
    let file = std::fs::File::open(Path::new(folder).join(name)).unwrap();
    let mut bytes = Vec::new();
    lzma_rust2::XzReader::new(file, false).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Writes a store of pgdyno 0.1.0 to `path`.
pub fn write_old_store(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, unpacked("0.1.0.sqlite3.xz")).unwrap();
}

/// The elements of an array.
pub fn elements(array: &serde_json::Value) -> std::slice::Iter<'_, serde_json::Value> {
    array.as_array().unwrap().iter()
}

/// The document in the file.
pub fn read_json(path: impl AsRef<Path>) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Sends a signal to a process of this test's.
pub fn signal(pid: impl std::fmt::Display, name: &str) {
    let status =
        Command::new("/bin/sh").args(["-c", &format!("kill -{name} {pid}")]).status().unwrap();
    assert!(status.success());
}
