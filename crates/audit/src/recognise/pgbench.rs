//! pgbench's report as versions 8.4 to 18 print it, whole or in part, and its progress lines.

use super::pgbench_run::{PgbenchRun, Progress, Script, Statement};
use super::scan::Scan;
use super::taken::{Taken, once};
use crate::figure::Figure;
use crate::words::Words;

/// Finds all in the document and marks their lines as read.
pub(super) fn find(scan: &mut Scan<'_>) -> Vec<PgbenchRun> {
    let mut runs = Vec::new();
    let mut open: Option<Open> = None;
    let mut progress = Vec::new();
    let mut version: Option<String> = None;
    for at in 0..scan.lines.len() {
        let line = &scan.lines[at];
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        // Authors make lists of its lines.
        let text = text.strip_prefix("- ").or_else(|| text.strip_prefix("* ")).unwrap_or(text);
        if let Some(read) = read_progress(text, line.number) {
            scan.read[at] = true;
            progress.push(read);
            continue;
        }
        if let Some(found) = banner(text) {
            scan.read[at] = true;
            runs.extend(open.take().and_then(Open::close));
            version = Some(found);
            continue;
        }
        if text.starts_with("starting vacuum") || text.starts_with("pgdyno: ") {
            scan.read[at] = true;
            continue;
        }
        if let Some(run) = open.as_mut() {
            match run.take(text, line.number) {
                Taken::Read => {
                    scan.read[at] = true;
                    run.run.last_line = line.number;
                    run.strange = 0;
                    continue;
                }
                Taken::Repeated => runs.extend(open.take().and_then(Open::close)),
                Taken::Strange => {
                    run.strange += 1;
                    if run.strange > Open::PATIENCE || run.run.tps().is_some() {
                        runs.extend(open.take().and_then(Open::close));
                    }
                    continue;
                }
            }
        }
        if open.is_none() && begins(text) {
            let mut run = Open::default();
            if let Taken::Read = run.take(text, line.number) {
                scan.read[at] = true;
                run.run.line = line.number;
                run.run.last_line = line.number;
                run.run.version = version.take();
                run.run.progress = std::mem::take(&mut progress);
                open = Some(run);
            }
        }
    }
    runs.extend(open.and_then(Open::close));
    // A run that was killed, or of which only the progress was copied.
    if let (Some(first), Some(last)) = (progress.first(), progress.last()) {
        let (line, last_line) = (first.at_s.line, last.at_s.line);
        runs.push(PgbenchRun { line, last_line, version, progress, ..PgbenchRun::default() });
    }
    runs
}

/// Returns the lines that tell of a client that was aborted.
pub(super) fn aborted_clients(scan: &Scan<'_>) -> Vec<usize> {
    let is_aborted = |text: &str| {
        let lower = text.to_lowercase();
        let (number, rest) = lower.split_once("client ")?.1.split_once(' ')?;
        let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        (is_number && rest.starts_with("aborted in ")).then_some(())
    };
    let lines = scan.lines.iter().filter(|line| is_aborted(&line.text).is_some());
    lines.map(|line| line.number).collect()
}

/// Lines that begin a report, whole or partly copied.
fn begins(text: &str) -> bool {
    const FIRST: Words = Words(
        "transaction type:|scaling factor:|query mode:|number of clients:|\
         number of transactions actually processed:|tps = ",
    );
    FIRST.any_starts(text)
}

/// `pgbench (15.3, server 15.1)`.
fn banner(text: &str) -> Option<String> {
    let inside = text.strip_prefix("pgbench (")?.split_once(')').map(|(inside, _)| inside)?;
    let version = inside.split([',', ' ']).next()?;
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
}

/// `progress: 5.0 s, 4123.1 tps, lat 3.801 ms stddev 3.299, …`.
fn read_progress(text: &str, line: usize) -> Option<Progress> {
    let mut parts = text.strip_prefix("progress: ")?.split(", ");
    let at_s = Figure::read(parts.next()?.strip_suffix(" s")?, line)?;
    let tps = Figure::read(parts.next()?.strip_suffix(" tps")?, line)?;
    let latency_ms =
        parts.next().and_then(|p| Figure::read(p.strip_prefix("lat ")?.split(' ').next()?, line));
    Some(Progress { at_s, tps, latency_ms })
}

/// A report that is being read.
#[derive(Default)]
struct Open {
    run: PgbenchRun,
    /// Whether the lines to come are statements, and how many counts stand before each one's text.
    statements: Option<usize>,
    /// Lines in a row that are none of pgbench's.
    strange: usize,
}

impl Open {
    /// Strange lines that may stand in a report: warnings, folded text.
    const PATIENCE: usize = 3;

    /// The run, if it has any figure.
    fn close(self) -> Option<PgbenchRun> {
        let run = self.run;
        (run.tps().is_some() || run.transactions.is_some()).then_some(run)
    }

    fn take(&mut self, text: &str, line: usize) -> Taken {
        if let Some(counts) = self.statements {
            if let Some(statement) = statement(text, counts, line) {
                match self.run.scripts.last_mut() {
                    Some(script) => script.statements.push(statement),
                    None => self.run.statements.push(statement),
                }
                return Taken::Read;
            }
            self.statements = None;
        }
        if let Some(rest) = text.strip_prefix("statement latencies in milliseconds") {
            self.statements = Some(match rest.trim_end_matches(':') {
                "" => 0,
                " and failures" => 1,
                _ => 2,
            });
            let before = match self.run.scripts.last() {
                Some(script) => &script.statements,
                None => &self.run.statements,
            };
            return if before.is_empty() { Taken::Read } else { Taken::Repeated };
        }
        if text == "script statistics:" {
            return Taken::Read;
        }
        if let Some(rest) = text.strip_prefix("SQL script ") {
            let name = rest.split_once(": ").map_or(rest, |(_, name)| name).to_owned();
            self.run.scripts.push(Script { name, line, ..Script::default() });
            return Taken::Read;
        }
        if let Some(script) = self.run.scripts.last_mut() {
            match script.take(text, line) {
                Some(true) => return Taken::Read,
                Some(false) => {}
                None => return Taken::Repeated,
            }
        }
        self.take_total(text, line)
    }

    fn take_total(&mut self, text: &str, line: usize) -> Taken {
        let run = &mut self.run;
        for (key, slot) in
            [("transaction type:", &mut run.transaction_type), ("query mode:", &mut run.query_mode)]
        {
            if let Some(value) = text.strip_prefix(key) {
                return once(slot, Some(value.trim().to_owned()));
            }
        }
        let first =
            |value: &str| value.trim().split([' ', '/', '(']).next().unwrap_or_default().to_owned();
        for (key, slot) in [
            ("scaling factor:", &mut run.scale),
            ("number of clients:", &mut run.clients),
            ("number of threads:", &mut run.threads),
            ("number of transactions per client:", &mut run.transactions_per_client),
            ("duration:", &mut run.duration_s),
            ("maximum number of tries:", &mut run.max_tries),
            ("number of failed transactions:", &mut run.failed),
            ("number of transactions skipped:", &mut run.skipped),
            ("number of transactions retried:", &mut run.retried),
        ] {
            if let Some(value) = text.strip_prefix(key) {
                let value = first(value);
                let value = value.trim_end_matches('s');
                return once(
                    slot,
                    Figure::count(value, line).or_else(|| Figure::read(value, line)),
                );
            }
        }
        if let Some(value) = text.strip_prefix("number of transactions actually processed:") {
            if let Some((_, wanted)) = value.split_once('/') {
                run.transactions_wanted = Figure::count(&first(wanted), line);
            }
            return once(&mut run.transactions, Figure::count(&first(value), line));
        }
        for (key, slot) in [
            ("latency average", &mut run.latency_average_ms),
            ("latency stddev", &mut run.latency_stddev_ms),
            ("initial connection time", &mut run.initial_connection_ms),
            ("rate limit schedule lag", &mut run.schedule_lag_ms),
        ] {
            if let Some(value) = text.strip_prefix(key) {
                let value = value.trim_start_matches([' ', '=', ':']).trim_start_matches("avg ");
                return once(slot, Figure::read(&first(value), line));
            }
        }
        if let Some(value) = text.strip_prefix("tps = ") {
            let slot = if value.contains("including reconnection") {
                &mut run.tps_reconnecting
            } else if value.contains("including") {
                &mut run.tps_including
            } else if value.contains("excluding") {
                &mut run.tps_excluding
            } else if value.contains("without initial") {
                &mut run.tps_without
            } else {
                &mut run.tps_bare
            };
            return once(slot, Figure::read(&first(value), line));
        }
        const OTHERS: Words = Words(
            "transaction maximum tries number:|partition method:|partitions:|\
             number of transactions above the |number of serialization failures:|\
             number of deadlock failures:|number of other failures:|total number of retries:|\
             average connection time",
        );
        if OTHERS.any_starts(text) { Taken::Read } else { Taken::Strange }
    }
}

impl Script {
    /// Whether the line was one of a script's; none for one that this script has already.
    fn take(&mut self, text: &str, line: usize) -> Option<bool> {
        let number = |text: &str| Figure::read(text.trim(), line);
        if let Some(value) = text.strip_prefix("weight:") {
            let percent = value.split_once("targets ").and_then(|(_, rest)| rest.split('%').next());
            self.target_percent = percent.and_then(number);
            return Some(true);
        }
        if let Some(value) = text.strip_prefix("latency average") {
            let value = value.trim_start_matches([' ', '=', ':']);
            let known = self.latency_average_ms.is_some();
            self.latency_average_ms = value.split(' ').next().and_then(number);
            return (!known).then_some(true);
        }
        if text.starts_with("latency stddev") {
            return Some(true);
        }
        let tps = |text: &str| {
            let (_, rest) = text.split_once("tps = ")?;
            number(rest.trim_end_matches(')'))
        };
        // From 18 on this line says what the one before it did.
        if let Some(value) = text.strip_prefix("number of transactions actually processed:") {
            let count = value.trim().split(' ').next().unwrap_or_default();
            let (known, count) = (self.tps.is_some(), Figure::count(count, line));
            if value.contains("tps = ") && !known {
                self.transactions = count;
                self.tps = tps(value);
                return Some(true);
            }
            return None;
        }
        if text.starts_with("number of ") || text.starts_with("total number of retries:") {
            // The totals stand above all scripts.
            return if text.starts_with("number of clients:") { None } else { Some(true) };
        }
        if let Some((count, rest)) = text.split_once(" transactions (") {
            let Some(count) = Figure::count(count, line) else { return Some(false) };
            self.transactions = Some(count);
            self.percent = rest.split('%').next().and_then(number);
            self.tps = tps(rest);
            return Some(true);
        }
        Some(false)
    }
}

/// `0.146576 BEGIN;`, with as many counts before the text as the head of the list promises.
fn statement(text: &str, counts: usize, line: usize) -> Option<Statement> {
    let (latency, mut rest) = text.split_once(char::is_whitespace)?;
    let latency_ms = latency.contains('.').then(|| Figure::read(latency, line)).flatten()?;
    let mut failures = None;
    for count in 0..counts {
        let (number, after) = rest.trim_start().split_once(char::is_whitespace)?;
        let number = Figure::count(number, line)?;
        if count == 0 {
            failures = Some(number);
        }
        rest = after;
    }
    let text = rest.trim();
    (!text.is_empty()).then(|| Statement { text: text.to_owned(), latency_ms, failures })
}
