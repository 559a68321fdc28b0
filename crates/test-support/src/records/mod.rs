//! A run that never happened: quickstart's plan, measured by arithmetic. The same values every
//! time.

mod comparisons;
mod crash;
mod filesystems;
pub mod probes;
mod stores;

use std::collections::BTreeMap;

pub use comparisons::{alike, by, gated, gates, refused, run_at, run_of_two, set_tps, speed_up};
pub use crash::crash_record;
pub use filesystems::{assert_adds_up, filesystems, set_statements, zfs_and_xfs};

use pgdyno_model::experiment::{Length, Protocol};
use pgdyno_model::facts::{BuildSource, HostFacts, Owner, ServerFacts, Setting, StorageFacts};
use pgdyno_model::measurement::{
    CommandMeasurement, CommandSums, GeneratorMeasurement, Measurement, ScriptMeasurement, Second,
    StatementMeasurement,
};
use pgdyno_model::record::{FsyncRate, ServerCount, SessionRecord};
use pgdyno_model::telemetry::{Column, Kind, Sample, Table};
use pgdyno_model::units::{Bytes, Epoch, Span};
use pgdyno_model::{
    Failure, FailureKind, Latencies, LevelValue, Levels, Plan, PlannedTrial, RunRecord,
    SecondLatencies, Treatment, TrialRecord,
};

pub use probes::fsync_probe;
pub use stores::{add_run, analysed_run, fill, fill_on, fill_with, filled, store};

/// Id of the run that never happened.
pub const RUN: &str = "quickstart-20261121T070000Z-abcd";
const SECONDS: u32 = 5;
/// 2026-11-21 07:00:00 UTC, in nanoseconds.
pub(crate) const START: u64 = 1_795_244_400_000_000_000;

/// A small generator of uniform and normal deviates (xorshift64*, Box–Muller): the same values
/// everywhere.
pub struct Random(pub u64);

impl Random {
    /// Returns a deviate of the uniform distribution between 0 and 1.
    pub fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Returns a deviate of the standard normal distribution.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Treatments: synchronous_commit on and off, with 1 and 8 clients.
pub fn plan(repeats: u32) -> Plan {
    let treatments: Vec<Treatment> = [("on", 1), ("on", 8), ("off", 1), ("off", 8)]
        .into_iter()
        .map(|(commit, clients)| Treatment {
            levels: Levels(vec![
                ("synchronous_commit".into(), LevelValue::Text(commit.into())),
                ("clients".into(), LevelValue::Int(clients)),
            ]),
            storage: "here".into(),
            workload: "tpcb-like".into(),
            scale: 10,
            clients: u32::try_from(clients).unwrap(),
            threads: 1,
            protocol: Protocol::Prepared,
            settings: BTreeMap::from([("synchronous_commit".into(), commit.into())]),
            ..Treatment::default()
        })
        .collect();
    let mut trials = Vec::new();
    for block in 1..=repeats {
        let mut order: Vec<usize> = (0..treatments.len()).collect();
        if block % 2 == 0 {
            order.reverse();
        }
        for treatment in order {
            let ordinal = u32::try_from(trials.len()).unwrap();
            trials.push(PlannedTrial { ordinal, block, treatment, repeat: block });
        }
    }
    Plan {
        name: "quickstart".into(),
        question: Some("What does waiting for the disk at commit cost here?".into()),
        factors: vec!["synchronous_commit".into(), "clients".into()],
        treatments,
        trials,
        warm_up: Span::from_secs(2),
        length: Length::Duration(Span::from_secs(u64::from(SECONDS))),
        seed: 42,
        data_seed: Some(1),
        ..Plan::default()
    }
}

/// Returns the first `count` treatments of [`plan`].
pub fn first_treatments(count: usize, repeats: u32) -> Plan {
    let mut plan = plan(repeats);
    plan.treatments.truncate(count);
    plan.trials.retain(|planned| planned.treatment < count);
    (0..).zip(&mut plan.trials).for_each(|(ordinal, planned)| planned.ordinal = ordinal);
    plan
}

/// Returns the record of a run of `plan` under that id.
pub fn run_called(id: &str, plan: Plan) -> RunRecord {
    RunRecord { id: id.into(), ..run_record(plan) }
}

/// Returns the record of a run of `plan`.
pub fn run_record(plan: Plan) -> RunRecord {
    RunRecord {
        id: RUN.into(),
        recipe: "quickstart".into(),
        started_at: Epoch(START),
        pgdyno_version: "0.1.0".into(),
        folder: "/home/anna/experiments".into(),
        experiment: "[experiment]\n\
                     name = \"quickstart\"\n\
                     repeats = 3\n\
                     \n\
                     [factors]\n\
                     synchronous_commit = [\"on\", \"off\"]\n\
                     clients = [1, 8]\n"
            .into(),
        overrides: vec!["load.duration=5s".into()],
        plan,
    }
}

/// Returns the record of a session on a machine of two CPUs.
pub fn session_record() -> SessionRecord {
    SessionRecord {
        started_at: Epoch(START + 1),
        owner: Owner { pid: 4242, started_ticks: 99, boot_id: "5d1c".into(), host: None },
        host: HostFacts {
            os: "Debian GNU/Linux 12 (bookworm)".into(),
            kernel: "Linux 6.1.0 x86_64".into(),
            cpu_model: "A CPU".into(),
            cpus: 2,
            memory: Bytes(8_000_000_000),
            ..HostFacts::default()
        },
        storage: vec![StorageFacts {
            device: Some("vda1".into()),
            disk: Some("vda".into()),
            rotational: Some(false),
            scheduler: Some("mq-deadline".into()),
            write_cache: Some("write back".into()),
            ..storage_facts()
        }],
    }
}

/// A storage whose device is not known.
pub(crate) fn storage_facts() -> StorageFacts {
    StorageFacts {
        name: "here".into(),
        directory: "/var/lib/pgdyno".into(),
        filesystem: "ext4".into(),
        mount_point: "/".into(),
        mount_options: "rw,relatime".into(),
        source: "/dev/vda1".into(),
        size: Bytes(100_000_000_000),
        available: Bytes(60_000_000_000),
        ..StorageFacts::default()
    }
}

/// Returns the rate of flushes of the only storage.
pub fn fsync_rate() -> FsyncRate {
    let mut latency = Latencies::new();
    let mut random = Random(7);
    for _ in 0..2000 {
        latency.record(800_000 + nanoseconds(900_000.0 * random.uniform().powi(4)));
    }
    FsyncRate {
        storage: "here".into(),
        method: "fdatasync".into(),
        block_bytes: 8192,
        flushes: 2000,
        seconds: 1.96,
        latency,
        measured_at: Epoch(START + 2),
    }
}

fn nanoseconds(value: f64) -> u64 {
    value as u64
}

/// A completed trial of `planned`.
pub fn trial(plan: &Plan, planned: PlannedTrial) -> TrialRecord {
    let treatment = &plan.treatments[planned.treatment];
    let mut random = Random(
        0x9E37_79B9_7F4A_7C15 ^ (u64::from(planned.ordinal) + 1).wrapping_mul(0x1234_5678_9ABC),
    );
    let base = [820.0, 3400.0, 2900.0, 7900.0][planned.treatment];
    let drift = 1.0 + 0.03 * f64::from(planned.block) + 0.02 * random.uniform();
    let per_second = base * drift;
    let m = measured(treatment, per_second, &mut random);
    let rows = i64::try_from(m.acknowledged()).unwrap();
    let begun = empty_trial(planned);
    TrialRecord {
        measured_at: Some(Epoch(begun.started_at.0 + 3_000_000_000)),
        measurement: Some(m),
        server_count: Some(ServerCount {
            xact_commit: rows + 9,
            rows: Some(rows),
            rows_expected: Some(rows),
        }),
        server: Some(server(treatment)),
        telemetry: telemetry(per_second, planned.treatment < 2),
        server_log: SERVER_LOG.into(),
        ..begun
    }
}

/// `count` executions of a command, each of `nanoseconds`.
fn executions(count: u64, nanoseconds: u64) -> CommandSums {
    CommandSums { count, nanoseconds: count * nanoseconds }
}

/// A window of about `per_second` transactions a second.
fn measured(treatment: &Treatment, per_second: f64, random: &mut Random) -> Measurement {
    let mut m = Measurement {
        connect_s: 0.012,
        warm_up_s: 2.0,
        measured_s: f64::from(SECONDS),
        generator_cpu_s: 0.3 + per_second / 20_000.0,
        ..Measurement::default()
    };
    let statements = [
        "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;",
        "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;",
        "END;",
    ];
    let mut script =
        ScriptMeasurement { name: "tpcb-like".into(), weight: 1, ..ScriptMeasurement::default() };
    script.statements = (5..)
        .zip(statements)
        .map(|(line, text)| StatementMeasurement {
            text: text.into(),
            line,
            ..StatementMeasurement::default()
        })
        .collect();
    script.commands = script
        .statements
        .iter()
        .map(|s| CommandMeasurement { line: s.line, kind: "sql".into(), ..Default::default() })
        .collect();
    for t_s in 0..SECONDS {
        let transactions = nanoseconds(per_second * (0.9 + 0.2 * random.uniform()));
        let mut second = Latencies::new();
        for _ in 0..transactions {
            let typical = 1e9 * f64::from(treatment.clients) / per_second;
            let ns = nanoseconds(typical * (0.6 - 0.35 * random.uniform().ln()));
            second.record(ns);
            for (share, s) in [0.3, 0.1, 0.6].into_iter().zip(&mut script.statements) {
                s.latency.record(nanoseconds(ns as f64 * share));
                s.first_byte.record(nanoseconds(ns as f64 * share * 0.9));
            }
        }
        m.latency.merge(&second);
        m.transactions += transactions;
        m.series.push(Second {
            t_s,
            length_s: 1.0,
            transactions,
            failed: 0,
            latency_us_p50: second.quantile_us(0.5),
            latency_us_p95: second.quantile_us(0.95),
            latency_us_p99: second.quantile_us(0.99),
            latency_us_max: second.max_us(),
            latencies: Some(SecondLatencies::from(&second)),
            commands: [3, 1, 6].map(|tenths| executions(transactions, tenths * 100_000)).into(),
        });
    }
    script.transactions = m.transactions;
    script.latency = m.latency.clone();
    if treatment.options.rate.is_some() {
        m.service = Some(m.latency.clone());
        script.service.clone_from(&m.service);
    }
    m.scripts = vec![script];
    m.counters.warm_up_transactions = 2 * m.transactions / u64::from(SECONDS);
    m
}

/// The checkpoint begins in the first trial's window.
const SERVER_LOG: &str = "2026-11-21 07:00:04.500 UTC [7] LOG:  checkpoint starting: time\n\
    2026-11-21 07:00:05.000 UTC [9] LOG:  automatic analyze of table \
    \"pgdyno.public.pgbench_tellers\"\n\
    \tsystem usage: CPU: user: 0.01 s, system: 0.00 s, elapsed: 0.02 s\n";

fn server(treatment: &Treatment) -> ServerFacts {
    let setting = |name: &str, value: &str, unit: Option<&str>| Setting {
        name: name.into(),
        value: value.into(),
        unit: unit.map(str::to_owned),
        source: "configuration file".into(),
    };
    ServerFacts {
        version: "PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on x86_64-pc-linux-gnu".into(),
        version_num: 150_014,
        build: build_source(),
        settings: vec![
            setting("synchronous_commit", &treatment.settings["synchronous_commit"], None),
            setting("fsync", "on", None),
            setting("wal_sync_method", "fdatasync", None),
            setting("checkpoint_timeout", "300", Some("s")),
            setting("shared_buffers", "16384", Some("8kB")),
        ],
    }
}

/// Where the server's programs were found.
pub(crate) fn build_source() -> BuildSource {
    let bindir = "/usr/lib/postgresql/15/bin".into();
    BuildSource::Found { bindir, how: "Debian's folder".into() }
}

fn telemetry(per_second: f64, waits: bool) -> Vec<Table> {
    let columns = |list: &[(&str, &str)]| -> Vec<Column> {
        list.iter()
            .map(|(n, u)| Column { name: (*n).into(), unit: (*u).into(), kind: Kind::Counter })
            .collect()
    };
    // Counters of a probe: their names, units and rates.
    let table = |probe: &str, counters: &[(&str, &str, f64)]| Table {
        probe: probe.into(),
        columns: columns(&counters.iter().map(|(n, u, _)| (*n, *u)).collect::<Vec<_>>()),
        samples: (0..=SECONDS)
            .map(|t| Sample {
                t_s: f64::from(t) - 0.001,
                values: counters
                    .iter()
                    .map(|(.., rate)| Some(1e6 + (rate * f64::from(t)).round()))
                    .collect(),
            })
            .collect(),
        unavailable: None,
    };
    let busy = (per_second / 100.0).min(90.0);
    let flushes = if waits { per_second } else { 5.0 };
    vec![
        table(
            "cpu",
            &[
                ("user", "s", busy),
                ("system", "s", busy / 2.0),
                ("iowait", "s", 20.0),
                ("idle", "s", 180.0 - 1.5 * busy),
            ],
        ),
        table(
            "diskstats",
            &[
                ("vda.wr_ios", "count", per_second * 1.2),
                ("vda.wr_sectors", "count", per_second * 30.0),
                ("vda.io_ticks", "ms", 700.0),
                ("vda.fl_ios", "count", flushes),
            ],
        ),
        table("pg_stat_wal", &[("wal_bytes", "bytes", per_second * 600.0)]),
        table(
            "wait_events",
            &[
                ("polls", "count", 10.0),
                ("state.active", "count", 9.0),
                ("load.IO:WALSync", "count", if waits { 7.0 } else { 0.0 }),
                ("load.CPU", "count", 2.0),
                ("load.Client:ClientRead", "count", 1.0),
                ("walwriter.IO:WALSync", "count", 3.0),
            ],
        ),
        Table {
            probe: "observer".into(),
            columns: columns(&[("sampler_cpu", "s"), ("backends_cpu", "s")]),
            samples: (0..=SECONDS)
                .map(|t| Sample {
                    t_s: f64::from(t) - 0.001,
                    values: vec![Some(0.002 * f64::from(t)), Some(0.004 * f64::from(t))],
                })
                .collect(),
            unavailable: None,
        },
    ]
}

/// Generators of a trial: each serves twice the clients of the one before, and its replies take
/// twice as long.
pub fn generators(names: &[&str]) -> Vec<GeneratorMeasurement> {
    let generator = |(name, step): (&&str, u32)| GeneratorMeasurement {
        name: (*name).to_owned(),
        clients: 2 << step,
        threads: 1 << step,
        transactions: 4321,
        failed: 1,
        latency_us_mean: Some(f64::from(5000 << step)),
        latency_us_p50: Some(f64::from(4000 << step)),
        latency_us_p99: Some(f64::from(20_000 << step)),
        cpu_s: 0.35,
        busiest_thread: 0.07,
        start_skew_us: 3564.0,
        clock_uncertainty_us: 424.0,
    };
    names.iter().zip(0..).map(generator).collect()
}

/// A trial of `planned` whose server died.
pub fn failed_trial(planned: PlannedTrial) -> TrialRecord {
    TrialRecord {
        failure: Some(Failure::new(
            FailureKind::Server,
            "the server ended during the warm-up: could not write to file: No space left on device",
        )),
        server_log: "PANIC:  could not write to file\n".into(),
        ..empty_trial(planned)
    }
}

/// A trial of `planned` that has begun, and nothing more.
pub(crate) fn empty_trial(planned: PlannedTrial) -> TrialRecord {
    TrialRecord {
        ordinal: planned.ordinal,
        block: planned.block,
        treatment: planned.treatment,
        repeat: planned.repeat,
        started_at: Epoch(START + 10_000_000_000 * u64::from(planned.ordinal)),
        measured_at: None,
        failure: None,
        measurement: None,
        server_count: None,
        server: None,
        telemetry: Vec::new(),
        server_log: String::new(),
    }
}
