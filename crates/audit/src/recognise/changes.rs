//! What prose claims of a change: `25% faster`, `twice as fast`, `tps = 538 (+35% to the default)`.

use super::claims::mentioned;
use super::scan::Scan;
use crate::figure::{Figure, written};
use crate::words::Words;

/// A claim that one thing is faster or slower than another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChangeClaim {
    pub(crate) line: usize,
    pub(crate) change: Change,
    /// As it is written.
    pub(crate) words: String,
    /// The first and the second of the two things, where both are named.
    pub(crate) names: Option<(String, String)>,
    /// The tps beside it, where one is.
    pub(crate) tps: Option<Figure>,
    /// Whether it says that it is not exact.
    pub(crate) about: bool,
    /// Whether it says only at least how much.
    pub(crate) at_least: bool,
}

/// By how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    /// Percent more or less, as a positive number.
    Percent(Figure),
    /// So many times as much, from the first to the second.
    Times(f64, f64),
}

/// Lines longer than this say too much.
const LONGEST: usize = 240;

/// Words for a change of what pgbench measures.
const FASTER: Words = Words(
    "faster|slower|as fast|as slow|tps|transactions per second|throughput|performance|быстрее|\
     медленнее|производительн|скорост|schneller|langsamer|rychlej|pomalej|výkon|szybc|wolniej|\
     wydajno|性能|快|慢|遅|速",
);

/// Words for a change; a percentage without one of them may be of anything.
const CHANGED: Words = Words(
    "faster|slower|higher|lower|better|worse|more|less|increase|decrease|improv|gain|drop|boost|\
     быстрее|медленнее|выше|ниже|вырос|увелич|упал|сниз|schneller|langsamer|mehr|weniger|\
     rychlej|pomalej|vyšší|nižší|提升|下降|快|慢|遅|速く",
);

/// What else may change beside tps, and what is no claim of what was measured.
const OTHERWISE: Words = Words(
    "cpu|ram|memory|disk|size|space|latenc|wal |iops|load time|loading|build|import|index|\
     backup|compress|start|cost|price|p95|p99|cache|query|queries|read|write|select|insert|if |\
     should|would|could|can |may |might|up to|expect|typical|usual|?|target|goal|theor|overhead|\
     noise|спис|памят|диск|латент|задержк|размер|если|может|ожида|内存|延迟|可能",
);

pub(super) fn find(scan: &mut Scan<'_>, names: &[String]) -> Vec<ChangeClaim> {
    let mut found = Vec::new();
    for (at, line) in scan.lines.iter().enumerate() {
        let lower = line.text.to_lowercase();
        if !line.cells.is_empty() || lower.len() > LONGEST || OTHERWISE.any_in(&lower) {
            continue;
        }
        let tps = tps_of(&lower, line.number);
        if scan.read[at] && tps.is_none() || !FASTER.any_in(&lower) {
            continue;
        }
        let Some((change, words)) =
            times(&lower).or_else(|| percent(&lower, line.number, tps.is_some()))
        else {
            continue;
        };
        let says = |words: Words| words.any_in(&lower);
        let named = mentioned(&lower, names);
        let linked = says(Words("than|compared|чем|als |než|vs|по сравнению"));
        let names = match named.as_slice() {
            [of, to] if linked => Some((of.clone(), to.clone())),
            _ => None,
        };
        found.push(ChangeClaim {
            line: line.number,
            change,
            words,
            names,
            tps,
            about: says(Words(
                "about|around|almost|nearly|roughly|approx|~|≈|почти|примерно|около|约|asi |etwa",
            )),
            at_least: says(Words("more than|over |at least|>|более|больше чем|свыше|超过|über ")),
        });
        scan.read[at] = true;
    }
    found
}

/// `tps = 537.801832`: a tps that the line gives beside its claim.
fn tps_of(lower: &str, line: usize) -> Option<Figure> {
    let (_, rest) = lower.split_once("tps")?;
    let rest = rest.trim_start_matches([' ', '=', ':']);
    let digits: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    Figure::read(digits.trim_end_matches('.'), line)
}

/// The only percentage of the line, where a sign before it or a word beside it says that it is of a
/// change.
fn percent(lower: &str, line: usize, beside_tps: bool) -> Option<(Change, String)> {
    if lower.matches('%').count() != 1 {
        return None;
    }
    let before = lower.split_once('%')?.0.trim_end();
    let start = before
        .char_indices()
        .rev()
        .take_while(|(_, c)| c.is_ascii_digit() || matches!(c, '.' | ','));
    let start = start.last().map(|(at, _)| at)?;
    let digits = before[start..].trim_start_matches(['.', ',']);
    let signed = before[..start].ends_with(['+', '-', '−']);
    let ranged = before[..start]
        .trim_end()
        .ends_with(|c: char| c.is_ascii_digit() || matches!(c, '–' | '~'))
        || signed
            && before[..start]
                .trim_end_matches(['+', '-', '−'])
                .ends_with(|c: char| c.is_ascii_digit() || c == '%');
    let changed = CHANGED.any_in(lower) || signed && beside_tps;
    let figure = written(digits, None, line).number()?;
    (changed && !ranged && figure.value > 0.0)
        .then(|| (Change::Percent(figure), format!("{digits}%")))
}

/// `twice as fast`, `3 times slower`, `2.5x faster`, `в 4 раза`, `4,5倍`.
fn times(lower: &str) -> Option<(Change, String)> {
    const UNITS: Words = Words("times|fold|x|×|раза|раз|倍|mal|krát|razy");
    if !CHANGED.any_in(lower) && !lower.contains(" as ") {
        return None;
    }
    if lower.contains("twice as") || lower.contains("doubled") {
        return Some((Change::Times(2.0, 2.0), "twice".to_owned()));
    }
    let mut found = None;
    for (start, _) in lower.char_indices().filter(|(_, c)| c.is_ascii_digit()) {
        let joined =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ',' | '-' | '–' | '_');
        if lower[..start].chars().next_back().is_some_and(joined) {
            continue;
        }
        let number: String = lower[start..]
            .chars()
            .take_while(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '–'))
            .collect();
        let rest = lower[start + number.len()..].trim_start_matches([' ', '-']);
        let Some(unit) = UNITS.iter().find(|unit| rest.starts_with(unit)) else { continue };
        if rest[unit.len()..].starts_with(|c: char| c.is_ascii_alphanumeric()) || found.is_some() {
            return None;
        }
        let bounds = |sign: char| {
            let (low, high) = number.split_once(sign)?;
            Some((low.parse::<f64>().ok()?, high.parse::<f64>().ok()?))
        };
        let one = || number.parse::<f64>().ok().map(|n| (n, n));
        // `4,5` is from 4 to 5, or between them.
        let (low, high) = bounds('-')
            .or_else(|| bounds('–'))
            .or_else(one)
            .or_else(|| bounds(',').filter(|(l, h)| l < h))?;
        if !(1.0..1000.0).contains(&low) || high < low {
            return None;
        }
        found = Some((Change::Times(low, high), format!("{number} {unit}")));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_in_the_forms_in_which_people_write_them() {
        let of = |text: &str| times(text);
        assert_eq!(of("xfs is twice as fast as ext4").unwrap().0, Change::Times(2.0, 2.0));
        assert_eq!(of("tps is 2.5x higher").unwrap().0, Change::Times(2.5, 2.5));
        assert_eq!(
            of("производительность выросла почти в 4 раза").unwrap().0,
            Change::Times(4.0, 4.0)
        );
        assert_eq!(of("tps 4,5倍遅くなった").unwrap().0, Change::Times(4.0, 5.0));
        for none in ["run it 3 times", "5 times 60 s", "tps of 3 xfs volumes is higher"] {
            assert_eq!(of(none), None, "{none}");
        }
        let percent = |text: &str| percent(text, 1, text.contains("tps =")).map(|(_, words)| words);
        assert_eq!(percent("zfs is 25% slower"), Some("25%".to_owned()));
        assert_eq!(percent("tps = 537.8 (+35% to the default)"), Some("35%".to_owned()));
        for none in
            ["zfs reaches 75% of xfs", "10-20% faster", "+5% to +9% faster", "fillfactor 90%"]
        {
            assert_eq!(percent(none), None, "{none}");
        }
    }
}
