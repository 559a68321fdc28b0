//! Percentages that pgbench prints beside its counts.

use super::pgbench_run::PgbenchRun;
use super::scan::Scan;
use crate::figure::Figure;

/// A count of pgbench's report with its share of a whole: `number of failed transactions: 3
/// (0.5%)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PrintedShare {
    pub(crate) of: Counted,
    pub(crate) count: Figure,
    /// The printed percentage; none of a bare count.
    pub(crate) percent: Option<Figure>,
    /// Whole that is printed beside it.
    pub(crate) whole: Option<Figure>,
}

/// Things that pgbench counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Failed,
    SerializationFailures,
    DeadlockFailures,
    OtherFailures,
    Skipped,
    Retried,
    /// Without a percentage.
    Retries,
    AboveLimit,
}

const NAMES: [(&str, Counted); 8] = [
    ("number of failed transactions:", Counted::Failed),
    ("number of serialization failures:", Counted::SerializationFailures),
    ("number of deadlock failures:", Counted::DeadlockFailures),
    ("number of other failures:", Counted::OtherFailures),
    ("number of transactions skipped:", Counted::Skipped),
    ("number of transactions retried:", Counted::Retried),
    ("total number of retries:", Counted::Retries),
    ("number of transactions above the ", Counted::AboveLimit),
];

/// Returns the shares of `run`'s totals; those of its scripts stand below.
pub(super) fn of_run(scan: &Scan<'_>, run: &PgbenchRun) -> Vec<PrintedShare> {
    let until = run.scripts.first().map_or(run.last_line + 1, |script| script.line);
    let lines = scan.lines.iter().filter(|line| (run.line..until).contains(&line.number));
    lines.filter_map(|line| read(&line.text, line.number)).collect()
}

fn read(text: &str, line: usize) -> Option<PrintedShare> {
    let text = text.trim().trim_start_matches(['-', '*', ' ']);
    let (rest, of) = NAMES.iter().find_map(|(name, of)| Some((text.strip_prefix(name)?, *of)))?;
    // `… above the 50.0 ms latency limit: 5/299999 (0.002%)`
    let value = if of == Counted::AboveLimit { rest.split_once(':')?.1 } else { rest };
    let (counts, percent) = match value.split_once('(') {
        Some((counts, rest)) => (counts, Figure::read(rest.split('%').next()?.trim(), line)),
        None => (value, None),
    };
    let (count, whole) = match counts.trim().split_once('/') {
        Some((count, whole)) => (count, Figure::count(whole, line)),
        None => (counts.trim(), None),
    };
    Some(PrintedShare { of, count: Figure::count(count, line)?, percent, whole })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_with_their_wholes() {
        let read = |text: &str| {
            let share = read(text, 1)?;
            let value = |figure: Option<Figure>| figure.map(|figure| figure.value);
            Some((share.of, share.count.value, value(share.percent), value(share.whole)))
        };
        assert_eq!(
            read("number of failed transactions: 100 (25.000%)"),
            Some((Counted::Failed, 100.0, Some(25.0), None))
        );
        assert_eq!(
            read("number of transactions above the 50.0 ms latency limit: 5/299999 (90.000%)"),
            Some((Counted::AboveLimit, 5.0, Some(90.0), Some(299_999.0)))
        );
        assert_eq!(read("total number of retries: 7"), Some((Counted::Retries, 7.0, None, None)));
        assert_eq!(read("number of failed transactions: 0 (NaN%)").unwrap().2, None);
        assert_eq!(read("number of clients: 7"), None);
    }
}
