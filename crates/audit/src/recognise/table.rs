//! Tables that people wrote: HTML, Markdown, psql's, or columns of blanks.

use serde::{Deserialize, Serialize};

use super::columns::{Role, names_time, names_tps, role};
use super::scan::Scan;
use crate::document::Line;
use crate::figure::{Decimals, Figure, Written, proof, written};
use crate::words::Words;

/// Table with at least one understood column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ReportTable"))]
pub struct Table {
    /// Line of its first row in the file, from 1.
    pub line: usize,
    /// Names of the columns; empty if unknown.
    pub header: Vec<String>,
    /// Whether its figures are tps.
    pub tps: bool,
    /// Whether the table or its caption mentions medians, intervals or numbers of repeats.
    pub summarised: bool,
    /// Origin of what is known of the columns.
    pub meaning: Meaning,
    /// Rows.
    pub rows: Vec<Row>,
}

/// What is known of a table's columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Meaning {
    /// Its header says it.
    Named,
    /// The figures show it: most rows' means are their repeats'.
    Computed,
    /// One figure or several, of which nobody says that they are repeats.
    #[default]
    Unknown,
}

/// Row of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ReportRow"))]
pub struct Row {
    /// Text of the first column.
    pub label: String,
    /// Line in the file, from 1.
    pub line: usize,
    /// Figure of each repeat.
    pub repeats: Vec<Figure>,
    /// Mean, as printed.
    pub mean: Option<Figure>,
    /// Ratio to another row, as printed.
    pub ratio: Option<Figure>,
    /// Share of the whole, as printed (percent).
    pub share: Option<Figure>,
    /// Whether a spread is printed.
    pub has_spread: bool,
    /// Figures of unknown meaning, as (column, figure).
    pub others: Vec<(usize, Figure)>,
}

impl Table {
    /// Whether a column is called a time that something took.
    pub(crate) fn has_time_column(&self) -> bool {
        self.header.iter().skip(1).any(|name| names_time(name))
    }

    /// Whether a column is called tps and nothing more.
    pub(crate) fn has_tps_column(&self) -> bool {
        self.header.iter().any(|name| role(name) == Role::Tps)
    }
}

impl Row {
    /// The repeats without their lines.
    pub(crate) fn values(&self) -> Vec<f64> {
        self.repeats.iter().map(|f| f.value).collect()
    }

    /// What stands for the row: its mean, or the only figure of it.
    pub(crate) fn value(&self) -> Option<Figure> {
        self.mean.or(match (self.repeats.as_slice(), self.others.as_slice()) {
            ([only], []) => Some(*only),
            ([], [(_, only)]) => Some(*only),
            _ => None,
        })
    }
}

/// A row as it is written.
struct Raw {
    label: String,
    line: usize,
    /// By column, from the second on; of a table without cells, those that there are.
    figures: Vec<Option<Figure>>,
}

/// A number that may be one of two, as it is written.
struct Ambiguous(String);

/// Finds all. Lines that a table's meaning is not clear of are told.
pub(super) fn find(scan: &mut Scan<'_>) -> Vec<Table> {
    let mut tables = Vec::new();
    let mut at = 0;
    while at < scan.lines.len() {
        let end = if scan.lines[at].cells.is_empty() {
            columns_end(scan, at)
        } else {
            (at..scan.lines.len())
                .find(|i| scan.lines[*i].cells.is_empty() && !is_rule(&scan.lines[*i]))
                .unwrap_or(scan.lines.len())
        };
        if end > at {
            if !scan.read[at..end].contains(&true) {
                tables.extend(table(scan, at, end));
            }
            at = end;
        } else {
            at += 1;
        }
    }
    tables
}

/// Where the lines from `at` on, which have no cells, stop to be rows; `at` where they are none.
fn columns_end(scan: &Scan<'_>, at: usize) -> usize {
    let rows = scan.lines[at..]
        .iter()
        .zip(&scan.read[at..])
        .take_while(|(line, read)| !**read && line.cells.is_empty() && columns(line).is_some());
    match rows.count() {
        0 | 1 => at,
        rows => at + rows,
    }
}

/// A label and the figures behind it, to the line's end; none of another line.
fn columns(line: &Line) -> Option<(String, Vec<String>)> {
    let words: Vec<&str> = line.text.split_whitespace().collect();
    let is_number = |word: &&str| {
        matches!(*word, "-" | "–" | "n/a") || !matches!(written(word, None, 1), Written::No)
    };
    let first = words.iter().rposition(|word| !is_number(word))? + 1;
    let numbers = &words[first..];
    if numbers.is_empty()
        || first > 4
        || words[..first].iter().any(|w| w.ends_with([':', '.', ',', '=', '#']))
    {
        return None;
    }
    Some((words[..first].join(" "), numbers.iter().map(|&w| w.to_owned()).collect()))
}

/// A line that only parts others.
fn is_rule(line: &Line) -> bool {
    let text = line.text.trim();
    !text.is_empty() && text.chars().all(|c| "+-=|:─━┼┿├┤═ \t".contains(c))
}

/// What the table's numbers prove of their decimals, else `elsewhere`; none where they disagree.
fn decimals(lines: &[&Line], elsewhere: Option<Decimals>) -> Option<Decimals> {
    let mut proofs = lines.iter().flat_map(|l| numbers(l)).filter_map(|text| proof(&text));
    let first = proofs.next();
    if proofs.all(|other| Some(other) == first) { first.or(elsewhere) } else { None }
}

fn table(scan: &mut Scan<'_>, at: usize, end: usize) -> Option<Table> {
    let with_cells = !scan.lines[at].cells.is_empty();
    let lines: Vec<&Line> = scan.lines[at..end].iter().filter(|line| !is_rule(line)).collect();
    let known = decimals(&lines, scan.decimals);
    let rule =
        scan.lines[at..end].iter().skip(1).find(|line| is_rule(line)).map(|line| line.number);
    let mut header = Vec::new();
    let mut rows = Vec::new();
    let mut ambiguous = Vec::new();
    for line in &lines {
        match raw(line, known) {
            Ok(Some(row)) => rows.push(row),
            // Markdown's head ends where its rule is: rows without figures may follow.
            Ok(None)
                if rows.is_empty()
                    && (header.is_empty() || rule.is_none_or(|rule| line.number < rule)) =>
            {
                header = line.cells.iter().map(|cell| cell.text.clone()).collect();
            }
            // A line without figures below others: a note, or a second head.
            Ok(None) => {}
            Err(Ambiguous(number)) => ambiguous.push((line.number, number)),
        }
    }
    let above: Vec<&Line> =
        scan.lines[..at].iter().rev().filter(|l| !l.text.trim().is_empty()).take(2).collect();
    // A table of blanks is headed by the line right above it.
    let near = above.first().filter(|line| {
        at > 0 && !scan.lines[at - 1].text.trim().is_empty() && line.text.len() < 200
    });
    let from = if near.is_some() && !with_cells { at - 1 } else { at };
    if !with_cells {
        header =
            near.map_or("", |l| l.text.as_str()).split_whitespace().map(str::to_owned).collect();
    }
    let roles: Vec<Role> = header.iter().map(|name| role(name)).collect();
    // A sentence may speak of tps and of a table of something else.
    let caption = above.first().filter(|l| with_cells && l.text.chars().count() <= CAPTION);
    let caption = caption.map_or("", |l| l.text.as_str());
    let around = above.iter().map(|l| l.text.as_str()).chain(lines.iter().map(|l| l.text.as_str()));
    let summarised = around.chain(header.iter().map(String::as_str)).any(summarises);
    let says_tps = header.iter().any(|name| names_tps(name))
        || names_tps(&header.join(" "))
        || names_tps(caption);
    // Cells alone say which figures are of which column.
    let says_time = with_cells && header.iter().skip(1).any(|name| names_time(name));
    let understood = says_tps
        || says_time
        || roles.iter().any(|r| matches!(r, Role::Mean | Role::Ratio | Role::Share));
    if !understood || (rows.is_empty() && ambiguous.is_empty()) || (lines.len() < 2 && !with_cells)
    {
        return None;
    }
    for (line, number) in ambiguous {
        scan.not_understood(
            line,
            format!(
                "`{number}` is one number in English and another in German: nothing in its table tells which"
            ),
        );
    }
    scan.read[from..end].fill(true);
    let line = rows.first().map(|row| row.line)?;
    let aligned = with_cells || rows.iter().all(|row| row.figures.len() + 1 == header.len());
    let (meaning, rows) = meant(rows, &header, &roles, aligned);
    Some(Table { line, header, tps: says_tps, summarised, meaning, rows })
}

/// More characters than these are no caption.
const CAPTION: usize = 80;

/// Whether the words speak of something that several measurements were made into.
fn summarises(text: &str) -> bool {
    const WORDS: Words = Words(
        "median|mean|average|avg|interval|ci|repeats|runs|stddev|best|mittel|prumer|průměr|\
         средн|平均",
    );
    let lower = text.to_lowercase();
    let words = || lower.split(|c: char| !c.is_alphanumeric());
    words().any(|word| WORDS.has(word))
        || ["±", "+-", "+/-", "平均", "–"].iter().any(|sign| lower.contains(sign))
}

/// What may be numbers in a line.
fn numbers(line: &Line) -> Vec<String> {
    if line.cells.is_empty() {
        columns(line).map(|(_, numbers)| numbers).unwrap_or_default()
    } else {
        line.cells.iter().map(|cell| cell.text.clone()).collect()
    }
}

/// Reads a row; none of a line without figures.
///
/// # Errors
/// A number of the line may be one of two.
fn raw(line: &Line, known: Option<Decimals>) -> Result<Option<Raw>, Ambiguous> {
    let (label, cells) = if line.cells.is_empty() {
        let Some((label, numbers)) = columns(line) else { return Ok(None) };
        (label, numbers.into_iter().map(|n| (n, line.number)).collect::<Vec<_>>())
    } else {
        let label = line.cells[0].text.clone();
        (label, line.cells[1..].iter().map(|cell| (cell.text.clone(), cell.line)).collect())
    };
    let mut figures = Vec::new();
    for (text, at) in cells {
        match written(&text, known, at) {
            Written::Number(figure) => figures.push(Some(figure)),
            Written::No => figures.push(None),
            Written::Ambiguous => return Err(Ambiguous(text)),
        }
    }
    let any = figures.iter().any(Option::is_some);
    Ok(any.then_some(Raw { label, line: line.number, figures }))
}

/// The rows with what their columns mean, by the header or by the figures.
fn meant(raw: Vec<Raw>, header: &[String], roles: &[Role], aligned: bool) -> (Meaning, Vec<Row>) {
    if aligned && let Some(repeats) = named_repeats(roles) {
        let rows = raw.into_iter().map(|raw| Row {
            repeats: repeats.iter().filter_map(|c| raw.at(Some(*c))).collect(),
            ..raw.row(roles)
        });
        return (Meaning::Named, rows.collect());
    }
    if aligned && let Some(rows) = repeats_below(&raw, header, roles) {
        return (Meaning::Named, rows);
    }
    if let Some(rows) = computed_means(&raw, roles, aligned) {
        return (Meaning::Computed, rows);
    }
    // Without columns nothing is known but that there are figures.
    let known = if aligned { roles } else { &[] };
    let special = SPECIAL.map(|role| column(known, role));
    // With one column of tps the others are other things.
    let tps: Vec<usize> =
        (0..known.len().saturating_sub(1)).filter(|c| known[c + 1] == Role::Tps).collect();
    let counts = |c: usize| matches!(tps.as_slice(), [only] if *only != c);
    let rows = raw.into_iter().map(|raw| {
        let figures = raw.figures.iter().enumerate();
        let others = figures.filter(|(c, _)| !special.contains(&Some(*c)) && !counts(*c));
        Row { others: others.filter_map(|(c, f)| Some((c + 1, (*f)?))).collect(), ..raw.row(known) }
    });
    (Meaning::Unknown, rows.collect())
}

/// Roles of columns that hold no repeat.
const SPECIAL: [Role; 4] = [Role::Mean, Role::Ratio, Role::Share, Role::Spread];

/// The first column with this role, from the second on.
fn column(roles: &[Role], role: Role) -> Option<usize> {
    roles.iter().skip(1).position(|r| *r == role)
}

impl Raw {
    /// The figure of a column, from the second on.
    fn at(&self, column: Option<usize>) -> Option<Figure> {
        self.figures.get(column?).copied().flatten()
    }

    /// The row with what its header names beside repeats.
    fn row(&self, roles: &[Role]) -> Row {
        let [mean, ratio, share, spread] = SPECIAL.map(|role| self.at(column(roles, role)));
        let (label, line) = (self.label.clone(), self.line);
        Row { label, line, mean, ratio, share, has_spread: spread.is_some(), ..Row::default() }
    }
}

/// The rows, where figures show that the last but a ratio are means. They are told from the right:
/// rows may have fewer repeats than others.
fn computed_means(raw: &[Raw], roles: &[Role], aligned: bool) -> Option<Vec<Row>> {
    if aligned && column(roles, Role::Spread).is_some() {
        return None;
    }
    let dense: Vec<Vec<Figure>> =
        raw.iter().map(|r| r.figures.iter().flatten().copied().collect()).collect();
    let with_ratio = [true, false].into_iter().find(|with_ratio| {
        (!with_ratio || roles.contains(&Role::Ratio))
            && means_hold(&dense, usize::from(*with_ratio))
    })?;
    let rows = raw.iter().zip(dense).map(|(raw, mut figures)| {
        let ratio = if with_ratio && figures.len() >= 3 { figures.pop() } else { None };
        let mean = if figures.len() >= 2 { figures.pop() } else { None };
        let (label, line) = (raw.label.clone(), raw.line);
        Row { label, line, repeats: figures, mean, ratio, ..Row::default() }
    });
    Some(rows.collect())
}

/// The columns, from the second on, that the header names as repeats: `run 1`, `run 2`, …, or one
/// `tps` over several.
fn named_repeats(roles: &[Role]) -> Option<Vec<usize>> {
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
fn repeats_below(raw: &[Raw], header: &[String], roles: &[Role]) -> Option<Vec<Row>> {
    const NAMES: Words =
        Words("run|test|trial|repeat|iteration|#|no|lauf|versuch|pokus|прогон|실행|次数");
    let named = header.first()?.to_lowercase();
    let named =
        named.split(|c: char| !(c.is_alphanumeric() || c == '#')).any(|word| NAMES.has(word));
    let warm = |raw: &&Raw| role(&raw.label) != Role::WarmUp;
    let raw: Vec<&Raw> = raw.iter().filter(warm).collect();
    let mut labels = raw.iter().map(|r| r.label.to_lowercase()).enumerate();
    let counted = raw.len() >= 2
        && labels.all(|(at, label)| {
            label.split_once(' ').is_some_and(|(name, number)| {
                NAMES.has(name) && number.trim_start_matches('#').trim() == (at + 1).to_string()
            })
        });
    if !(counted || named && numbered(raw.iter().map(|r| r.label.as_str()))) {
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

/// Whether labels count: 1, 2, 3, …
pub(crate) fn numbered<'a>(labels: impl Iterator<Item = &'a str>) -> bool {
    let mut count = 0;
    for label in labels {
        count += 1;
        if label.trim_end_matches(['.', ')']).trim_start_matches('#') != count.to_string() {
            return false;
        }
    }
    count >= 2
}

/// Whether in most rows the figure before the last `behind` is the mean of those before it.
fn means_hold(rows: &[Vec<Figure>], behind: usize) -> bool {
    let (mut right, mut wrong) = (0, 0);
    for row in rows {
        let Some(mean_at) = row.len().checked_sub(behind + 1).filter(|at| *at >= 1) else {
            wrong += 1;
            continue;
        };
        // A mean of one proves nothing, nor does one of equal figures.
        if mean_at >= 2 && row[1..mean_at].iter().any(|f| f.value != row[0].value) {
            if mean_holds(&row[..mean_at], row[mean_at]) { right += 1 } else { wrong += 1 }
        }
    }
    right >= 2 && right > wrong
}

/// Whether `mean` may be what is printed of the mean of `repeats`.
pub(crate) fn mean_holds(repeats: &[Figure], mean: Figure) -> bool {
    let n = repeats.len().max(1) as f64;
    let sum = |end: fn(Figure) -> f64| repeats.iter().map(|f| end(*f)).sum::<f64>() / n;
    mean.may_print(sum(Figure::low), sum(Figure::high))
}
