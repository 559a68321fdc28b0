//! sysbench's report of a load on a database (0.5 to 1.1), whole or in part, and its interval
//! lines.

use serde::{Deserialize, Serialize};

use super::pgbench_run::Progress;
use super::scan::Scan;
use super::taken::{Taken, once};
use crate::figure::Figure;
use crate::words::Words;

/// Report of sysbench on one run. Each part is none where it was not printed, or not copied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SysbenchRun {
    /// First line in the file, from 1.
    pub line: usize,
    /// Last line in the file.
    pub last_line: usize,
    /// `Number of threads`.
    pub threads: Option<Figure>,
    /// Queries that read.
    pub reads: Option<Figure>,
    /// Queries that write.
    pub writes: Option<Figure>,
    /// Queries that do neither.
    pub others: Option<Figure>,
    /// The three together, as printed.
    pub total: Option<Figure>,
    /// `transactions`.
    pub transactions: Option<Figure>,
    /// Transactions in a second.
    pub per_second: Option<Figure>,
    /// `queries`.
    pub queries: Option<Figure>,
    /// Queries in a second.
    pub queries_per_second: Option<Figure>,
    /// `ignored errors`.
    pub errors: Option<Figure>,
    /// `total time`, or `time elapsed` (seconds).
    pub total_time_s: Option<Figure>,
    /// `total number of events`.
    pub events: Option<Figure>,
    /// The mean latency (milliseconds).
    pub latency_average_ms: Option<Figure>,
    /// The sum of latencies (milliseconds).
    pub latency_sum_ms: Option<Figure>,
    /// Events of a thread, on average.
    pub events_per_thread: Option<Figure>,
    /// Time that a thread spent in events, on average (seconds).
    pub thread_time_s: Option<Figure>,
    /// Interval lines that stand above it.
    pub progress: Vec<Progress>,
}

impl SysbenchRun {
    /// Whether it changed data; none where its queries are not told apart.
    pub(crate) fn has_writes(&self) -> Option<bool> {
        self.writes.map(|writes| writes.value > 0.0)
    }

    fn take(&mut self, text: &str, line: usize) -> Taken {
        const HEADS: Words = Words(
            "SQL statistics:|queries performed:|General statistics:|Throughput:|Latency (ms):|\
             Threads fairness:|Running the test with|Initializing|Threads started!|\
             Report intermediate results|WARNING: |reconnects:|events/s (eps):|min:|max:|\
             95th percentile:|99th percentile:|approx.|response time:|per-request statistics:|\
             other operations:",
        );
        if HEADS.any_starts(text) {
            return Taken::Read;
        }
        let Some((key, value)) = text.split_once(':') else { return Taken::Strange };
        let value = value.trim();
        let first = value.split_whitespace().next().unwrap_or_default();
        let number =
            |text: &str| Figure::read(text.trim_end_matches("ms").trim_end_matches('s'), line);
        let rate = || number(value.split_once('(')?.1.split_once(" per sec")?.0.trim());
        let average = || number(first.split_once('/')?.0);
        let count = || Figure::count(first, line);
        match key.trim() {
            "Number of threads" => once(&mut self.threads, count()),
            "read" => once(&mut self.reads, count()),
            "write" => once(&mut self.writes, count()),
            "other" => once(&mut self.others, count()),
            "total" => once(&mut self.total, count()),
            "transactions" if value.contains("per sec") => {
                self.per_second = rate();
                once(&mut self.transactions, count())
            }
            "queries" => {
                self.queries_per_second = rate();
                once(&mut self.queries, count())
            }
            "ignored errors" | "deadlocks" => once(&mut self.errors, count()),
            "total time" | "time elapsed" => once(&mut self.total_time_s, number(first)),
            "total number of events" => once(&mut self.events, count()),
            "avg" => once(&mut self.latency_average_ms, number(first)),
            "sum" => once(&mut self.latency_sum_ms, number(first)),
            "events (avg/stddev)" => once(&mut self.events_per_thread, average()),
            "execution time (avg/stddev)" => once(&mut self.thread_time_s, average()),
            _ => Taken::Strange,
        }
    }
}

/// A command of sysbench that runs a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SysbenchCommand {
    pub(crate) line: usize,
    pub(crate) threads: Option<Figure>,
    pub(crate) time_s: Option<Figure>,
}

/// Finds the commands. Their lines stay open to others.
pub(super) fn commands(scan: &Scan<'_>) -> Vec<SysbenchCommand> {
    scan.lines.iter().filter_map(|line| command(&line.text, line.number)).collect()
}

/// `sysbench oltp.lua --num-threads=10 --max-time=600 run`
fn command(text: &str, line: usize) -> Option<SysbenchCommand> {
    let (_, rest) = text.split_once("sysbench ")?;
    let words: Vec<&str> = rest.split_whitespace().map(|word| word.trim_matches('`')).collect();
    words.contains(&"run").then_some(())?;
    let value = |names: [&str; 2]| {
        let mut given = words.iter().filter_map(|word| {
            let (name, value) = word.split_once('=')?;
            names.contains(&name).then(|| Figure::count(value, line)).flatten()
        });
        given.next()
    };
    Some(SysbenchCommand {
        line,
        threads: value(["--threads", "--num-threads"]),
        time_s: value(["--time", "--max-time"]),
    })
}

/// The greatest latency that sysbench's histogram knows (ms).
const CAP: f64 = 100_000.0;

/// Returns the percentile of `run` that is the greatest that its histogram knows.
pub(super) fn capped_percentile(scan: &Scan<'_>, run: &SysbenchRun) -> Option<Figure> {
    let mut lines =
        scan.lines.iter().filter(|line| (run.line..=run.last_line).contains(&line.number));
    lines.find_map(|line| {
        let (name, value) = line.text.trim().split_once("th percentile:")?;
        let value = Figure::read(value.trim().trim_end_matches("ms"), line.number)?;
        (name.parse::<u8>().is_ok() && value.value >= CAP).then_some(value)
    })
}

/// Strange lines that may stand in a report: warnings, folded text.
const PATIENCE: usize = 3;

/// Finds all in the document and marks their lines as read.
pub(super) fn find(scan: &mut Scan<'_>) -> Vec<SysbenchRun> {
    let mut runs = Vec::new();
    let mut open: Option<SysbenchRun> = None;
    let mut progress = Vec::new();
    let mut strange = 0;
    for at in 0..scan.lines.len() {
        let line = &scan.lines[at];
        let text = line.text.trim();
        if text.is_empty() || scan.read[at] {
            continue;
        }
        if let Some(interval) = interval(text, line.number) {
            scan.read[at] = true;
            progress.push(interval);
            continue;
        }
        let begins = ["SQL statistics:", "Number of threads:", "OLTP test statistics:"]
            .iter()
            .any(|first| text.starts_with(first));
        let taken = open.as_mut().map_or(Taken::Strange, |run| run.take(text, line.number));
        match (taken, open.as_mut()) {
            (Taken::Read, Some(run)) => {
                scan.read[at] = true;
                run.last_line = line.number;
                strange = 0;
                continue;
            }
            (Taken::Strange, Some(_)) if !begins => {
                strange += 1;
                if strange > PATIENCE {
                    runs.extend(close(open.take(), &mut progress));
                }
                continue;
            }
            _ if begins => {
                if open.as_ref().is_none_or(|run| run.transactions.is_some()) {
                    runs.extend(close(open.take(), &mut progress));
                }
                let run = open
                    .get_or_insert_with(|| SysbenchRun { line: line.number, ..Default::default() });
                run.take(text, line.number);
                run.last_line = line.number;
                scan.read[at] = true;
                strange = 0;
            }
            _ => runs.extend(close(open.take(), &mut progress)),
        }
    }
    runs.extend(close(open, &mut progress));
    runs
}

/// The run, if it has any figure of a database, with the interval lines above it.
fn close(run: Option<SysbenchRun>, progress: &mut Vec<Progress>) -> Option<SysbenchRun> {
    let run = run.filter(|run| run.transactions.is_some())?;
    Some(SysbenchRun { progress: std::mem::take(progress), ..run })
}

/// `[ 40s ] thds: 10 tps: 173.60 qps: 3474.43 (…)`.
fn interval(text: &str, line: usize) -> Option<Progress> {
    let (at, rest) = text.strip_prefix('[')?.split_once(']')?;
    let at_s = Figure::read(at.trim().strip_suffix('s')?.trim(), line)?;
    let (_, tps) = rest.split_once("tps: ")?;
    let tps = Figure::read(tps.split([' ', ',']).next()?, line)?;
    Some(Progress { at_s, tps, latency_ms: None })
}
