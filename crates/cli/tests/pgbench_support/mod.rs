//! Runs the pgbench of each major version and `pgdyno pgbench` side by side, on a server of that
//! version that the test made.

// Each test file uses its own part; helpers of tests fail as tests do.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::print_stdout)]

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use pgdyno_test_support::skip;

/// The majors whose pgbench ours is held against.
const MAJORS: [u32; 4] = [15, 16, 17, 18];

/// Where the programs of PostgreSQL `major` lie: of those that `.ci/postgresql` fetches, in the
/// folder that PGDYNO_TEST_POSTGRESQL names; or as Debian installs them.
fn programs(major: u32) -> Option<PathBuf> {
    let fetched = std::env::var_os("PGDYNO_TEST_POSTGRESQL").map(PathBuf::from);
    let fetched = fetched.map(|folder| folder.join(major.to_string()).join("bin"));
    let debian = PathBuf::from(format!("/usr/lib/postgresql/{major}/bin"));
    let all = ["initdb", "postgres", "psql", "pgbench"];
    fetched
        .into_iter()
        .chain([debian])
        .find(|directory| all.iter().all(|program| directory.join(program).exists()))
}

/// The account that runs the server: not root.
fn account() -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt;
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return None;
    }
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    let ids = |name: &str| {
        let line = passwd.lines().find(|l| l.starts_with(&format!("{name}:")))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    Some(ids("postgres").or_else(|| ids("nobody")).unwrap())
}

/// A server of this test's own; it ends with this value.
pub struct Server {
    /// The major version of the server and of the pgbench that ours is held against.
    pub major: u32,
    programs: PathBuf,
    root: tempfile::TempDir,
    child: Child,
}

pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Server {
    /// A running server of each major version that there is a pgbench of, one after the other, with
    /// the databases `ref` and `our`. Where one is not installed, a word about it.
    pub fn each(test: &str) -> impl Iterator<Item = Self> {
        MAJORS.into_iter().filter_map(move |major| {
            let Some(programs) = programs(major) else {
                let why = format!("no pgbench {major} to compare with (.ci/postgresql fetches it)");
                skip(test, &why);
                return None;
            };
            Some(Self::start(major, programs))
        })
    }

    /// A running server of the newest version that there is.
    pub fn newest(test: &str) -> Option<Self> {
        let newest = MAJORS.into_iter().rev().find_map(|major| Some((major, programs(major)?)));
        if newest.is_none() {
            skip(test, "no installed pgbench to compare with");
        }
        newest.map(|(major, programs)| Self::start(major, programs))
    }

    fn start(major: u32, programs: PathBuf) -> Self {
        let root = tempfile::Builder::new().prefix("pgdyno-test-").tempdir().unwrap();
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let home = root.path().join("server");
        std::fs::create_dir(&home).unwrap();
        let account = account();
        if let Some((uid, gid)) = account {
            chown(&home, Some(uid), Some(gid)).unwrap();
        }
        let command = |program: &str| {
            let mut command = Command::new(programs.join(program));
            command.current_dir(&home).stdin(Stdio::null()).stdout(Stdio::null());
            if let Some((uid, gid)) = account {
                command.uid(uid).gid(gid);
            }
            command
        };
        let made = command("initdb")
            .args(["-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C", "-D"])
            .arg(home.join("data"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let log = std::fs::File::create(root.path().join("server.log")).unwrap();
        let child = command("postgres")
            .arg("-D")
            .arg(home.join("data"))
            .args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=30", "-k"])
            .arg(&home)
            .stderr(log)
            .spawn()
            .unwrap();
        let server = Self { major, programs, root, child };
        let patience = Instant::now() + Duration::from_secs(60);
        while !server.psql("postgres", "select 1").status.success() {
            assert!(Instant::now() < patience, "the server did not come up within a minute");
            std::thread::sleep(Duration::from_millis(50));
        }
        for database in ["ref", "our"] {
            assert!(
                server.psql("postgres", &format!("create database {database}")).status.success()
            );
        }
        server
    }

    fn with_environment<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        command
            .env("PGHOST", self.root.path().join("server"))
            .env("PGUSER", "postgres")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
    }

    fn psql(&self, database: &str, sql: &str) -> Output {
        let mut command = Command::new(self.programs.join("psql"));
        self.with_environment(&mut command)
            .args(["-XAtq", "-d", database, "-c", sql])
            .output()
            .unwrap()
    }

    /// What a query answers in `database`.
    pub fn ask(&self, database: &str, sql: &str) -> String {
        let output = self.psql(database, sql);
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Runs a query in `database` that may be ended by somebody.
    pub fn asked(&self, database: &str, sql: &str) {
        self.psql(database, sql);
    }

    /// From now on the server asks `role` for its password.
    pub fn ask_for_passwords(&self, role: &str) {
        let hba = format!("local all {role} scram-sha-256\nlocal all all trust\n");
        std::fs::write(self.root.path().join("server/data/pg_hba.conf"), hba).unwrap();
        assert_eq!(self.ask("postgres", "SELECT pg_reload_conf()"), "t");
        // The postmaster answers before it has read it.
        let read = "SELECT count(*) FROM pg_hba_file_rules WHERE auth_method = 'scram-sha-256' \
                    AND pg_conf_load_time() > pg_postmaster_start_time()";
        let patience = Instant::now() + Duration::from_secs(60);
        while self.ask("postgres", read) != "1" {
            assert!(
                Instant::now() < patience,
                "the server did not read its pg_hba.conf within a minute"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The directory that `who` works in.
    pub fn directory(&self, who: &str) -> PathBuf {
        let directory = self.root.path().join(who);
        std::fs::create_dir_all(&directory).unwrap();
        directory
    }

    /// Puts a script where both find it.
    pub fn script(&self, name: &str, text: &str) {
        for who in ["ref", "our"] {
            std::fs::write(self.directory(who).join(name), text).unwrap();
        }
    }

    /// A command for the server's pgbench (`ref`) or ours of the same version (`our`), without
    /// arguments.
    pub fn command(&self, who: &str) -> Command {
        let mut command = match who {
            "ref" => Command::new(self.programs.join("pgbench")),
            _ => {
                let mut ours = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
                ours.args(["pgbench", &format!("--dialect={}", self.major)]);
                ours
            }
        };
        self.with_environment(&mut command).current_dir(self.directory(who));
        command.env("PGDATABASE", who);
        command
    }

    /// Runs `args` (in words) as `who`.
    pub fn run(&self, who: &str, args: &str) -> Ended {
        let words = args.split_whitespace().map(|word| word.trim_matches('\''));
        let output = self.command(who).args(words).output().unwrap();
        ended(&output)
    }

    /// Runs `args` (in words) as ours, which finds out by itself which version they are for.
    pub fn run_undialected(&self, args: &str) -> Ended {
        let mut command = self.pgdyno_command();
        ended(
            &command
                .env("PGDATABASE", "our")
                .arg("pgbench")
                .args(args.split_whitespace())
                .output()
                .unwrap(),
        )
    }

    /// Runs `pgdyno` itself with `args` (in words).
    pub fn pgdyno(&self, args: &str) -> Ended {
        ended(&self.pgdyno_command().args(args.split_whitespace()).output().unwrap())
    }

    /// A command for `pgdyno` itself, without arguments.
    pub fn pgdyno_command(&self) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_pgdyno")))
    }

    /// A command for `name`, a program of the server's installation, without arguments.
    pub fn server_program(&self, name: &str) -> Command {
        self.command_of(&self.programs.join(name))
    }

    /// A command for `program`, without arguments.
    pub fn command_of(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        self.with_environment(&mut command).current_dir(self.directory("our"));
        command
    }

    /// Runs `args` with both, which must end with the same status and the same report but for the
    /// numbers; and both must say `phrases` on standard error. Ours is returned.
    pub fn same(&self, args: &str, phrases: &[&str]) -> Ended {
        let theirs = self.run("ref", args);
        let ours = self.run("our", args);
        let both = format!(
            "`{args}`\n--- pgbench {} ({:?}):\n{}{}\n--- pgdyno ({:?}):\n{}{}",
            self.major, theirs.code, theirs.out, theirs.err, ours.code, ours.out, ours.err
        );
        assert_eq!(theirs.code, ours.code, "{both}");
        assert_eq!(normal(&theirs.out), normal(&ours.out), "{both}");
        for phrase in phrases {
            assert!(theirs.err.contains(phrase), "pgbench does not say `{phrase}`: {both}");
            assert!(ours.err.contains(phrase), "pgdyno does not say `{phrase}`: {both}");
        }
        ours
    }

    /// The files in the directory of `who` whose names begin with `prefix`, by name.
    pub fn files(&self, who: &str, prefix: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.directory(who)).unwrap().flatten();
        let mut files: Vec<PathBuf> = entries.map(|e| e.path()).collect();
        files.retain(|f| f.file_name().unwrap().to_string_lossy().starts_with(prefix));
        files.sort();
        files
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // By its id; SIGINT asks for a fast shutdown.
        let _ = Command::new("/bin/kill").args(["-INT", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }
}

pub fn ended(output: &Output) -> Ended {
    Ended {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// What is said on standard error, without what differs from run to run and without hints: its
/// lines in order, every number as N.
pub fn words(err: &str) -> Vec<String> {
    let ours =
        |line: &str| line.starts_with("pgbench: hint: ") || line.starts_with("pgbench: note: ");
    // Of a debugging client, what it sends.
    let debugging = |line: &str| {
        // The second line of a parameter's value.
        line == "\""
            || line.starts_with("pgbench: ")
                && ["pghost: ", " executing ", " receiving", "parameter name: "]
                    .iter()
                    .any(|word| line.contains(word))
    };
    let kept = err.lines().filter(|line| !ours(line) && !debugging(line));
    let mut lines: Vec<String> = kept
        .map(|line| if line.contains(" sending ") { line.to_owned() } else { numbers_as_n(line) })
        .collect();
    // Of several clients it is chance which speaks first.
    lines.sort();
    lines
}

/// A report without what differs from run to run: every number as N, white space folded; and
/// without what pgdyno adds. Control characters of a script are written out, as pgdyno does and
/// pgbench does not.
pub fn normal(report: &str) -> String {
    let report = pgdyno_model::printable::escape_text(report);
    let mut lines = Vec::new();
    for line in report.lines().filter(|l| !l.starts_with("pgdyno: ")) {
        if line.starts_with("pgbench (") {
            lines.push("pgbench (VERSION)".to_owned());
            continue;
        }
        lines.push(numbers_as_n(line).split_whitespace().collect::<Vec<_>>().join(" "));
    }
    lines.join("\n")
}

/// Every number as N.
pub fn numbers_as_n(line: &str) -> String {
    let mut text = String::new();
    let mut in_number = false;
    for c in line.chars() {
        let numeric = c.is_ascii_digit() || (in_number && c == '.');
        if numeric && !in_number {
            text.push('N');
        } else if !numeric {
            text.push(c);
        }
        in_number = numeric;
    }
    text
}

/// Sends a signal to a process of this test's.
pub fn signal(pid: u32, name: &str) {
    let status =
        Command::new("/bin/kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap();
    assert!(status.success());
}

/// Whether the file's lines all have the same number of words, and how many.
pub fn columns(file: &Path) -> usize {
    let text = std::fs::read_to_string(file).unwrap();
    let counts: std::collections::BTreeSet<usize> =
        text.lines().map(|l| l.split(' ').count()).collect();
    assert_eq!(counts.len(), 1, "{}: {text}", file.display());
    counts.into_iter().next().unwrap()
}
