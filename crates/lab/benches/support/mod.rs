//! A managed server for benches of the bulk load, and the cost of programs that use it.
//!
//! Call [`Server::start`], then for each load [`Server::fresh`] and [`run`]. A bench's own binary
//! becomes `pgdyno load` by its first argument: [`Server::pgdyno_load`] and [`as_pgdyno_load`].

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::num::NonZeroU32;
use std::path::PathBuf;
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
use pgdyno_postgres::{Cluster, ClusterSpec, Install};
use pgdyno_test_support::peak_memory_kb;

/// The word by which a bench's own binary becomes `pgdyno load`.
pub(crate) const AS_PGDYNO_LOAD: &str = "--as-pgdyno-load";

pub(crate) type Anything = Box<dyn std::error::Error>;

/// The load that [`as_pgdyno_load`] does, as arguments of a child.
#[derive(Clone, Parser)]
pub(crate) struct PgdynoLoad {
    #[arg(long)]
    pub(crate) workload: String,
    #[arg(long)]
    pub(crate) scale: NonZeroU32,
    #[arg(long)]
    pub(crate) partitions: u32,
    #[arg(long)]
    pub(crate) jobs: NonZeroU32,
    /// `chunks`, or nothing for the usual strategy.
    #[arg(long)]
    pub(crate) strategy: String,
    #[arg(long)]
    pub(crate) database: String,
    #[arg(long, default_value = "")]
    pub(crate) host: String,
    #[arg(long, default_value = "")]
    pub(crate) port: String,
    #[arg(long, default_value = "")]
    pub(crate) user: String,
}

impl PgdynoLoad {
    /// Describes a load by `jobs` connections into one table each, with the usual strategy.
    pub(crate) fn new(workload: &str, scale: NonZeroU32, jobs: NonZeroU32, database: &str) -> Self {
        Self {
            workload: workload.to_owned(),
            scale,
            partitions: 0,
            jobs,
            strategy: String::new(),
            database: database.to_owned(),
            host: String::new(),
            port: String::new(),
            user: String::new(),
        }
    }
}

/// Loads as `pgdyno load` does. The first of `arguments` stands where a program's name does.
pub(crate) fn as_pgdyno_load(arguments: &[String]) -> Result<(), Anything> {
    let options = PgdynoLoad::parse_from(arguments);
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
            dsn_or_dbname: Some(options.database),
            host: Some(options.host),
            port: Some(options.port),
            user: Some(options.user),
            ..ConnectOptions::default()
        },
    };
    load(&it, &Silent, &AtomicBool::new(false)).map(drop).map_err(Into::into)
}

/// The server, and how its socket is reached.
pub(crate) struct Server {
    pub(crate) cluster: Cluster,
    pub(crate) socket: PathBuf,
    pub(crate) port: String,
    pub(crate) user: String,
}

impl Server {
    /// Starts a server of `install` with `settings`, on the default storage directory.
    pub(crate) fn start(install: Install, settings: &[(&str, &str)]) -> Result<Self, Anything> {
        let stop = AtomicBool::new(false);
        let storage = StorageDirectory::open(None, &server_account()?)?;
        let journal = Journal::open(&paths::state_dir())?;
        let mut spec = ClusterSpec::new(install, cluster_directory(storage.path())?)?;
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        spec.settings = settings.iter().map(own).collect();
        let mut cluster = Cluster::create(spec, &journal, &stop)?;
        cluster.start(&stop)?;
        let target = cluster.control_target("postgres");
        let Address::Unix { directory, port } = target.address else {
            return Err("no socket".into());
        };
        Ok(Self { cluster, socket: directory, port: port.to_string(), user: target.user })
    }

    /// Makes `database` anew, with nothing in it, and leaves no dirty pages.
    pub(crate) fn fresh(&self, database: &str) -> Result<(), Anything> {
        let mut client = self.cluster.control("postgres")?;
        client.batch_execute(&format!("DROP DATABASE IF EXISTS {database}"))?;
        client.batch_execute(&format!("CREATE DATABASE {database}"))?;
        client.batch_execute("CHECKPOINT")?;
        Ok(())
    }

    /// Returns the command by which the bench's own binary does `load` on this server.
    pub(crate) fn pgdyno_load(&self, load: &PgdynoLoad) -> Result<Command, Anything> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(AS_PGDYNO_LOAD);
        command.args(["--workload", &load.workload, "--scale", &load.scale.to_string()]);
        command.args(["--partitions", &load.partitions.to_string()]);
        command.args(["--jobs", &load.jobs.to_string(), "--strategy", &load.strategy]);
        command.args(["--database", &load.database]);
        command.args(["--port", &self.port, "--user", &self.user]).arg("--host").arg(&self.socket);
        Ok(command)
    }

    /// Returns the CPU time of the server's processes that have ended: backends and their workers
    /// (seconds).
    pub(crate) fn backends_cpu_seconds(&self) -> Result<f64, Anything> {
        // They end a moment after their client.
        std::thread::sleep(Duration::from_millis(300));
        let pid = self.cluster.pid().ok_or("the server does not run")?;
        children_cpu_seconds(&format!("/proc/{pid}/stat"))
    }
}

/// Cost of one program's run: time, CPU and memory.
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) memory_kb: f64,
}

/// Runs `command` to its end. Returns its cost, and what it wrote to its standard output.
pub(crate) fn run(mut command: Command) -> Result<(Cost, String), Anything> {
    // Files, since nobody reads a pipe while the program runs.
    let (mut out, mut err) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(err.try_clone()?);
    let before = children_cpu_seconds("/proc/self/stat")?;
    let began = Instant::now();
    let mut child = command
        .spawn()
        .map_err(|e| format!("cannot run {}: {e}", command.get_program().display()))?;
    let mut memory_kb = 0.0_f64;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        memory_kb = memory_kb.max(peak_memory_kb(child.id()).unwrap_or(0.0));
        std::thread::sleep(Duration::from_millis(20));
    };
    let seconds = began.elapsed().as_secs_f64();
    let cpu_seconds = children_cpu_seconds("/proc/self/stat")? - before;
    if !status.success() {
        return Err(format!("{command:?} ended with {status}: {}", written(&mut err)?).into());
    }
    Ok((Cost { seconds, cpu_seconds, memory_kb }, written(&mut out)?))
}

/// Returns a target as text, with `!` where `seen` misses it; `-` for one that is infinite: none.
pub(crate) fn target(seen: f64, target: f64) -> String {
    match target.is_finite() {
        true => format!("<={target:.2}{}", if seen <= target { "" } else { "!" }),
        false => "-".to_owned(),
    }
}

/// Reads `file` from its beginning.
fn written(file: &mut File) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
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
