//! One of the programs, run with the same arguments.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike as _};
use perf_event::events::Hardware;
use perf_event::{Builder, Counter};
use pgdyno_test_support::peak_memory_kb;

use super::Anything;

/// The word by which the bench's own binary becomes `pgdyno pgbench`.
pub(crate) const AS_PGDYNO: &str = "--as-pgdyno";

/// The word by which it becomes a bare client.
pub(crate) const AS_BARE: &str = "--as-bare";

/// How to connect.
pub(crate) struct Connection {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: String,
    pub(crate) password: Option<String>,
}

/// pgbench, pgdyno, or the bare client.
pub(crate) struct Side {
    program: PathBuf,
    before: Option<&'static str>,
}

/// The load that each side offers.
pub(crate) struct Run<'a> {
    pub(crate) clients: u32,
    pub(crate) protocol: &'a str,
    pub(crate) options: &'a [&'a str],
    pub(crate) script: &'a Path,
    pub(crate) seconds: u32,
    pub(crate) connection: &'a Connection,
    pub(crate) logs: &'a Path,
}

/// Figures of one run of one side.
pub(crate) struct Seen {
    /// CPU time of the client for a transaction (microseconds).
    pub(crate) cpu_us: f64,
    /// Cycles of the client for a transaction, the kernel's included (count); none where the
    /// machine counts none.
    pub(crate) cycles: Option<f64>,
    pub(crate) tps: f64,
    pub(crate) memory_kb: f64,
    /// 99th percentile of latency in the transaction log (microseconds); none without a log.
    pub(crate) p99_us: Option<f64>,
}

impl Side {
    pub(crate) fn pgbench(program: &Path) -> Self {
        Self { program: program.to_owned(), before: None }
    }

    pub(crate) fn pgdyno() -> std::io::Result<Self> {
        Ok(Self { program: std::env::current_exe()?, before: Some(AS_PGDYNO) })
    }

    pub(crate) fn bare() -> std::io::Result<Self> {
        Ok(Self { program: std::env::current_exe()?, before: Some(AS_BARE) })
    }

    fn command(&self, connection: &Connection) -> Command {
        let mut command = Command::new(&self.program);
        command.args(self.before);
        command.args([
            "-h",
            &connection.host,
            "-p",
            &connection.port.to_string(),
            "-U",
            &connection.user,
        ]);
        if let Some(password) = &connection.password {
            command.env("PGPASSWORD", password);
        }
        command.stdin(Stdio::null());
        command
    }

    /// Makes pgbench's tables.
    pub(crate) fn initialize(&self, connection: &Connection, scale: u32) -> Result<(), Anything> {
        let made = self
            .command(connection)
            .args(["-i", "-q", "-s", &scale.to_string(), "postgres"])
            .output()?;
        if made.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&made.stderr).into_owned().into())
        }
    }

    /// Runs once; with a log of a tenth of the transactions, or all where a rate makes them few,
    /// where the latencies are wanted.
    pub(crate) fn run(&self, run: &Run<'_>, logged: bool) -> Result<Seen, Anything> {
        let mut command = self.command(run.connection);
        command.args(["-n", "-M", run.protocol, "-c", &run.clients.to_string(), "-j", "1"]);
        command.args(["-T", &run.seconds.to_string(), "-D", "scale=10"]);
        command.args(run.options).arg("-f").arg(run.script);
        let logs = tempfile::tempdir_in(run.logs)?;
        if logged {
            // At a rate there are few.
            let share = if run.options.contains(&"-R") { "1" } else { "0.1" };
            command
                .args(["-l", "--sampling-rate", share, "--log-prefix"])
                .arg(logs.path().join("log"));
        }
        let mut counter = next_childs_cycles().ok();
        let before = children_cpu_us()?;
        let mut child =
            command.arg("postgres").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut memory_kb = 0.0_f64;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            memory_kb = memory_kb.max(peak_memory_kb(child.id()).unwrap_or(0.0));
            std::thread::sleep(Duration::from_millis(50));
        };
        let cpu = children_cpu_us()? - before;
        let cycles = counter.as_mut().map(Counter::read).transpose()?;
        let (mut out, mut err) = (String::new(), String::new());
        if let (Some(mut o), Some(mut e)) = (child.stdout.take(), child.stderr.take()) {
            o.read_to_string(&mut out)?;
            e.read_to_string(&mut err)?;
        }
        let number = |after: &str| -> Option<f64> {
            let rest = &out[out.find(after)? + after.len()..];
            rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?.parse().ok()
        };
        let (Some(transactions), Some(tps), true) =
            (number("transactions actually processed: "), number("tps = "), status.success())
        else {
            return Err(
                format!("{} ended with {status}:\n{out}{err}", self.program.display()).into()
            );
        };
        let p99_us = if logged { p99(logs.path())? } else { None };
        let each = |sum: f64| sum / transactions.max(1.0);
        Ok(Seen {
            cpu_us: each(cpu),
            cycles: cycles.map(|n| each(n as f64)),
            tps,
            memory_kb,
            p99_us,
        })
    }
}

/// CPU time, user and system, of all children that were waited for (microseconds).
fn children_cpu_us() -> Result<f64, Anything> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let microseconds = |time: TimeVal| time.num_microseconds() as f64;
    Ok(microseconds(usage.user_time()) + microseconds(usage.system_time()))
}

/// A counter of the cycles that the programs which this thread starts next spend, in their own code
/// and in the kernel's; what a hypervisor does meanwhile is not in it.
///
/// # Errors
/// The machine has no such counter, or does not show it.
pub(crate) fn next_childs_cycles() -> std::io::Result<Counter> {
    let mut counter = Builder::new(Hardware::CPU_CYCLES);
    counter.include_kernel().inherit(true).enabled(false).enable_on_exec(true).build()
}

/// The 99th percentile of the third column of all logs in `folder`.
fn p99(folder: &Path) -> Result<Option<f64>, Anything> {
    let mut latencies = Vec::new();
    for entry in std::fs::read_dir(folder)?.flatten() {
        let text = std::fs::read_to_string(entry.path())?;
        latencies
            .extend(text.lines().filter_map(|l| l.split_whitespace().nth(2)?.parse::<f64>().ok()));
    }
    latencies.sort_by(f64::total_cmp);
    Ok(latencies.get(latencies.len() * 99 / 100).copied())
}
