//! Which figures of a table are repeats of one thing.

use super::columns::{Role, names_condition, role};
use super::table::Row;
use crate::figure::Figure;
use crate::words::Words;

/// A row as it is written.
pub(super) struct Raw {
    pub(super) label: String,
    pub(super) line: usize,
    /// By column, from the second on; of a table without cells, those that there are.
    pub(super) figures: Vec<Option<Figure>>,
    /// As they are written, by column from the second on; none of a table without cells.
    pub(super) cells: Vec<String>,
}

/// Roles of columns that hold no repeat.
pub(super) const SPECIAL: [Role; 4] = [Role::Mean, Role::Ratio, Role::Share, Role::Spread];

/// The first column with this role, from the second on.
pub(super) fn column(roles: &[Role], role: Role) -> Option<usize> {
    roles.iter().skip(1).position(|r| *r == role)
}

impl Raw {
    /// The figure of a column, from the second on.
    pub(super) fn at(&self, column: Option<usize>) -> Option<Figure> {
        self.figures.get(column?).copied().flatten()
    }

    /// The row with what its header names beside repeats.
    pub(super) fn row(&self, roles: &[Role]) -> Row {
        let [mean, ratio, share, spread] = SPECIAL.map(|role| self.at(column(roles, role)));
        let (label, line) = (self.label.clone(), self.line);
        Row { label, line, mean, ratio, share, has_spread: spread.is_some(), ..Row::default() }
    }
}

/// Names rows that the first column only counts, by the columns that tell them apart: words, or
/// things that were varied.
pub(super) fn named_by_conditions(mut raw: Vec<Raw>, header: &[String]) -> Vec<Raw> {
    if !(is_numbered(raw.iter().map(|row| row.label.as_str())) || has_counted_labels(raw.iter())) {
        return raw;
    }
    let cell = |row: &Raw, column: usize| row.cells.get(column).cloned().unwrap_or_default();
    let differs = |column: usize| raw.iter().any(|row| cell(row, column) != cell(&raw[0], column));
    let columns: Vec<(usize, String)> = (1..header.len())
        .filter_map(|at| {
            let (column, name) = (at - 1, &header[at]);
            let is_words = raw.iter().all(|row| {
                row.figures.get(column).is_some_and(Option::is_none)
                    && cell(row, column).contains(char::is_alphabetic)
            });
            if !differs(column) {
                None
            } else if is_words {
                Some((column, String::new()))
            } else {
                names_condition(name).then(|| (column, format!("{name} ")))
            }
        })
        .collect();
    if columns.is_empty() {
        return raw;
    }
    for row in &mut raw {
        let named = columns.iter().map(|(column, name)| format!("{name}{}", cell(row, *column)));
        row.label = named.collect::<Vec<_>>().join(", ");
        for (column, _) in &columns {
            if let Some(figure) = row.figures.get_mut(*column) {
                *figure = None;
            }
        }
    }
    raw
}

/// Names of columns of repeats.
const REPEATS: Words =
    Words("run|test|trial|repeat|iteration|#|no|lauf|versuch|pokus|прогон|실행|次数");

/// Whether a column is called so.
fn names_repeats(name: &str) -> bool {
    let lower = name.to_lowercase();
    let mut words = lower.split(|c: char| !(c.is_alphanumeric() || c == '#'));
    words.any(|word| REPEATS.has(word))
}

/// The columns, from the second on, that the header names as repeats: `run 1`, `run 2`, …, or one
/// `tps` over several. Bare numbers may be of threads as well, unless there is a mean of them.
pub(super) fn named_repeats(header: &[String], roles: &[Role]) -> Option<Vec<usize>> {
    let is_bare = |name: &String| name.trim().bytes().all(|b| b.is_ascii_digit());
    let is_certain = header.first().is_some_and(|name| names_repeats(name))
        || roles.iter().any(|role| matches!(role, Role::Mean | Role::Spread));
    let bare = header.iter().skip(1).any(|name| !name.trim().is_empty() && is_bare(name));
    if bare && !is_certain {
        return None;
    }
    let roles = roles.get(1..)?;
    let numbered: Vec<(usize, u32)> = roles
        .iter()
        .enumerate()
        .filter_map(|(c, r)| if let Role::Repeat(n) = r { Some((c, *n)) } else { None })
        .collect();
    // The first may have been the warm-up.
    let from = if roles.contains(&Role::WarmUp) {
        numbered.first().map_or(1, |(_, n)| (*n).min(2))
    } else {
        1
    };
    if numbered.len() >= 2 && numbered.iter().zip(from..).all(|((_, n), expected)| *n == expected) {
        return Some(numbered.into_iter().map(|(c, _)| c).collect());
    }
    let first = roles.iter().position(|r| *r == Role::Tps)?;
    let spanned = roles[first + 1..].iter().take_while(|r| **r == Role::Spanned).count();
    (spanned > 0 && roles.iter().filter(|r| **r == Role::Tps).count() == 1)
        .then(|| (first..=first + spanned).collect())
}

/// The columns of tps as rows, where each row of the table is a repeat: `| run | tps |`,
/// `| 1 | … |`, `| 2 | … |`.
pub(super) fn repeats_below(raw: &[Raw], header: &[String], roles: &[Role]) -> Option<Vec<Row>> {
    let named = names_repeats(header.first()?);
    let warm = |raw: &&Raw| role(&raw.label) != Role::WarmUp;
    let raw: Vec<&Raw> = raw.iter().filter(warm).collect();
    if !(has_counted_labels(raw.iter().copied())
        || named && is_numbered(raw.iter().map(|r| r.label.as_str())))
    {
        return None;
    }
    let tps = roles.iter().enumerate().skip(1).filter(|(_, role)| **role == Role::Tps);
    let rows: Vec<Row> = tps
        .map(|(column, _)| Row {
            label: header[column].clone(),
            line: raw[0].line,
            repeats: raw
                .iter()
                .filter_map(|r| r.figures.get(column - 1).copied().flatten())
                .collect(),
            ..Row::default()
        })
        .filter(|row| row.repeats.len() == raw.len())
        .collect();
    (!rows.is_empty()).then_some(rows)
}

/// Whether the rows are called `run 1`, `run 2`, …
fn has_counted_labels<'a>(raw: impl ExactSizeIterator<Item = &'a Raw>) -> bool {
    raw.len() >= 2
        && raw.zip(1..).all(|(row, expected): (_, u32)| {
            let lower = row.label.to_lowercase();
            lower.split_once(' ').is_some_and(|(name, number)| {
                REPEATS.has(name) && number.trim_start_matches('#').trim() == expected.to_string()
            })
        })
}

/// Whether labels count: 1, 2, 3, …
pub(crate) fn is_numbered<'a>(labels: impl Iterator<Item = &'a str>) -> bool {
    let mut count = 0;
    for label in labels {
        count += 1;
        if label.trim_end_matches(['.', ')']).trim_start_matches('#') != count.to_string() {
            return false;
        }
    }
    count >= 2
}
