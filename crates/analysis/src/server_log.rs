//! Checkpoints and autovacuum in the server's log.

use std::collections::BTreeMap;

use pgdyno_model::units::Epoch;

use super::view::LogEvent;

/// Beginnings of the messages of interest. They are English, as a managed server logs by default.
const CHECKPOINTS: &[&str] = &[
    "checkpoint starting: ",
    "checkpoint complete: ",
    "restartpoint starting: ",
    "restartpoint complete: ",
];

/// Numbers of such messages: what stands before one, and its name.
const NUMBERS: &[(&str, &str)] = &[
    ("complete: wrote ", "buffers"),
    ("write=", "write_s"),
    ("sync=", "sync_s"),
    ("total=", "total_s"),
    ("longest=", "longest_sync_s"),
    ("distance=", "distance_kB"),
    ("elapsed: ", "elapsed_s"),
    ("tuples: ", "tuples_removed"),
];

/// The events of `log` in its order, with times from `opened`.
pub(super) fn events(log: &str, opened: Option<Epoch>) -> Vec<LogEvent> {
    let mut out: Vec<LogEvent> = Vec::new();
    let mut within = false;
    for line in log.lines() {
        // A message's further lines are indented.
        if line.starts_with('\t') {
            if let Some(event) = out.last_mut().filter(|_| within) {
                add_numbers(&mut event.numbers, line);
            }
            continue;
        }
        let event = event(line, opened);
        within = event.is_some();
        out.extend(event);
    }
    out
}

fn event(line: &str, opened: Option<Epoch>) -> Option<LogEvent> {
    let (prefix, message) = line.split_once("LOG:  ")?;
    let (kind, of) = if CHECKPOINTS.iter().any(|begin| message.starts_with(begin)) {
        let (kind, rest) = message.split_once(": ")?;
        // Of a completed one all that matters is in its numbers.
        (kind, if kind.ends_with("starting") { rest } else { "" })
    } else if message.starts_with("automatic ") {
        let (kind, rest) = message.split_once(" of table \"")?;
        (kind, rest.split_once('"')?.0)
    } else {
        return None;
    };
    let mut numbers = BTreeMap::new();
    add_numbers(&mut numbers, message);
    let from = |opened: Epoch| Some((written_at(prefix)?.0 as f64 - opened.0 as f64) / 1e9);
    let t_s = opened.and_then(from).map(|t| (t * 1000.0).round() / 1000.0);
    Some(LogEvent { t_s, kind: kind.to_owned(), of: of.to_owned(), numbers })
}

fn add_numbers(numbers: &mut BTreeMap<String, f64>, text: &str) {
    for (before, name) in NUMBERS {
        let Some((_, after)) = text.split_once(before) else { continue };
        let end = after.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(after.len());
        if let Some(value) = after.get(..end).and_then(|digits| digits.parse().ok()) {
            numbers.insert((*name).to_owned(), value);
        }
    }
}

/// Reads when a line was written from its beginning, as `log_line_prefix = '%m …'` writes it in
/// UTC, which a managed server is set to; none for another form or zone.
fn written_at(prefix: &str) -> Option<Epoch> {
    let mut words = prefix.split(' ');
    let (date, time, zone) = (words.next()?, words.next()?, words.next()?);
    matches!(zone, "UTC" | "GMT").then(|| format!("{date}T{time}Z").parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "2026-11-21 16:00:01.250 UTC [7] LOG:  checkpoint starting: wal\n\
        2026-11-21 16:00:05.000 UTC [7] LOG:  checkpoint complete: wrote 103 buffers (0.6%); \
        0 WAL file(s) added, 0 removed, 1 recycled; write=3.500 s, sync=0.003 s, total=3.700 s; \
        sync files=24, longest=0.002 s, average=0.001 s; distance=541 kB, estimate=600 kB\n\
        2026-11-21 16:00:06.000 UTC [9] LOG:  automatic vacuum of table \
        \"pgdyno.public.pgbench_history\": index scans: 0\n\
        \tpages: 0 removed, 12 remain\n\ttuples: 7 removed, 100 remain\n\
        \tsystem usage: CPU: user: 0.01 s, system: 0.00 s, elapsed: 0.25 s\n\
        2026-11-21 16:00:06.500 UTC [10] LOG:  database system is ready\n\tdistance=9 kB\n";

    #[test]
    fn checkpoints_and_autovacuum_are_read_with_their_times_and_numbers() {
        // 2026-11-21 16:00:00 UTC.
        let found = events(LOG, Some(Epoch(1_795_276_800_000_000_000)));
        let short: Vec<(Option<f64>, &str, &str)> =
            found.iter().map(|e| (e.t_s, e.kind.as_str(), e.of.as_str())).collect();
        assert_eq!(
            short,
            [
                (Some(1.25), "checkpoint starting", "wal"),
                (Some(5.0), "checkpoint complete", ""),
                (Some(6.0), "automatic vacuum", "pgdyno.public.pgbench_history"),
            ]
        );
        assert_eq!(found[1].numbers["buffers"], 103.0);
        assert_eq!((found[1].numbers["write_s"], found[1].numbers["distance_kB"]), (3.5, 541.0));
        assert_eq!(
            (found[2].numbers["elapsed_s"], found[2].numbers["tuples_removed"]),
            (0.25, 7.0)
        );
        assert_eq!(
            found[2].numbers.get("distance_kB"),
            None,
            "lines of another message are not taken"
        );
    }

    #[test]
    fn a_time_in_another_zone_or_form_is_none() {
        let log = "2026-11-21 17:00:01.250 CET [7] LOG:  checkpoint starting: time\n\
                   LOG:  checkpoint starting: time\n";
        let found = events(log, Some(Epoch(1)));
        assert_eq!(found.iter().map(|e| e.t_s).collect::<Vec<_>>(), [None, None]);
        assert_eq!(
            written_at("2000-03-01 00:00:00.001 UTC [1] "),
            Some(Epoch(951_868_800_001_000_000))
        );
    }
}
