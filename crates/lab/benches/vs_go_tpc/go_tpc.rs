//! go-tpc, its command lines and its summary.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Options;
use super::runs::{Counts, SCRIPTS};
use super::support::{Anything, Server};

/// The version that the bench was written for: the first ones know only MySQL.
const VERSION: &str = "v1.0.12";

/// The module's name, as a Go program's build information has it.
const MODULE: &[u8] = b"mod\tgithub.com/pingcap/go-tpc\t";

/// The peer's program.
pub(crate) struct GoTpc {
    program: PathBuf,
    pub(crate) version: String,
}

impl GoTpc {
    /// Finds go-tpc by its path, or by its name on PATH.
    ///
    /// # Errors
    /// There is none, or it does not speak to PostgreSQL.
    pub(crate) fn find(program: &Path) -> Result<Self, Anything> {
        let help = format!(
            "help: go install github.com/pingcap/go-tpc/cmd/go-tpc@{VERSION}, or name it by --peer"
        );
        let asked = Command::new(program)
            .args(["tpcc", "prepare", "--help"])
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("cannot run {}: {e}\n{help}", program.display()))?;
        if !String::from_utf8_lossy(&asked.stdout).contains("postgres") {
            let name = program.display();
            return Err(format!("{name} does not know the driver postgres\n{help}").into());
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).map(|folder| folder.join(program));
        let program = found.into_iter().find(|file| file.is_file()).unwrap_or(program.into());
        let version = version(&program).unwrap_or_else(|| "of unknown version".to_owned());
        Ok(Self { program, version })
    }

    /// Returns the command that makes and loads the tables in `database`. Checks of the rows are
    /// left out.
    pub(crate) fn load(&self, server: &Server, database: &str, options: &Options) -> Command {
        let mut command = self.command("prepare", server, database, options);
        command.args(["--no-check", "-T", &options.jobs.to_string()]);
        command
    }

    /// Returns the command of one run.
    pub(crate) fn run(&self, server: &Server, database: &str, options: &Options) -> Command {
        let mut command = self.command("run", server, database, options);
        // A thread that meets an error would end.
        command.args(["--ignore-error", "-T", &options.clients.to_string()]);
        command.args(["--time", &format!("{}s", options.seconds)]);
        command
    }

    fn command(
        &self,
        action: &str,
        Server { socket, port, user, .. }: &Server,
        database: &str,
        options: &Options,
    ) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["tpcc", action, "-d", "postgres", "-U", user, "-D", database]);
        command.args(["--warehouses", &options.warehouses.to_string()]);
        // `-H` takes no socket's folder. An empty host and the parameter of lib/pq do.
        command.args(["--targets", &format!(":{port}")]);
        command.arg("--conn-params").arg(format!("host={}&sslmode=disable", socket.display()));
        command
    }
}

/// Reads the module's version from the build information in `program`.
fn version(program: &Path) -> Option<String> {
    let bytes = std::fs::read(program).ok()?;
    let at = bytes.windows(MODULE.len()).position(|window| window == MODULE)? + MODULE.len();
    let version: Vec<u8> =
        bytes[at..].iter().copied().take_while(|byte| !byte.is_ascii_whitespace()).collect();
    String::from_utf8(version).ok()
}

/// Reads the counts of a run from the lines of its summary, such as
/// `[Summary] NEW_ORDER - Takes(s): 19.9, Count: 3755, TPM: 11332.8, …`.
///
/// # Errors
/// There is no line of new orders.
pub(crate) fn summary(text: &str) -> Result<Counts, Anything> {
    let mut counts = Counts::default();
    for line in text.lines() {
        let Some((name, figures)) =
            line.strip_prefix("[Summary] ").and_then(|line| line.split_once(" - "))
        else {
            continue;
        };
        let figure = |name: &str| -> Option<f64> {
            let rest = &figures[figures.find(name)? + name.len()..];
            rest.split(',').next()?.trim().parse().ok()
        };
        let count = figure("Count:").ok_or("a line of go-tpc's summary has no count")?;
        let name = name.trim().to_lowercase();
        match SCRIPTS.iter().position(|script| *script == name) {
            Some(script) => counts.transactions[script] = count,
            None => counts.failed += count,
        }
        if name == SCRIPTS[0] {
            counts.seconds = figure("Takes(s):").unwrap_or_default();
        }
    }
    if counts.seconds > 0.0 {
        Ok(counts)
    } else {
        Err(format!("go-tpc printed no new orders: {text}").into())
    }
}
