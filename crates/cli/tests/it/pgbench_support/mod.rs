//! Runs the pgbench of each major version and `pgdyno pgbench` side by side, on a server of that
//! version that the test made.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use pgdyno_test_support::{pgbench_folders, wait_for};

pub use crate::support::{Ended, ended, signal};

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
    // Before the folder: values are dropped in this order.
    process: Process,
    root: tempfile::TempDir,
}

/// A postmaster; it is stopped with this value.
struct Process(Child);

impl Server {
    /// A running server of each major version to compare with, one after the other, with the
    /// databases `ref` and `our`.
    pub fn each(test: &str) -> impl Iterator<Item = Self> {
        pgbench_folders(test).into_iter().map(|(major, programs)| Self::start(major, programs))
    }

    /// Calls `check` with a running server of each major version, all at once: for tests that
    /// mostly wait.
    pub fn each_at_once(test: &str, check: impl Fn(Self) + Sync) {
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                Self::each(test).map(|server| scope.spawn(|| check(server))).collect();
            for thread in threads {
                // The panic has been shown already; the scope ends with it.
                thread.join().unwrap();
            }
        });
    }

    /// A running server of the newest of these versions.
    pub fn newest(test: &str) -> Option<Self> {
        pgbench_folders(test).pop().map(|(major, programs)| Self::start(major, programs))
    }

    fn start(major: u32, programs: PathBuf) -> Self {
        let root = tempfile::Builder::new().prefix("pgdyno-test-").tempdir().unwrap();
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let home = root.path().join("server");
        std::fs::create_dir(&home).unwrap();
        if let Some((uid, gid)) = account() {
            chown(&home, Some(uid), Some(gid)).unwrap();
        }
        let template = template(major, &programs);
        if template.exists() {
            copy(&template, &home.join("data"));
            return Self::serve(major, programs, root);
        }
        let made = as_account(&programs.join("initdb"), &home)
            .args(["-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C", "-D"])
            .arg(home.join("data"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let server = Self::serve(major, programs, root);
        for database in ["ref", "our"] {
            assert!(
                server.psql("postgres", &format!("create database {database}")).status.success()
            );
        }
        // Stopped in good order, its directory is the template of all later servers.
        let (major, programs, root) = server.stop();
        let unfinished = tempfile::tempdir_in(template.parent().unwrap()).unwrap();
        copy(&root.path().join("server/data"), &unfinished.path().join("data"));
        // Another test may have been quicker, with a template as good as this one.
        let _ = std::fs::rename(unfinished.path().join("data"), &template);
        Self::serve(major, programs, root)
    }

    /// Starts a server of the data directory that `root` has.
    fn serve(major: u32, programs: PathBuf, root: tempfile::TempDir) -> Self {
        let home = root.path().join("server");
        let log = std::fs::File::create(root.path().join("server.log")).unwrap();
        let child = as_account(&programs.join("postgres"), &home)
            .arg("-D")
            .arg(home.join("data"))
            .args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=30", "-k"])
            .arg(&home)
            .stderr(log)
            .spawn()
            .unwrap();
        let process = Process(child);
        let server = Self { major, programs, process, root };
        wait_for("the server to come up", || server.is_ready().then_some(()));
        server
    }

    /// Whether the server takes connections, as the eighth line of its `postmaster.pid` says.
    fn is_ready(&self) -> bool {
        let said = std::fs::read_to_string(self.root.path().join("server/data/postmaster.pid"));
        said.is_ok_and(|said| said.lines().nth(7).is_some_and(|state| state.trim_end() == "ready"))
    }

    /// Stops the server in good order; its directory stays.
    fn stop(self) -> (u32, PathBuf, tempfile::TempDir) {
        let Self { major, programs, process, root } = self;
        drop(process);
        (major, programs, root)
    }

    /// Ends the server as a crash of a process does. Its directory stays, and
    /// [`Server::start_again`] serves it.
    pub fn crash(&mut self) {
        self.process.end("QUIT");
    }

    /// Starts the server again that has ended.
    pub fn start_again(self) -> Self {
        let (major, programs, root) = self.stop();
        Self::serve(major, programs, root)
    }

    /// The id of the postmaster's process.
    pub fn process_id(&self) -> u32 {
        self.process.0.id()
    }

    /// The folder of the server's socket.
    pub fn socket_folder(&self) -> PathBuf {
        self.root.path().join("server")
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

    /// Runs a query in `database` and returns its output.
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
        let is_read = || (self.ask("postgres", read) == "1").then_some(());
        wait_for("the server to read its pg_hba.conf", is_read);
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
        ended(output)
    }

    /// Fills both databases with pgbench's tables.
    pub fn fill(&self) {
        for who in ["ref", "our"] {
            self.run(who, "-i -q -I dtGvp").exits(0);
        }
    }

    /// Runs `args` (in words) as ours, which finds out by itself which version they are for.
    pub fn run_undialected(&self, args: &str) -> Ended {
        let mut command = self.pgdyno_command();
        ended(
            command
                .env("PGDATABASE", "our")
                .arg("pgbench")
                .args(args.split_whitespace())
                .output()
                .unwrap(),
        )
    }

    /// Runs `pgdyno` itself with `args` (in words).
    pub fn pgdyno(&self, args: &str) -> Ended {
        ended(self.pgdyno_command().args(args.split_whitespace()).output().unwrap())
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
        let (theirs, ours) = (self.run("ref", args), self.run("our", args));
        self.assert_same(args, phrases, &theirs, &ours);
        ours
    }

    /// Asserts what [`Server::same`] does of two runs that have ended.
    pub fn assert_same(&self, args: &str, phrases: &[&str], theirs: &Ended, ours: &Ended) {
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

impl Process {
    /// Sends `signal` and waits for the end, unless it has ended.
    fn end(&mut self, signal: &str) {
        if matches!(self.0.try_wait(), Ok(None)) {
            // By its id.
            let id = self.0.id().to_string();
            let _ = Command::new("/bin/kill").args([&format!("-{signal}"), &id]).status();
            let _ = self.0.wait();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGINT asks for a fast shutdown.
        self.end("INT");
    }
}

/// Where the data directory lies that servers of `programs` begin with: two empty databases, made
/// once for all test programs, as initdb takes a second.
fn template(major: u32, programs: &Path) -> PathBuf {
    let version = Command::new(programs.join("postgres")).arg("--version").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let words = version.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let version = words.collect::<Vec<_>>().join("-");
    let owner = account().map_or_else(String::new, |(uid, _)| format!("-{uid}"));
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pgbench-{major}-{version}{owner}"))
}

/// Copies the directory `from` with owners and modes.
fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(status.success(), "cp {from:?} {to:?}");
}

/// A command for `program` in `home`, under the account that runs the server.
fn as_account(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(home).stdin(Stdio::null()).stdout(Stdio::null());
    if let Some((uid, gid)) = account() {
        command.uid(uid).gid(gid);
    }
    command
}

/// Returns the lines of standard error in order, every number as N, without hints and without what
/// differs from run to run.
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
    let report = pgdyno_text::printable::escape_text(report);
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

/// Whether the file's lines all have the same number of words, and how many.
pub fn columns(file: &Path) -> usize {
    let text = std::fs::read_to_string(file).unwrap();
    let counts: std::collections::BTreeSet<usize> =
        text.lines().map(|l| l.split(' ').count()).collect();
    assert_eq!(counts.len(), 1, "{}: {text}", file.display());
    counts.into_iter().next().unwrap()
}
