//! The one form of prose that is judged: `xfs is 25% faster than zfs`, `xfs is twice as fast as zfs`,
//! `zfs reaches 75% of xfs`.
//!
//! Both names must stand in the figures, and the sentence must say which way the ratio goes and
//! nothing more. Whatever else seems to claim a ratio is told as not checked.

use std::collections::BTreeMap;

use pgdyno_stats::mean_ci95;

use super::pgbench_run::PgbenchRun;
use super::scan::Scan;
use super::table::Table;
use crate::figure::written;
use crate::words::{Words, split};

/// A claim that one configuration has so many times the throughput of another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Claim {
    pub(crate) line: usize,
    /// What is compared, and what with.
    pub(crate) of: Named,
    pub(crate) to: Named,
    /// The least and the greatest ratio of the two that may be told so.
    pub(crate) ratio: [f64; 2],
    /// As it is written: `25% faster`.
    pub(crate) words: String,
}

/// A configuration's name and its tps, as the figures have them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) tps: f64,
    pub(crate) line: usize,
}

impl Claim {
    /// Returns the ratio that the figures have.
    pub(crate) fn computed(&self) -> f64 {
        self.of.tps / self.to.tps
    }

    /// Returns whether the figures say the same.
    pub(crate) fn is_right(&self) -> bool {
        let [low, high] = self.ratio;
        (low..=high).contains(&self.computed())
    }
}

impl Named {
    fn lower(&self) -> String {
        self.name.to_lowercase()
    }
}

/// Longer lines say too much.
const LONGEST: usize = 400;

/// More names than these are none.
const MOST_NAMES: usize = 200;

/// `N times` allows this share of what is claimed.
const TIMES: f64 = 0.15;

/// Percentages that are multiples of 5, or that do not claim to be exact, are rounded by this.
const ROUND: f64 = 2.5;

/// Finds all whose two names stand in the figures of `tables`, or of `runs`, whose repeats are in
/// `groups`.
pub(super) fn find(
    scan: &mut Scan<'_>,
    tables: &[Table],
    runs: &[PgbenchRun],
    groups: &[Vec<usize>],
) -> Vec<Claim> {
    let sets = sets(tables, runs, groups);
    let names: Vec<String> = sets.iter().flatten().map(Named::lower).take(MOST_NAMES).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (mut found, mut open) = (Vec::new(), Vec::new());
    for (at, line) in scan.lines.iter().enumerate() {
        if scan.read[at] || !line.cells.is_empty() || line.text.len() > LONGEST {
            continue;
        }
        let before = found.len();
        for sentence in sentences(&line.text.to_lowercase()) {
            let Some(said) = Said::read(sentence, &names) else { continue };
            let mut meant = said.meant(&sets, line.number);
            match meant.next() {
                Some(first) if meant.all(|other| other.is_right() == first.is_right()) => {
                    found.push(first);
                }
                Some(_) => open
                    .push((at, "of two tables that have both names one says so, and one does not")),
                None => open.push((at, "no table of tps and no runs have both names")),
            }
        }
        scan.read[at] = found.len() > before;
    }
    for (at, why) in open {
        let number = scan.lines[at].number;
        if !std::mem::replace(&mut scan.read[at], true) {
            scan.not_understood(number, format!("a claim that is not checked: {why}"));
        }
    }
    found
}

/// The configurations of each table of tps, and of the runs. A name that a set has twice is none.
fn sets(tables: &[Table], runs: &[PgbenchRun], groups: &[Vec<usize>]) -> Vec<Vec<Named>> {
    let of_tables = tables.iter().filter(|table| table.tps).map(|table| {
        let rows = table.rows.iter().filter_map(|row| {
            let mean = || mean_ci95(&row.values()).mean;
            let tps = row.value().map(|figure| figure.value).or_else(mean)?;
            Some(Named { name: row.label.clone(), tps, line: row.line })
        });
        rows.collect()
    });
    let of_runs = groups.iter().filter_map(|group| {
        let first = &runs[*group.first()?];
        let tps: Vec<f64> =
            group.iter().filter_map(|at| Some(runs[*at].tps_connected()?.value)).collect();
        let mean = mean_ci95(&tps).mean.unwrap_or_default();
        Some(Named { name: first.label.clone()?, tps: mean, line: first.line })
    });
    let mut sets: Vec<Vec<Named>> = of_tables.collect();
    sets.push(of_runs.collect());
    for set in &mut sets {
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for named in set.iter() {
            *times.entry(named.lower()).or_default() += 1;
        }
        let is_one = |named: &Named| times[&named.lower()] == 1;
        set.retain(|named| is_one(named) && named.name.chars().count() >= 2 && named.tps > 0.0);
    }
    sets
}

/// The sentences of a line.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    const ENDS: [&str; 4] = [". ", "; ", "! ", "? "];
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = ENDS.iter().filter_map(|end| text.find(end)).min();
        let (sentence, more) = match end {
            Some(end) => (&text[..=end], Some(&text[end + 2..])),
            None => (text, None),
        };
        rest = more;
        Some(sentence.trim())
    })
}

/// What a sentence says of two names.
struct Said {
    of: String,
    to: String,
    ratio: [f64; 2],
    words: String,
}

impl Said {
    /// Reads a sentence in lower case that names exactly two of `names` and is of the form.
    fn read(sentence: &str, names: &[&str]) -> Option<Self> {
        let mentioned = mentioned(sentence, names);
        let [(of, of_at), (to, to_at)] = mentioned.as_slice() else { return None };
        let (before, between) = (&sentence[..of_at.start], &sentence[of_at.end..to_at.start]);
        let after = &sentence[to_at.end..];
        if !split(before).iter().all(|word| BEFORE.has(word)) || !ends(after) {
            return None;
        }
        let (ratio, words) = comparison(between)?;
        Some(Self { of: (*of).to_owned(), to: (*to).to_owned(), ratio, words })
    }

    /// Returns what it claims in each of `sets` that has both names.
    fn meant<'a>(
        &'a self,
        sets: &'a [Vec<Named>],
        line: usize,
    ) -> impl Iterator<Item = Claim> + 'a {
        sets.iter().filter_map(move |set| {
            let find = |name: &str| set.iter().find(|named| named.lower() == name).cloned();
            let (of, to) = find(&self.of).zip(find(&self.to))?;
            Some(Claim { line, of, to, ratio: self.ratio, words: self.words.clone() })
        })
    }
}

/// Words that may stand before the first name.
const BEFORE: Words =
    Words("so|thus|here|overall|result|results|conclusion|in|tps|on|with|the|and");

/// Words that may stand between a name and its verb, or before the other name.
const OF_NAME: Words = Words("s|the|tps|throughput|performance|speed|on|that|those|of|with|what");

/// Whether nothing behind the second name says of what it is said: another load, another size.
fn ends(after: &str) -> bool {
    const AFTER: Words = Words("s|tps|throughput|performance|speed|does|did|here|in");
    let clause = after.split([',', '(', ':', ')', '.']).next().unwrap_or_default();
    split(clause).iter().all(|word| AFTER.has(word))
        && !after.contains(|c: char| c.is_ascii_digit())
        && !after.contains('?')
}

/// Reads what stands between two names: the ratios of the first to the second that it allows, and
/// its words.
fn comparison(between: &str) -> Option<([f64; 2], String)> {
    const VERBS: Words = Words(
        "is|was|are|were|runs|ran|performs|performed|reaches|reached|gets|got|has|had|achieves|\
         achieved|delivers|delivered|does|did",
    );
    const ABOUT: Words =
        Words("about|around|approximately|approx|roughly|nearly|almost|circa|ca|~|≈");
    const TIMES_WORDS: Words = Words("times|x|×");
    let spaced = between.replace('%', " % ").replace('~', " ~ ").replace('≈', " ≈ ");
    let mut tokens: Vec<&str> = spaced
        .split(|c: char| c.is_whitespace() || matches!(c, '\'' | '’' | '`' | '"' | '*'))
        .map(|token| token.trim_end_matches([',', ':']))
        .filter(|token| !token.is_empty())
        .collect();
    let verb = tokens.iter().position(|token| VERBS.has(token))?;
    tokens[..verb].iter().all(|token| OF_NAME.has(token)).then_some(())?;
    let mut rest = tokens.split_off(verb + 1).into_iter().peekable();
    let mut about = false;
    while rest.next_if(|token| ABOUT.has(token.trim_end_matches('.'))).is_some() {
        about = true;
    }
    let amount = rest.next()?;
    let number = |text: &str| Some(written(text, None, 1).number()?.value).filter(|n| *n > 0.0);
    let (unit, value) = match amount {
        "twice" => (Unit::Times, 2.0),
        "half" => (Unit::Times, 0.5),
        _ => match amount.strip_suffix(['x', '×']) {
            Some(digits) => (Unit::Times, number(digits)?),
            None if rest.next_if(|token| TIMES_WORDS.has(token)).is_some() => {
                (Unit::Times, number(amount)?)
            }
            None if rest.next_if_eq(&"%").is_some() => (Unit::Percent, number(amount)?),
            None => return None,
        },
    };
    let rest: Vec<&str> = rest.collect();
    let (way, link) = match (unit, rest.as_slice()) {
        (_, ["faster" | "quicker" | "higher", "than", link @ ..]) => (Way::More, link),
        (_, ["slower" | "lower", "than", link @ ..]) => (Way::Less, link),
        (Unit::Percent, ["of", link @ ..]) => (Way::Share, link),
        (Unit::Times, ["as", "fast" | "quick" | "high", "as", link @ ..]) => (Way::Share, link),
        (Unit::Times, ["as", "slow", "as", link @ ..]) => (Way::Less, link),
        (Unit::Times, ["the", "tps" | "throughput" | "speed" | "performance", "of", link @ ..]) => {
            (Way::Share, link)
        }
        _ => return None,
    };
    link.iter().all(|token| OF_NAME.has(token)).then_some(())?;
    let shown = format!("{amount}{}", if unit == Unit::Percent { "%" } else { "" });
    let said = rest[..rest.len() - link.len()].join(" ");
    Some((allowed(unit, way, value, about)?, format!("{shown} {said}")))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Percent,
    Times,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// So much more than the other.
    More,
    /// So much less.
    Less,
    /// So much of the other.
    Share,
}

/// The ratios that `value` may stand for.
fn allowed(unit: Unit, way: Way, value: f64, about: bool) -> Option<[f64; 2]> {
    let slack = match unit {
        Unit::Times => TIMES * value * if about { 2.0 } else { 1.0 },
        Unit::Percent if about || value % 5.0 == 0.0 => ROUND,
        Unit::Percent => 1.0,
    };
    let ratio = |value: f64| match (unit, way) {
        (Unit::Percent, Way::More) => 1.0 + value / 100.0,
        (Unit::Percent, Way::Less) => 1.0 - value / 100.0,
        (Unit::Percent, Way::Share) => value / 100.0,
        // `3 times faster` is said of three times as much.
        (Unit::Times, Way::More | Way::Share) => value,
        (Unit::Times, Way::Less) => 1.0 / value,
    };
    let ends = [ratio(value - slack), ratio(value + slack)];
    let [low, high] = [ends[0].min(ends[1]), ends[0].max(ends[1])];
    // `120% slower` says nothing.
    (high > 0.0).then_some([low, high])
}

/// The names in the order in which the sentence has them, with their places; longer names before
/// those that they contain. None that stand twice.
fn mentioned<'a>(sentence: &str, names: &[&'a str]) -> Vec<(&'a str, std::ops::Range<usize>)> {
    let mut by_length = names.to_vec();
    by_length.sort_by_key(|name| std::cmp::Reverse(name.len()));
    by_length.dedup();
    let mut found: Vec<(&str, std::ops::Range<usize>)> = Vec::new();
    for name in by_length {
        for (at, _) in sentence.match_indices(name) {
            let place = at..at + name.len();
            let part_of_word =
                |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
            let is_whole = !part_of_word(sentence[..place.start].chars().next_back())
                && !part_of_word(sentence[place.end..].chars().next());
            let is_free =
                found.iter().all(|(_, other)| place.end <= other.start || other.end <= place.start);
            if is_whole && is_free {
                found.push((name, place));
            }
        }
    }
    found.sort_by_key(|(_, place)| place.start);
    found
}

/// Whether a line that no recogniser read seems to claim a ratio, in any of these languages.
pub(super) fn seems_to_claim(lower: &str) -> bool {
    const COMPARED: Words = Words(
        "faster|slower|as fast|as slow|quicker|higher|lower|improv|speedup|speed-up|outperform|\
         быстрее|медленнее|schneller|langsamer|rychlej|pomalej|szybc|wolniej|性能|提升|下降|快|慢|遅|速",
    );
    const UNITS: Words = Words("%|x|×|times|fold|раз|倍|mal|krát|razy");
    let counted = || {
        lower.char_indices().any(|(at, c)| {
            let rest = lower[at + c.len_utf8()..].trim_start_matches([' ', '-']);
            c.is_ascii_digit() && UNITS.any_starts(rest)
        })
    };
    COMPARED.any_in(lower) && (counted() || Words("twice|doubled|halved").any_in(lower))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["xfs", "xfs-default", "zfs"];

    fn read(sentence: &str) -> Option<(String, String, [f64; 2])> {
        let said = Said::read(sentence, &NAMES)?;
        let percent = said.ratio.map(|ratio| (ratio * 1000.0).round() / 1000.0);
        Some((said.of, said.to, percent))
    }

    #[test]
    fn a_ratio_has_the_direction_that_the_sentence_gives_it() {
        for (sentence, of, to, ratio) in [
            ("xfs is 26% faster than zfs.", "xfs", "zfs", [1.25, 1.27]),
            ("zfs is 26% slower than xfs", "zfs", "xfs", [0.73, 0.75]),
            ("xfs was about 26 % faster than zfs", "xfs", "zfs", [1.235, 1.285]),
            ("xfs is twice as fast as zfs", "xfs", "zfs", [1.7, 2.3]),
            ("so zfs is half as fast as xfs", "zfs", "xfs", [0.425, 0.575]),
            ("xfs runs 2x faster than zfs", "xfs", "zfs", [1.7, 2.3]),
            ("zfs is 2 times slower than xfs,", "zfs", "xfs", [0.435, 0.588]),
            ("zfs's tps is 69% of xfs's", "zfs", "xfs", [0.68, 0.7]),
            (
                "zfs reaches about 70% of the throughput of xfs-default",
                "zfs",
                "xfs-default",
                [0.675, 0.725],
            ),
            ("xfs has 1.5 times the throughput of zfs", "xfs", "zfs", [1.275, 1.725]),
        ] {
            let expected = (of.to_owned(), to.to_owned(), ratio);
            assert_eq!(read(sentence), Some(expected), "{sentence}");
        }
    }

    #[test]
    fn what_is_of_another_form_is_not_read() {
        for sentence in [
            "xfs is faster than zfs",
            "xfs is up to 25% faster than zfs",
            "xfs is more than 25% faster than zfs",
            "xfs is not 25% faster than zfs",
            "xfs is 10-25% faster than zfs",
            "xfs should be 25% faster than zfs",
            "if xfs is 25% faster than zfs",
            "for reads xfs is 25% faster than zfs",
            "xfs is 25% faster than zfs with 8 clients",
            "xfs is 25% faster than zfs, with 8 clients",
            "xfs is 25% faster than zfs?",
            "xfs is 25% faster than zfs for reads",
            "xfs uses 25% less cpu than zfs",
            "xfs is 25% faster than btrfs",
            "xfs is 25% faster than zfs and zfs is 20% slower",
            "zfs下的性能约为xfs的75%",
            "zfs is 120% slower than xfs",
        ] {
            assert_eq!(read(sentence), None, "{sentence}");
        }
    }

    #[test]
    fn a_line_is_read_by_its_sentences() {
        let all: Vec<&str> = sentences("a is 1.5 b. c; d? e").collect();
        assert_eq!(all, ["a is 1.5 b.", "c;", "d?", "e"]);
    }

    #[test]
    fn lines_that_seem_to_claim_a_ratio_are_known() {
        for claim in ["up to 3x faster", "в 4 раза быстрее", "性能提升了30%", "it is twice as fast"]
        {
            assert!(seems_to_claim(claim), "{claim}");
        }
        for other in ["faster disks", "run it 3 times", "fillfactor 90%", "18 is faster than 17"] {
            assert!(!seems_to_claim(other), "{other}");
        }
    }
}
