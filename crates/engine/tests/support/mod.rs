//! A real server for tests, and a plain way to ask it things.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pgdyno_engine::connect::{self, Stream};
use pgdyno_engine::script::{Script, Value};
use pgdyno_engine::{LoadSpec, Watch, WeightedScript};
use pgdyno_model::experiment::{Length, Protocol};
use pgdyno_model::target::{Address, Secret, Target};
use pgdyno_model::units::Span;
use pgdyno_wire::{Message, frontend, next_frame};

pub const PASSWORD: &str = "correct horse";

/// TPC-B-like, one statement a line.
pub const TPCB: &str = "\
\\set aid random(1, 1000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM accounts WHERE aid = :aid;
UPDATE tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
";

/// Tables for [`TPCB`] at scale 1.
pub const TPCB_TABLES: &str = "
    CREATE TABLE accounts (aid int PRIMARY KEY, abalance int NOT NULL DEFAULT 0);
    CREATE TABLE tellers (tid int PRIMARY KEY, tbalance int NOT NULL DEFAULT 0);
    CREATE TABLE branches (bid int PRIMARY KEY, bbalance int NOT NULL DEFAULT 0);
    CREATE TABLE history (tid int, bid int, aid int, delta int, mtime timestamp);
    INSERT INTO accounts SELECT generate_series(1, 1000);
    INSERT INTO tellers SELECT generate_series(1, 10);
    INSERT INTO branches VALUES (1);";

/// The folder of the server's programs; none where the machine has none.
pub fn bindir() -> Option<PathBuf> {
    let holds = |dir: &Path| dir.join("initdb").is_file() && dir.join("postgres").is_file();
    if let Some(dir) = std::env::var_os("PGDYNO_TEST_BINDIR") {
        return Some(PathBuf::from(dir));
    }
    let mut found: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|dir| holds(dir))
        .collect();
    found.sort();
    found.pop().or_else(|| std::env::split_paths(&std::env::var_os("PATH")?).find(|dir| holds(dir)))
}

/// Says that a test cannot run here; in CI that is a failure unless it is listed.
pub fn skipped(test: &str, reason: &str) {
    println!("skipped: {test}: {reason}");
    if std::env::var("CI").as_deref() == Ok("true") {
        let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/allowed-skips");
        let allowed = fs::read_to_string(list).unwrap_or_default();
        let listed = allowed.lines().any(|line| line.split_whitespace().next() == Some(test));
        assert!(listed, "{test} was skipped in CI and is not listed in .ci/allowed-skips");
    }
}

/// A server of this test's own.
pub struct Server {
    child: Child,
    dir: tempfile::TempDir,
    port: u16,
}

/// The user that servers run as when tests run as root: root is refused by the server's programs.
fn unprivileged() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    let ids = |name: &str| {
        let line = passwd.lines().find(|l| l.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2).map(str::parse::<u32>);
        Some((fields.next()?.ok()?, fields.next()?.ok()?))
    };
    Some(ids("postgres").or_else(|| ids("nobody")).expect("a user to run a server as"))
}

fn program(path: PathBuf, dir: &Path) -> Command {
    let mut command = Command::new(path);
    command.current_dir(dir).env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C").stdin(Stdio::null());
    if let Some((uid, gid)) = unprivileged() {
        command.uid(uid).gid(gid);
    }
    command
}

impl Server {
    /// Starts one, or says that `test` is skipped.
    pub fn start(test: &str) -> Option<Self> {
        let Some(bindir) = bindir() else {
            skipped(test, "no PostgreSQL server on this machine");
            return None;
        };
        // Short: a socket's path holds 107 bytes.
        let dir = tempfile::Builder::new().prefix("pgdyno-t").tempdir_in("/tmp").unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let data = dir.path().join("data");
        fs::create_dir(&data).unwrap();
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
        let log = dir.path().join("log");
        fs::write(dir.path().join("pw"), PASSWORD).unwrap();
        for path in [dir.path(), &data] {
            if let Some((uid, gid)) = unprivileged() {
                chown(path, Some(uid), Some(gid)).unwrap();
            }
        }
        let initdb = program(bindir.join("initdb"), dir.path())
            .args(["-D", "data", "-U", "postgres", "--pwfile=pw", "-E", "UTF8", "--no-locale", "-N"])
            .output()
            .unwrap();
        assert!(initdb.status.success(), "{}", String::from_utf8_lossy(&initdb.stderr));
        let hba = "local all all trust\n\
                   host all md5user 127.0.0.1/32 md5\n\
                   host all plain 127.0.0.1/32 password\n\
                   host all all 127.0.0.1/32 scram-sha-256\n";
        fs::write(data.join("pg_hba.conf"), hba).unwrap();
        // Another may take the port between asking and starting: then another is asked for.
        for _ in 0..5 {
            let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut child = program(bindir.join("postgres"), dir.path())
                .args(["-D", "data", "-k", dir.path().to_str().unwrap(), "-h", "127.0.0.1", "-F"])
                .args(["-p", &port.to_string(), "-c", "max_connections=50", "-c", "shared_buffers=16MB"])
                .stdout(Stdio::null())
                .stderr(fs::File::create(&log).unwrap())
                .spawn()
                .unwrap();
            let target = target(unix(dir.path(), port), "postgres");
            let deadline = Instant::now() + Duration::from_secs(60);
            while child.try_wait().unwrap().is_none() {
                assert!(Instant::now() < deadline, "{}", fs::read_to_string(&log).unwrap());
                if connect::connect(&target, Duration::from_secs(5)).is_ok() {
                    return Some(Self { child, dir, port });
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        panic!("the server does not start: {}", fs::read_to_string(&log).unwrap());
    }

    /// By Unix socket, as the superuser.
    pub fn unix(&self) -> Target {
        target(unix(self.dir.path(), self.port), "postgres")
    }

    /// By TCP, as `user`.
    pub fn tcp(&self, user: &str, password: Option<&str>) -> Target {
        let address = Address::Tcp { host: "127.0.0.1".into(), port: self.port };
        Target { password: password.map(|p| Secret::new(p.into())), ..target(address, user) }
    }

    /// Kills the server without a chance to tell anyone.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let pid = rustix::process::Pid::from_child(&self.child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        }
        let _ = self.child.wait();
    }
}

fn unix(directory: &Path, port: u16) -> Address {
    Address::Unix { directory: directory.to_owned(), port }
}

pub fn target(address: Address, user: &str) -> Target {
    Target { address, user: user.into(), password: None, database: "postgres".into(), settings: Vec::new() }
}

/// A connection that blocks, for asking things.
pub struct Session {
    stream: Stream,
    received: Vec<u8>,
}

impl Session {
    pub fn new(target: &Target) -> Self {
        let stream = connect::connect(target, Duration::from_secs(10)).unwrap().stream;
        match &stream {
            Stream::Unix(s) => s.set_nonblocking(false).unwrap(),
            Stream::Tcp(s) => s.set_nonblocking(false).unwrap(),
        }
        Self { stream, received: Vec::new() }
    }

    /// Runs `sql` and returns the first value of the last row, if any. Errors are for the test.
    pub fn ask(&mut self, sql: &str) -> Option<String> {
        let mut out = Vec::new();
        frontend::query(&mut out, sql.as_bytes()).unwrap();
        match &mut self.stream {
            Stream::Unix(s) => s.write_all(&out).unwrap(),
            Stream::Tcp(s) => s.write_all(&out).unwrap(),
        }
        let mut answer = None;
        loop {
            while let Some(frame) = next_frame(&self.received).unwrap() {
                let length = frame.len();
                let mut ready = false;
                match Message::read(frame).unwrap() {
                    Message::DataRow(row) => {
                        let value = row.values().next().flatten();
                        answer = value.map(|v| String::from_utf8(v.to_vec()).unwrap());
                    }
                    Message::ErrorResponse(e) => panic!("{sql}: {}", e.message()),
                    Message::ReadyForQuery(_) => ready = true,
                    _ => {}
                }
                self.received.drain(..length);
                if ready {
                    return answer;
                }
            }
            let mut scratch = [0; 8192];
            let n = match &mut self.stream {
                Stream::Unix(s) => s.read(&mut scratch).unwrap(),
                Stream::Tcp(s) => s.read(&mut scratch).unwrap(),
            };
            assert_ne!(n, 0, "the server closed the connection during {sql}");
            self.received.extend_from_slice(&scratch[..n]);
        }
    }

    /// As [`Session::ask`], for a number.
    pub fn count(&mut self, sql: &str) -> u64 {
        self.ask(sql).unwrap().parse().unwrap()
    }
}

/// A load of one script on `target`; tests change what they are about.
pub fn spec(target: Target, script: &str) -> LoadSpec {
    let one = std::num::NonZeroU32::MIN;
    LoadSpec {
        target,
        scripts: vec![WeightedScript { script: Script::parse("test", script).unwrap().into(), weight: 1 }],
        clients: one,
        threads: one,
        protocol: Protocol::Simple,
        warm_up: Duration::ZERO,
        length: Length::Transactions(10),
        seed: 42,
        variables: vec![("scale".into(), Value::Int(1))],
    }
}

/// As [`Length::Duration`] has it.
pub fn lasting(span: Duration) -> Length {
    Length::Duration(Span(span))
}

/// Nobody watches.
pub fn unwatched(stop: &AtomicBool) -> Watch<'_> {
    Watch { stop, on_open: &|_| {}, on_second: &|_| {} }
}
