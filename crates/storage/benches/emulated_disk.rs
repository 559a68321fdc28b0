//! PostgreSQL on an emulated disk without latency beside the same filesystem on a plain loop device
//! and on one in main memory, by pgbench, in turn (A B C, C B A, …); then what injected latencies
//! come to, beside what they should.
//!
//!     cargo bench -p pgdyno-storage --bench emulated_disk -- --help

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Parser;
use pgdyno_emulated_disk as emulated;
use pgdyno_emulated_disk::Control;
use pgdyno_exec::account::server_account;
use pgdyno_exec::journal::Journal;
use pgdyno_model::storage::{
    Backing, DiskLatency, EmulatedDisk, FilesystemChoice, LoopFile, Storage,
};
use pgdyno_model::target::Address;
use pgdyno_model::units::{Bytes, Span};
use pgdyno_postgres::cluster::cluster_directory;
use pgdyno_postgres::{Cluster, ClusterSpec, Install, find_all};
use pgdyno_storage::probe::fsync_rate;
use pgdyno_storage::{MountedStack, Stack, Surroundings, Wipe};
use pgdyno_test_support::median;

static RUN: AtomicBool = AtomicBool::new(false);

#[derive(Parser)]
struct Options {
    /// Rounds, each with every storage once.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Length of each measurement (s).
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// pgbench's scale.
    #[arg(long, default_value_t = 10)]
    scale: u32,
    /// pgbench's clients.
    #[arg(long, default_value_t = 8)]
    clients: u32,
    /// The filesystem of every storage.
    #[arg(long, default_value = "ext4")]
    filesystem: String,
    /// Where the storages are made.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    directory: PathBuf,
    /// Cargo adds this flag.
    #[arg(long, hide = true)]
    bench: bool,
}

type Failure = Box<dyn std::error::Error>;

fn main() {
    let done = if emulated::is_asked_to_serve() {
        emulated::serve().map_err(Failure::from)
    } else {
        emulated::serve_by::<&str>(&[]);
        measure(&Options::parse())
    };
    if let Err(e) = done {
        let _ = writeln!(std::io::stderr(), "error: {e}");
        std::process::exit(1);
    }
}

/// A storage with a server on it; the server goes first.
struct Side {
    cluster: Cluster,
    stack: MountedStack,
}

impl Side {
    fn make(
        backing: Backing,
        options: &Options,
        place: &Path,
        journal: &Journal,
    ) -> Result<Self, Failure> {
        let account = server_account()?;
        let filesystem =
            FilesystemChoice { name: options.filesystem.clone(), ..FilesystemChoice::default() };
        let storage = Storage { backing, filesystem: Some(filesystem), ..Storage::default() };
        let wipe = Wipe::default();
        let around = Surroundings { default_directory: place, account: &account, wipe: &wipe };
        let stack = Stack::plan("disk", &storage, &around)?.make(&account, journal, &RUN)?;
        let spec = ClusterSpec::new(install()?, cluster_directory(&stack.path())?)?;
        let settings =
            [("shared_buffers", "128MB"), ("max_wal_size", "4GB"), ("checkpoint_timeout", "1h")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let spec = ClusterSpec { socket_base: place.to_owned(), settings, ..spec };
        let mut cluster = Cluster::create(spec, journal, &RUN)?;
        cluster.start(&RUN)?;
        let side = Self { cluster, stack };
        side.pgbench(&["-i", "-q", "-s", &options.scale.to_string()])?;
        Ok(side)
    }

    fn pgbench(&self, arguments: &[&str]) -> Result<String, Failure> {
        let Address::Unix { directory, port } = self.cluster.control_target("postgres").address
        else {
            return Err("the server has no socket".into());
        };
        let ran = Command::new(install()?.program("pgbench"))
            .args(arguments)
            .args(["-h".into(), directory.into_os_string(), "-p".into(), port.to_string().into()])
            .args(["-U", "postgres", "postgres"])
            .env("LC_ALL", "C")
            .output()?;
        if !ran.status.success() {
            return Err(format!("pgbench: {}", String::from_utf8_lossy(&ran.stderr)).into());
        }
        Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
    }

    /// Transactions a second of pgbench's `script`.
    fn tps(&self, script: &str, clients: u32, seconds: u32) -> Result<f64, Failure> {
        let (clients, seconds) = (clients.to_string(), seconds.to_string());
        let told = self.pgbench(&["-n", "-b", script, "-c", &clients, "-T", &seconds])?;
        let line =
            told.lines().find_map(|l| l.strip_prefix("tps = ")).ok_or("pgbench tells no tps")?;
        Ok(line.split(' ').next().unwrap_or_default().parse()?)
    }

    /// Writes of 8 kB made durable by fdatasync, a second.
    fn fsyncs(&self, seconds: u32, journal: &Journal) -> Result<f64, Failure> {
        let for_ = Duration::from_secs(seconds.into());
        Ok(fsync_rate("disk", &self.stack.path(), for_, journal, &RUN)?.per_second())
    }

    fn control(&self) -> Result<Control, Failure> {
        Ok(self.stack.disks().first().ok_or("it is no emulated disk")?.control()?)
    }
}

fn install() -> Result<Install, Failure> {
    let with_pgbench = |install: &Install| install.program("pgbench").is_file();
    find_all()
        .into_iter()
        .find(with_pgbench)
        .ok_or_else(|| "no PostgreSQL with pgbench is installed here".into())
}

fn measure(options: &Options) -> Result<(), Failure> {
    let place = tempfile::tempdir_in(&options.directory)?;
    std::fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let journal = Journal::open(&place.path().join("state"))?;
    let size = Bytes(2 << 30);
    let file =
        LoopFile { directory: None, size, sector_size: Some(4096), direct_io: true, offset: None };
    let plain = Side::make(Backing::Loop(file), options, place.path(), &journal)?;
    let memory = Side::make(Backing::Ram(size), options, place.path(), &journal)?;
    let disk = EmulatedDisk { size, sector_size: Some(4096), ..EmulatedDisk::default() };
    let emulated = Side::make(Backing::Emulated(disk), options, place.path(), &journal)?;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "PostgreSQL {}, {}, scale {}, {} rounds of {} s, medians",
        install()?.version,
        options.filesystem,
        options.scale,
        options.rounds,
        options.seconds
    )?;
    writeln!(
        out,
        "{:<34}{:>10}{:>10}{:>10}{:>16}{:>18}",
        "", "loop", "memory", "emulated", "emulated/loop", "emulated/memory"
    )?;
    type Work<'a> = (String, Box<dyn Fn(&Side) -> Result<f64, Failure> + 'a>);
    let (seconds, clients) = (options.seconds, options.clients);
    let mut works: Vec<Work<'_>> = Vec::new();
    for (script, clients) in
        [("tpcb-like", clients), ("simple-update", 1), ("select-only", clients)]
    {
        let name = format!("{script}, clients {clients}, tps");
        works.push((name, Box::new(move |side: &Side| side.tps(script, clients, seconds))));
    }
    works.push((
        "fdatasync of 8 kB, a second".into(),
        Box::new(|side| side.fsyncs(seconds, &journal)),
    ));
    for (name, work) in works {
        let sides = [&plain, &memory, &emulated];
        let mut found: [Vec<f64>; 3] = Default::default();
        for round in 0..options.rounds {
            for turn in 0..sides.len() {
                let side = if round % 2 == 0 { turn } else { sides.len() - 1 - turn };
                found[side].push(work(sides[side])?);
            }
        }
        let ratio = |side: usize| {
            let pairs = found[side].iter().zip(&found[2]);
            median(&pairs.map(|(other, emulated)| emulated / other).collect::<Vec<_>>())
        };
        let (to_plain, to_memory) = (ratio(0), ratio(1));
        let [plain, memory, emulated] = found.map(|all| median(&all));
        writeln!(
            out,
            "{name:<34}{plain:>10.0}{memory:>10.0}{emulated:>10.0}{to_plain:>16.2}{to_memory:>18.2}"
        )?;
    }
    drop((plain, memory));
    injected(&emulated, options, &journal, &mut out)
}

/// Prints the cost of an injected flush latency: fdatasync by one writer, and commits of one
/// client.
fn injected(
    side: &Side,
    options: &Options,
    journal: &Journal,
    out: &mut dyn std::io::Write,
) -> Result<(), Failure> {
    writeln!(
        out,
        "\n{:<12}{:>14}{:>14}{:>10}{:>10}{:>14}",
        "flush", "1/flush", "fdatasync/s", "share", "tps", "share"
    )?;
    let mut control = side.control()?;
    for ms in [1, 2, 4, 8, 16] {
        let flush = Span(Duration::from_millis(ms));
        control.set_latency(&DiskLatency { flush, ..DiskLatency::default() })?;
        let most = 1.0 / flush.0.as_secs_f64();
        let fsyncs = side.fsyncs(options.seconds, journal)?;
        let tps = side.tps("simple-update", 1, options.seconds)?;
        let (shown, of_fsyncs, of_tps) = (flush.to_string(), fsyncs / most, tps / most);
        writeln!(
            out,
            "{shown:<12}{most:>14.1}{fsyncs:>14.1}{of_fsyncs:>10.3}{tps:>10.1}{of_tps:>14.3}"
        )?;
    }
    Ok(())
}
