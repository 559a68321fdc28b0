//! What prose claims of the figures: `A is about 75% of B`, `A: 581 ± 48 tps`.

use super::pgbench_run::PgbenchRun;
use super::scan::Scan;
use super::table::Table;
use crate::figure::{Figure, written};
use crate::words::Words;

/// A ratio of two names that stand beside one percentage.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RatioClaim {
    pub(crate) line: usize,
    /// The first and the second, as the report names them elsewhere.
    pub(crate) of: String,
    pub(crate) to: String,
    pub(crate) percent: Figure,
    pub(crate) about: bool,
}

/// A mean and its spread.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpreadClaim {
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) mean: Figure,
    pub(crate) spread: Figure,
}

/// Lines longer than this hold too much to tell what belongs to what.
const LONGEST: usize = 400;

/// More names than these are none.
const MOST_NAMES: usize = 200;

/// What names a percentage a difference, and not a ratio.
const DIFFERENCE: Words = Words(
    "within|up to|faster|slower|more|less|better|worse|lower|higher|drop|loss|gain|overhead|\
     schneller|langsamer|mehr|weniger|pomalej|rychlej|быстрее|медленнее|больше|меньше|快|慢|\
     提升|下降|util|cpu|idle",
);

const ABOUT: Words = Words(
    "about|around|approx|roughly|nearly|almost|circa|ca.|~|≈|约|大约|左右|zhruba|asi|přibližně|\
     okolo|cca|etwa|ungefähr|rund|около|примерно",
);

/// Short lines that stand alone and may be names.
fn lone_names(scan: &Scan<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for line in scan.lines {
        let text = name_of(&line.text);
        let one_word = !text.is_empty()
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        if one_word
            && text.len() <= 24
            && text.starts_with(|c: char| c.is_ascii_alphabetic())
            && names.len() < MOST_NAMES
        {
            names.push(text.to_owned());
        }
    }
    names
}

/// A heading without its marks.
pub(super) fn name_of(text: &str) -> &str {
    text.trim()
        .trim_start_matches(['#', '*', '=', '-', '•'])
        .trim()
        .trim_end_matches([':', '：', '*', '='])
        .trim()
}

/// The names that a sentence may use: rows, runs, lines that stand alone.
pub(super) fn names(scan: &Scan<'_>, runs: &[PgbenchRun], tables: &[Table]) -> Vec<String> {
    let rows = tables.iter().flat_map(|t| t.rows.iter().map(|r| r.label.clone()));
    let labels = runs.iter().filter_map(|r| r.label.clone());
    let mut all: Vec<String> =
        rows.chain(labels).chain(lone_names(scan)).filter(|n| n.chars().count() >= 2).collect();
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|name| seen.insert(name.to_lowercase()));
    all.truncate(MOST_NAMES);
    all
}

pub(super) fn ratios(scan: &mut Scan<'_>, names: &[String]) -> Vec<RatioClaim> {
    let mut found = Vec::new();
    for (at, line) in scan.lines.iter().enumerate() {
        if scan.read[at] || !line.cells.is_empty() || line.text.len() > LONGEST {
            continue;
        }
        let lower = line.text.to_lowercase();
        if lower.matches('%').count() != 1 || DIFFERENCE.any_in(&lower) {
            continue;
        }
        let Some(percent) = percentage(&lower, line.number) else { continue };
        let mentioned = mentioned(&lower, names);
        let [of, to] = mentioned.as_slice() else { continue };
        let about = ABOUT.any_in(&lower);
        found.push(RatioClaim {
            line: line.number,
            of: of.clone(),
            to: to.clone(),
            percent,
            about,
        });
        scan.read[at] = true;
    }
    found
}

/// The number before the percent sign.
fn percentage(lower: &str, line: usize) -> Option<Figure> {
    let (before, _) = lower.split_once('%')?;
    let is_digit = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    let digits = before.trim_end().rsplit(|c| !is_digit(c)).next()?;
    written(digits.trim_start_matches(['.', ',']), None, line).number()
}

/// The names in the order in which the sentence has them, each once; longer names before those that
/// they contain.
pub(super) fn mentioned(lower: &str, names: &[String]) -> Vec<String> {
    let mut by_length: Vec<&String> = names.iter().collect();
    by_length.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let mut taken = vec![false; lower.len()];
    let mut found: Vec<(usize, String)> = Vec::new();
    for name in by_length {
        let needle = name.to_lowercase();
        for (at, _) in lower.match_indices(&needle) {
            let end = at + needle.len();
            let part_of_word = |c: Option<char>| {
                c.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
            };
            let bounded = !part_of_word(lower[..at].chars().next_back())
                && !part_of_word(lower[end..].chars().next());
            if bounded && !taken[at..end].contains(&true) {
                taken[at..end].fill(true);
                found.push((at, name.clone()));
            }
        }
    }
    found.sort();
    let mut once: Vec<String> = Vec::new();
    for (_, name) in found {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once
}

pub(super) fn spreads(scan: &mut Scan<'_>) -> Vec<SpreadClaim> {
    let mut found = Vec::new();
    for (at, line) in scan.lines.iter().enumerate() {
        if scan.read[at] {
            continue;
        }
        let text = line.text.replace("+/-", "±").replace("+-", "±");
        let parts: Vec<&str> = text.split('±').collect();
        for pair in parts.windows(2) {
            let Some(claim) = spread(pair[0], pair[1], line.number) else { continue };
            found.push(claim);
            scan.read[at] = true;
        }
    }
    found
}

/// `… JFS: 581 ` and `48 tps, …`.
fn spread(before: &str, after: &str, line: usize) -> Option<SpreadClaim> {
    let (rest, mean) = before.trim_end().rsplit_once([' ', ':', '=', '('])?;
    let name = rest.trim_end_matches([':', ' ', '=']).rsplit([' ', '(', ',', ';', '[']).next()?;
    let spread =
        after.trim_start().split(|c: char| c.is_whitespace() || matches!(c, ')' | ';')).next()?;
    let spread = spread.trim_end_matches([',', '.']);
    let read = |text: &str| written(text, None, line).number();
    if name.is_empty() || !name.chars().any(char::is_alphabetic) {
        return None;
    }
    Some(SpreadClaim { line, name: name.to_owned(), mean: read(mean)?, spread: read(spread)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_with_its_spread_is_read_from_a_sentence() {
        let claim = spread("je to méně než chyba (JFS: 581 ", "48 tps, XFS", 3).unwrap();
        assert_eq!(
            (claim.name.as_str(), claim.mean.value, claim.spread.value),
            ("JFS", 581.0, 48.0)
        );
        assert_eq!(spread("bude ", "na stejné úrovni", 1), None);
        assert_eq!(spread("", "", 1), None);
    }

    #[test]
    fn names_are_whole_words_and_the_longest_that_fit() {
        let names: Vec<String> = ["xfs", "xfs-default", "ZFS"].map(str::to_owned).to_vec();
        assert_eq!(mentioned("zfs下的性能约为xfs的75%.", &names), ["ZFS", "xfs"]);
        assert_eq!(mentioned("xfs-default beats zfs_arc", &names), ["xfs-default"]);
        assert_eq!(percentage("约为xfs的75%.", 1).unwrap().value, 75.0);
    }
}
