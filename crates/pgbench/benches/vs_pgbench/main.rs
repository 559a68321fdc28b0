//! pgdyno beside pgbench: the same arguments, in turn (A B A B …), on the same server, in the same
//! run. What is printed are ratios pgdyno ÷ pgbench: medians over the pairs with a bootstrap
//! interval. Absolute times mean nothing on a shared machine.
//!
//!     cargo bench -p pgdyno-pgbench --bench vs_pgbench -- \
//!         [--pairs N] [--seconds S] [--only WORDS] [--clients N]
//!
//! Client CPU is user and system time of the whole process, start-up included, divided by its
//! transactions; both sides connect, prepare and report. *Cycles* are the processor's in the same
//! two, where it counts them: in a virtual machine the time has in it what the hypervisor does,
//! above all to wake an idle core, and the cycles have not. p99 comes from a sample of both sides'
//! own transaction logs, in runs of their own. *most* is what tps could be of pgbench's if its
//! client cost nothing and the server had that time too, on a machine that is always busy. With
//! prepared statements a bare client runs as the third: what is left of a client that does nothing
//! but send and receive, and so the least that any target could be.

mod bare;
mod null_server;
mod side;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::Parser;
use null_server::NullServer;
use pgdyno_exec::account::server_account;
use pgdyno_exec::directory::StorageDirectory;
use pgdyno_exec::journal::Journal;
use pgdyno_exec::paths;
use pgdyno_model::experiment::Connect;
use pgdyno_model::target::Address;
use pgdyno_postgres::cluster::cluster_directory;
use pgdyno_postgres::{Cluster, ClusterSpec, find};
use pgdyno_test_support::Interval;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use side::{Run, Seen, Side};

/// One line of the table.
struct Cell {
    name: &'static str,
    clients: u32,
    script: Script,
    protocol: &'static str,
    place: Place,
    /// Goals for pgdyno ÷ pgbench: CPU at most, and tps at least.
    target: (f64, f64),
    /// Further options.
    options: &'static [&'static str],
    cores: Cores,
}

impl Cell {
    /// With `options` too.
    const fn with(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
    }

    /// With server and client on `cores`.
    const fn on(self, cores: Cores) -> Self {
        Self { cores, ..self }
    }

    /// Whether the bare client can do it.
    fn has_bare(&self) -> bool {
        self.protocol == "prepared"
            && self.options.is_empty()
            && !matches!(self.script, Script::Long)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Socket,
    Tcp,
    Null,
}

/// Where server and client run. With one client it is the system that puts them together or apart,
/// now so and now so, and a message between two cores costs several times one within a core,
/// whoever sends it.
#[derive(Clone, Copy, PartialEq)]
enum Cores {
    /// Where the system puts them.
    Any,
    /// Both on the first.
    One,
    /// The server on the first, the client on the second.
    Two,
}

impl Cores {
    /// Confines the server `postmaster`'s next processes and this thread's next children to them,
    /// of those in `allowed`.
    fn take(self, postmaster: Option<u32>, allowed: &CpuSet) -> Result<(), Anything> {
        let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
        let (server, client) = match (self, &cores[..]) {
            (Self::Any, all) => (all, all),
            (Self::One, [first, ..]) => (std::slice::from_ref(first), std::slice::from_ref(first)),
            (Self::Two, [first, second, ..]) => {
                (std::slice::from_ref(first), std::slice::from_ref(second))
            }
            (Self::One | Self::Two, _) => return Err("there are not so many cores".into()),
        };
        let postmaster =
            postmaster.and_then(|pid| Pid::from_raw(pid.cast_signed())).ok_or("no server")?;
        for (who, cores) in [(Some(postmaster), server), (None, client)] {
            let mut set = CpuSet::new();
            cores.iter().for_each(|core| set.set(*core));
            sched_setaffinity(who, &set)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Script {
    Select,
    Tpcb,
    Pipelined,
    Long,
    One,
}

const SELECT: &str = "\\set aid random(1, 100000 * :scale)\n\
    SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n";
const TPCB: &str = include_str!("../../../../workloads/tpcb-like/tpcb-like.sql");

impl Script {
    fn text(self) -> String {
        match self {
            Self::Select => SELECT.to_owned(),
            Self::Tpcb => TPCB.to_owned(),
            Self::Pipelined => {
                let (sets, sql) = TPCB.split_once("BEGIN").unwrap_or_default();
                format!("{sets}\\startpipeline\nBEGIN{sql}\\endpipeline\n")
            }
            Self::Long => "SELECT repeat('x', 60000);\n".to_owned(),
            Self::One => "\\set aid random(1, 100000)\nSELECT :aid;\n".to_owned(),
        }
    }
}

const fn cell(
    name: &'static str,
    clients: u32,
    script: Script,
    protocol: &'static str,
    place: Place,
    target: (f64, f64),
) -> Cell {
    Cell { name, clients, script, protocol, place, target, options: &[], cores: Cores::Any }
}

const CELLS: &[Cell] = &[
    cell("select-only", 1, Script::Select, "prepared", Place::Socket, (0.75, 1.00)),
    cell("select-only, one core", 1, Script::Select, "prepared", Place::Socket, (0.75, 1.00))
        .on(Cores::One),
    cell("select-only, two cores", 1, Script::Select, "prepared", Place::Socket, (0.75, 1.00))
        .on(Cores::Two),
    cell("select-only", 16, Script::Select, "prepared", Place::Socket, (0.60, 1.05)),
    cell("select-only", 64, Script::Select, "prepared", Place::Socket, (0.60, 1.05)),
    cell("select-only", 256, Script::Select, "prepared", Place::Socket, (0.60, 1.05)),
    cell("select-only", 1000, Script::Select, "prepared", Place::Socket, (0.75, 1.15)),
    cell("select-only", 16, Script::Select, "simple", Place::Socket, (1.00, 1.00)),
    cell("select-only", 16, Script::Select, "extended", Place::Socket, (1.00, 1.00)),
    cell("select-only, TCP", 16, Script::Select, "prepared", Place::Tcp, (0.90, 1.00)),
    cell("tpcb-like", 1, Script::Tpcb, "prepared", Place::Socket, (1.00, 1.00)),
    cell("tpcb-like", 16, Script::Tpcb, "prepared", Place::Socket, (0.65, 1.00)),
    cell("tpcb-like", 64, Script::Tpcb, "prepared", Place::Socket, (0.65, 1.00)),
    cell("tpcb-like, pipelined", 16, Script::Pipelined, "prepared", Place::Socket, (0.55, 1.10)),
    cell("results of 60 kB", 16, Script::Long, "prepared", Place::Socket, (1.00, 1.00)),
    cell("select-only, -C", 4, Script::Select, "simple", Place::Socket, (1.00, 1.00)).with(&["-C"]),
    cell("select-only, -R 1000", 16, Script::Select, "prepared", Place::Socket, (1.00, 0.99))
        .with(&["-R", "1000"]),
    cell("null server", 16, Script::One, "prepared", Place::Null, (0.70, 1.40)),
    cell("null server", 256, Script::One, "prepared", Place::Null, (0.55, 1.50)),
    cell("null server", 1000, Script::One, "prepared", Place::Null, (0.55, 1.50)),
];

#[derive(Parser)]
struct Options {
    /// Pairs of runs for each line of the table.
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// Length of each run (s).
    #[arg(long, default_value_t = 4)]
    seconds: u32,
    /// Only lines whose work has these words.
    #[arg(long)]
    only: Option<String>,
    /// Only lines with so many clients.
    #[arg(long)]
    clients: Option<u32>,
    /// Cargo adds this flag.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().map(String::as_str) == Some(side::AS_PGDYNO) {
        let stop = AtomicBool::new(false);
        let code = pgdyno_pgbench::main(
            &arguments[1..],
            &mut std::io::stdout(),
            &mut std::io::stderr(),
            &stop,
        );
        std::process::exit(code);
    }
    let done = if arguments.first().map(String::as_str) == Some(side::AS_BARE) {
        bare::main(&arguments[1..])
    } else {
        compare(&Options::parse())
    };
    if let Err(e) = done {
        let _ = writeln!(std::io::stderr(), "error: {e}");
        std::process::exit(1);
    }
}

type Anything = Box<dyn std::error::Error>;

fn compare(options: &Options) -> Result<(), Anything> {
    let stop = AtomicBool::new(false);
    let account = server_account()?;
    let install = find(None, None)?
        .ok_or("no PostgreSQL of the distribution here, so no pgbench to compare with")?;
    let pgbench = beside(&install.bindir)
        .ok_or_else(|| format!("there is no pgbench beside {}", install.bindir.display()))?;
    let storage = StorageDirectory::open(None, &account)?;
    let journal = Journal::open(&paths::state_dir())?;
    let mut spec = ClusterSpec::new(install.clone(), cluster_directory(storage.path())?)?;
    spec.connect = Connect::Tcp;
    let settings =
        [("max_connections", "1100"), ("shared_buffers", "256MB"), ("synchronous_commit", "off")];
    spec.settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let mut cluster = Cluster::create(spec, &journal, &stop)?;
    cluster.start(&stop)?;
    let null = NullServer::start()?;
    let work = tempfile::tempdir()?;
    let sides = [Side::pgbench(&pgbench), Side::pgdyno()?, Side::bare()?];

    let allowed = sched_getaffinity(None)?;
    let mut out = std::io::stdout();
    write_head(&mut out, &install.version.to_string(), options)?;
    let mut loaded = false;
    for cell in CELLS {
        let wanted = options.only.as_ref().is_none_or(|words| cell.name.contains(words.as_str()))
            && options.clients.is_none_or(|clients| clients == cell.clients);
        if !wanted {
            continue;
        }
        let target = match cell.place {
            Place::Socket => cluster.control_target("postgres"),
            Place::Tcp => cluster.target("postgres"),
            Place::Null => null.target(),
        };
        let connection = connection(&target);
        if cell.place != Place::Null && !loaded {
            sides[0].initialize(&connection, 10)?;
            loaded = true;
        }
        let script = work.path().join("script.sql");
        std::fs::write(&script, cell.script.text())?;
        let run = Run {
            clients: cell.clients,
            protocol: cell.protocol,
            options: cell.options,
            script: &script,
            // Connecting a thousand takes seconds, which must not be most of the run; nor, where a
            // rate makes them few, may the first transactions of all clients.
            seconds: options
                .seconds
                .max(cell.clients / 80)
                .max(6 * u32::from(cell.options.contains(&"-R"))),
            connection: &connection,
            logs: work.path(),
        };
        let done = cell.cores.take(cluster.pid(), &allowed);
        let done = done.and_then(|()| line(&mut out, cell, options, &sides, &run));
        Cores::Any.take(cluster.pid(), &allowed)?;
        if let Err(e) = done {
            writeln!(out, "{:<22}{:>8} {:<9} failed: {e}", cell.name, cell.clients, cell.protocol)?;
        }
    }
    cluster.remove()?;
    Ok(())
}

/// Writes what is compared, and the titles of the columns.
fn write_head(
    out: &mut impl std::io::Write,
    version: &str,
    options: &Options,
) -> Result<(), Anything> {
    writeln!(
        out,
        "PostgreSQL and pgbench {version}, {} pairs of {} s",
        options.pairs, options.seconds
    )?;
    if let Err(why) = side::next_childs_cycles() {
        writeln!(out, "cycles are not counted: {why}")?;
    }
    writeln!(out, "{:-<144}", "")?;
    writeln!(
        out,
        "{:<22}{:>8} {:<9} {:>19} {:>19} {:>18} {:>19} {:>5} {:>5} {:>6}  {:<12}",
        "work",
        "clients",
        "protocol",
        "client CPU/tx",
        "cycles/tx",
        "bare client's",
        "tps",
        "most",
        "p99",
        "memory",
        "target"
    )?;
    Ok(())
}

/// pgbench in the folder of the server's programs, where those really are, or on the PATH.
fn beside(bindir: &Path) -> Option<PathBuf> {
    let real = bindir.join("postgres").canonicalize().ok();
    let real = real.as_deref().and_then(Path::parent).map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        [Some(bindir.to_owned()), real].into_iter().flatten().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join("pgbench")).find(|program| program.is_file())
}

/// Runs one cell and prints its line.
fn line(
    out: &mut impl std::io::Write,
    cell: &Cell,
    options: &Options,
    sides: &[Side; 3],
    run: &Run<'_>,
) -> Result<(), Anything> {
    let mut cpu = Vec::new();
    let mut cycles = Vec::new();
    let mut bare = Vec::new();
    let mut tps = Vec::new();
    let mut most = Vec::new();
    let mut memory = Vec::new();
    let mut p99 = Vec::new();
    let taking_part = if cell.has_bare() { 3 } else { 2 };
    for pair in 0..options.pairs {
        // Who goes first alternates too.
        let mut seen = [None, None, None];
        for turn in 0..taking_part {
            let index = (pair + turn) % taking_part;
            seen[index] = Some(sides[index].run(run, false)?);
        }
        let [Some(theirs), Some(ours), nothing_else] = seen else { continue };
        let of_theirs = |seen: &Seen| Some(seen.cycles? / theirs.cycles?);
        cpu.push(ours.cpu_us / theirs.cpu_us);
        cycles.extend(of_theirs(&ours));
        bare.extend(
            nothing_else.map(|bare| of_theirs(&bare).unwrap_or(bare.cpu_us / theirs.cpu_us)),
        );
        tps.push(ours.tps / theirs.tps);
        let cores =
            if cell.cores == Cores::One { 1 } else { std::thread::available_parallelism()?.get() };
        most.push(
            1.0 / (1.0 - theirs.cpu_us * theirs.tps / 1e6 / f64::from(u32::try_from(cores)?)),
        );
        memory.push(ours.memory_kb / theirs.memory_kb);
    }
    for _ in 0..options.pairs.min(5) {
        let (theirs, ours) = (sides[0].run(run, true)?, sides[1].run(run, true)?);
        if let (Some(theirs), Some(ours)) = (theirs.p99_us, ours.p99_us) {
            p99.push(ours / theirs);
        }
    }
    let (most_cpu, least_tps) = cell.target;
    let marked =
        |interval: &Interval, met: bool| format!("{interval}{}", if met { " " } else { "!" });
    let cost = |ratios: &[f64]| {
        let interval = Interval::bootstrap(ratios);
        marked(&interval, ratios.is_empty() || interval.median <= most_cpu)
    };
    let tps = Interval::bootstrap(&tps);
    writeln!(
        out,
        "{:<22}{:>8} {:<9} {:>19} {:>19} {:>18} {:>19} {:>5} {:>5} {:>6}  <={most_cpu:.2} \
         >={least_tps:.2}",
        cell.name,
        cell.clients,
        cell.protocol,
        cost(&cpu),
        cost(&cycles),
        Interval::bootstrap(&bare).to_string(),
        marked(&tps, tps.median >= least_tps),
        Interval::bootstrap(&most).median(),
        Interval::bootstrap(&p99).median(),
        Interval::bootstrap(&memory).median(),
    )?;
    Ok(())
}

/// `-h`, `-p`, `-U` and the password for the environment.
fn connection(target: &pgdyno_model::target::Target) -> side::Connection {
    let (host, port) = match &target.address {
        Address::Unix { directory, port } => (directory.display().to_string(), *port),
        Address::Tcp { host, port } => (host.clone(), *port),
    };
    side::Connection {
        host,
        port,
        user: target.user.clone(),
        password: target.password.as_ref().map(|p| p.reveal().to_owned()),
    }
}
