//! pgdyno's bulk load beside `pgbench -i` and beside COPY of a prepared text file: in turn (A B, B
//! A, …), into one managed server with the same settings, each from a database just made and a
//! CHECKPOINT to keys and VACUUM. What is printed are ratios pgdyno ÷ the other: medians over the
//! pairs with a bootstrap interval.
//!
//!     cargo bench -p pgdyno-lab --bench vs_load -- \
//!         [--pairs N] [--scale N] [--only WORDS] [--minimal]
//!
//! Server CPU is that of the load's backends and their workers; it says more than time on a machine
//! that does other work besides. Client CPU is user and system time of the whole process, start-up
//! included. `--minimal` has the server run under wal_level = minimal.

use std::io::Write as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::Parser;
use pgdyno_exec::account::server_account;
use pgdyno_exec::directory::StorageDirectory;
use pgdyno_exec::journal::Journal;
use pgdyno_exec::paths;
use pgdyno_lab::load::{ConnectOptions, Existing, Load, load};
use pgdyno_model::experiment::Loading;
use pgdyno_model::load_strategy::LoadStrategy;
use pgdyno_model::progress::Silent;
use pgdyno_model::target::Address;
use pgdyno_postgres::cluster::cluster_directory;
use pgdyno_postgres::{Cluster, ClusterSpec, find};
use pgdyno_test_support::{Interval, peak_memory_kb};

/// The word by which the bench's own binary becomes `pgdyno load`.
const AS_PGDYNO: &str = "--as-pgdyno-load";
const DATABASE: &str = "bench";

type Anything = Box<dyn std::error::Error>;

/// One line of the table: what pgdyno loads, and beside what.
struct Cell {
    name: &'static str,
    workload: &'static str,
    /// Times the bench's `--scale`.
    scale: u32,
    partitions: u32,
    jobs: u32,
    strategy: &'static str,
    beside: Beside,
    /// Targets for the ratios of time and of client CPU; infinite without a target.
    target: (f64, f64),
}

#[derive(Clone, Copy, PartialEq)]
enum Beside {
    /// `pgbench -i`.
    Pgbench,
    /// `pgbench -i --partitions=2`.
    PgbenchPartitions,
    /// COPY … FROM 'file' WITH (FREEZE), then the key, then VACUUM (ANALYZE).
    TextCopy,
}

const NONE: f64 = f64::INFINITY;

#[rustfmt::skip]
const CELLS: &[Cell] = &[
    Cell { name: "pgbench's tables", workload: "tpcb-like", scale: 50, partitions: 0, jobs: 2,
           strategy: "", beside: Beside::Pgbench, target: (0.85, 0.15) },
    Cell { name: "the same, larger", workload: "tpcb-like", scale: 200, partitions: 0, jobs: 2,
           strategy: "", beside: Beside::Pgbench, target: (0.85, 0.15) },
    Cell { name: "the same, chunks", workload: "tpcb-like", scale: 50, partitions: 0, jobs: 2,
           strategy: "chunks", beside: Beside::Pgbench, target: (NONE, 0.15) },
    Cell { name: "2 partitions", workload: "tpcb-like", scale: 50, partitions: 2, jobs: 2,
           strategy: "", beside: Beside::Pgbench, target: (0.65, 0.15) },
    Cell { name: "2 partitions, larger", workload: "tpcb-like", scale: 200, partitions: 2, jobs: 2,
           strategy: "", beside: Beside::Pgbench, target: (0.65, 0.15) },
    Cell { name: "2 partitions, both", workload: "tpcb-like", scale: 50, partitions: 2, jobs: 2,
           strategy: "", beside: Beside::PgbenchPartitions, target: (NONE, 0.15) },
    Cell { name: "numbers", workload: "numbers", scale: 5, partitions: 0, jobs: 2,
           strategy: "", beside: Beside::TextCopy, target: (0.75, NONE) },
];

#[derive(Parser)]
struct Options {
    /// Pairs of loads for each line of the table.
    #[arg(long, default_value_t = 3)]
    pairs: u32,
    /// Share of each line's scale (%).
    #[arg(long, default_value_t = 100)]
    scale: u32,
    /// Only lines with these words in their name.
    #[arg(long)]
    only: Option<String>,
    /// Run the server with `wal_level = minimal`.
    #[arg(long)]
    minimal: bool,
    /// Cargo adds this flag.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Options by which [`Bench::ours`] tells a child what to load.
#[derive(Parser)]
struct OursOptions {
    #[arg(long)]
    workload: String,
    #[arg(long)]
    scale: NonZeroU32,
    #[arg(long)]
    partitions: u32,
    #[arg(long)]
    jobs: NonZeroU32,
    #[arg(long)]
    strategy: String,
    #[arg(long)]
    host: String,
    #[arg(long)]
    port: String,
    #[arg(long)]
    user: String,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        // Its first argument stands where a program's name does.
        Some(AS_PGDYNO) => as_pgdyno(OursOptions::parse_from(&arguments)),
        _ => compare(&Options::parse()),
    };
    if let Err(e) = done {
        let _ = writeln!(std::io::stderr(), "error: {e}");
        std::process::exit(1);
    }
}

/// Loads as `pgdyno load` does.
fn as_pgdyno(options: OursOptions) -> Result<(), Anything> {
    let it = Load {
        workload: options.workload,
        scale: options.scale,
        seed: 1,
        loading: Loading {
            partitions: options.partitions,
            jobs: Some(options.jobs),
            ..Loading::default()
        },
        strategy: (options.strategy == "chunks").then_some(LoadStrategy::Chunks),
        chunk: None,
        existing: Existing::Keep,
        connect: ConnectOptions {
            dsn_or_dbname: Some(DATABASE.to_owned()),
            host: Some(options.host),
            port: Some(options.port),
            user: Some(options.user),
            ..ConnectOptions::default()
        },
    };
    load(&it, &Silent, &AtomicBool::new(false)).map(drop).map_err(Into::into)
}

/// The server, and how its socket is reached.
struct Bench {
    cluster: Cluster,
    socket: PathBuf,
    port: String,
    user: String,
    programs: PathBuf,
}

/// Cost of one load: time, CPU and memory.
struct Seen {
    seconds: f64,
    cpu_seconds: f64,
    memory_kb: f64,
}

fn compare(options: &Options) -> Result<(), Anything> {
    let stop = AtomicBool::new(false);
    let install = find(None, None)?
        .ok_or("no PostgreSQL of the distribution here, so no pgbench to compare with")?;
    let storage = StorageDirectory::open(None, &server_account()?)?;
    let journal = Journal::open(&paths::state_dir())?;
    let mut spec = ClusterSpec::new(install.clone(), cluster_directory(storage.path())?)?;
    let mut settings = vec![
        ("shared_buffers", "256MB"),
        ("max_wal_size", "8GB"),
        ("maintenance_work_mem", "256MB"),
    ];
    if options.minimal {
        settings.extend([("wal_level", "minimal"), ("max_wal_senders", "0")]);
    }
    spec.settings =
        settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut cluster = Cluster::create(spec, &journal, &stop)?;
    cluster.start(&stop)?;
    let target = cluster.control_target("postgres");
    let Address::Unix { directory, port } = &target.address else { return Err("no socket".into()) };
    let (socket, port, user) = (directory.clone(), port.to_string(), target.user.clone());
    let programs = install
        .bindir
        .join("postgres")
        .canonicalize()?
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default();
    let bench = Bench { cluster, socket, port, user, programs };

    let Options { pairs, scale, .. } = *options;
    let mut out = std::io::stdout();
    let settings: Vec<String> =
        settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    writeln!(
        out,
        "PostgreSQL {}, {pairs} pairs, {scale}% of the scales; {}",
        install.version,
        settings.join(", ")
    )?;
    writeln!(
        out,
        "{:<22}{:>6} {:>18} {:>18} {:>18} {:>8}  target (time, client CPU)",
        "load", "scale", "time", "server CPU", "client CPU", "MB"
    )?;
    for cell in CELLS {
        // A line's whole name means that line alone.
        let named = |only: &str| match CELLS.iter().any(|c| c.name == only) {
            true => cell.name == only,
            false => cell.name.contains(only),
        };
        if options.only.as_deref().is_some_and(|only| !named(only)) {
            continue;
        }
        let scale = (cell.scale * scale / 100).max(1);
        bench.line(&mut out, cell, scale, pairs)?;
    }
    bench.cluster.remove()?;
    Ok(())
}

impl Bench {
    fn line(
        &self,
        out: &mut impl std::io::Write,
        cell: &Cell,
        scale: u32,
        pairs: u32,
    ) -> Result<(), Anything> {
        let file = self.cluster.data().join("numbers.txt");
        if cell.beside == Beside::TextCopy {
            self.prepare_file(&file, scale)?;
        }
        let (mut time, mut cpu, mut server, mut memory) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for pair in 0..pairs {
            let mut seen = [None, None];
            for turn in 0..2 {
                // Who goes first alternates.
                let index = ((pair + turn) % 2) as usize;
                self.fresh()?;
                let command = if index == 0 {
                    self.theirs(cell, scale, &file)
                } else {
                    self.ours(cell, scale)?
                };
                let before = self.backends_cpu_seconds()?;
                let one = run(command)?;
                seen[index] = Some((one, self.backends_cpu_seconds()? - before));
            }
            let [Some((theirs, their_server)), Some((ours, our_server))] = seen else { continue };
            server.push(our_server / their_server);
            time.push(ours.seconds / theirs.seconds);
            cpu.push(ours.cpu_seconds / theirs.cpu_seconds.max(0.01));
            memory.push(ours.memory_kb / 1000.0);
        }
        let (time, cpu) = (Interval::bootstrap(&time), Interval::bootstrap(&cpu));
        let target = |seen: f64, target: f64| match target.is_finite() {
            true => format!("<={target:.2}{}", if seen <= target { "" } else { "!" }),
            false => "-".to_owned(),
        };
        writeln!(
            out,
            "{:<22}{scale:>6} {:>18} {:>18} {:>18} {:>8}  {} {}",
            cell.name,
            time.to_string(),
            Interval::bootstrap(&server).to_string(),
            if cell.beside == Beside::TextCopy { "-".to_owned() } else { cpu.to_string() },
            Interval::bootstrap(&memory).median(),
            target(time.median, cell.target.0),
            target(cpu.median, cell.target.1),
        )?;
        let _ = std::fs::remove_file(file);
        Ok(())
    }

    /// CPU time of the server's processes that have ended: the load's backends and their workers
    /// (seconds).
    fn backends_cpu_seconds(&self) -> Result<f64, Anything> {
        // They end a moment after their client.
        std::thread::sleep(Duration::from_millis(300));
        let pid = self.cluster.pid().ok_or("the server does not run")?;
        children_cpu_seconds(&format!("/proc/{pid}/stat"))
    }

    /// A database with nothing in it, and no dirty pages of the last.
    fn fresh(&self) -> Result<(), Anything> {
        let mut client = self.cluster.control("postgres")?;
        client.batch_execute(&format!("DROP DATABASE IF EXISTS {DATABASE}"))?;
        client.batch_execute(&format!("CREATE DATABASE {DATABASE}"))?;
        client.batch_execute("CHECKPOINT")?;
        Ok(())
    }

    fn ours(&self, cell: &Cell, scale: u32) -> Result<Command, Anything> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(AS_PGDYNO).args(["--workload", cell.workload, "--scale", &scale.to_string()]);
        command.args([
            "--partitions",
            &cell.partitions.to_string(),
            "--jobs",
            &cell.jobs.to_string(),
        ]);
        command.args(["--strategy", cell.strategy, "--port", &self.port, "--user", &self.user]);
        command.arg("--host").arg(&self.socket);
        Ok(command)
    }

    fn theirs(&self, cell: &Cell, scale: u32, file: &Path) -> Command {
        let program = if cell.beside == Beside::TextCopy { "psql" } else { "pgbench" };
        let mut command = Command::new(self.programs.join(program));
        command.arg("-h").arg(&self.socket).args(["-p", &self.port, "-U", &self.user]);
        match cell.beside {
            Beside::Pgbench => command.args(["-i", "-q", "-s", &scale.to_string(), DATABASE]),
            Beside::PgbenchPartitions => {
                command.args(["-i", "-q", "--partitions=2", "-s", &scale.to_string(), DATABASE])
            }
            Beside::TextCopy => {
                command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", DATABASE]).args([
                    "-c",
                    "BEGIN",
                    "-c",
                    "CREATE TABLE numbers (number bigserial NOT NULL, operator smallint, region \
                     smallint)",
                    "-c",
                    &format!("COPY numbers FROM '{}' WITH (FREEZE)", file.display()),
                    "-c",
                    "ALTER TABLE numbers ADD PRIMARY KEY (number)",
                    "-c",
                    "COMMIT",
                    "-c",
                    "VACUUM (ANALYZE) numbers",
                ])
            }
        };
        command
    }

    /// The rows of `numbers` as text, beside the server's data: made once, from the table as pgdyno
    /// loads it.
    fn prepare_file(&self, file: &Path, scale: u32) -> Result<(), Anything> {
        let Some(cell) = CELLS.iter().find(|c| c.beside == Beside::TextCopy) else { return Ok(()) };
        self.fresh()?;
        run(self.ours(cell, scale)?)?;
        let copy = format!("COPY numbers TO '{}'", file.display());
        Ok(self.cluster.control(DATABASE)?.batch_execute(&copy)?)
    }
}

/// Runs `command` to its end.
fn run(mut command: Command) -> Result<Seen, Anything> {
    let before = children_cpu_seconds("/proc/self/stat")?;
    let began = Instant::now();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut memory_kb = 0.0_f64;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        memory_kb = memory_kb.max(peak_memory_kb(child.id()).unwrap_or(0.0));
        std::thread::sleep(Duration::from_millis(20));
    };
    let seconds = began.elapsed().as_secs_f64();
    if !status.success() {
        let mut said = String::new();
        if let Some(mut err) = child.stderr.take() {
            std::io::Read::read_to_string(&mut err, &mut said)?;
        }
        return Err(format!("{command:?} ended with {status}: {said}").into());
    }
    Ok(Seen { seconds, cpu_seconds: children_cpu_seconds("/proc/self/stat")? - before, memory_kb })
}

/// CPU time of all children that were waited for (seconds; the kernel counts hundredths).
fn children_cpu_seconds(path: &str) -> Result<f64, Anything> {
    let stat = std::fs::read_to_string(path)?;
    let after_name = stat.rsplit_once(')').ok_or("a process without a name")?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    // Fields 16 and 17 of proc(5), of which two stand before the name's end.
    let ticks = |i: usize| {
        fields.get(i).and_then(|f| f.parse::<f64>().ok()).ok_or("a process's stat is short")
    };
    Ok((ticks(13)? + ticks(14)?) / 100.0)
}
