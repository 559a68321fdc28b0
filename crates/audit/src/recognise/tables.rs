//! Tables that people wrote: HTML, Markdown, psql's, or columns of blanks.

use super::columns::{Role, names_time, names_tps, role};
use super::repeats::{Raw, SPECIAL, column, named_by_conditions, named_repeats, repeats_below};
use super::scan::Scan;
use super::table::{Meaning, Row, Table, mean_holds};
use crate::document::{Cell, Line};
use crate::figure::{Decimals, Figure, Reading, proof, read_number};
use crate::finding::WhyNot;
use crate::words::Words;

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

/// The cells of a row: a label and figures; none of another line.
fn cells(line: &Line) -> Option<Vec<Cell>> {
    if line.cells.is_empty() { columns(line) } else { Some(line.cells.clone()) }
}

/// A label and the figures behind it, to the end of a line without cells.
fn columns(line: &Line) -> Option<Vec<Cell>> {
    let words: Vec<&str> = line.text.split_whitespace().collect();
    let is_number = |word: &&str| {
        matches!(*word, "-" | "–" | "n/a") || !matches!(read_number(word, None, 1), Reading::No)
    };
    let first = words.iter().rposition(|word| !is_number(word))? + 1;
    let numbers = &words[first..];
    if numbers.is_empty()
        || first > 4
        || words[..first].iter().any(|w| w.ends_with([':', '.', ',', '=', '#']))
    {
        return None;
    }
    let texts = std::iter::once(words[..first].join(" "));
    let texts = texts.chain(numbers.iter().map(|&word| word.to_owned()));
    Some(texts.map(|text| Cell { text, line: line.number }).collect())
}

/// A line that only parts others.
fn is_rule(line: &Line) -> bool {
    let text = line.text.trim();
    !text.is_empty() && text.chars().all(|c| "+-=|:─━┼┿├┤═ \t".contains(c))
}

/// Returns the decimal sign that the table's numbers prove, else `elsewhere`; none where they
/// disagree.
fn decimals(lines: &[&Line], elsewhere: Option<Decimals>) -> Option<Decimals> {
    let cells = lines.iter().filter_map(|line| cells(line)).flatten();
    let mut proofs = cells.filter_map(|cell| proof(&cell.text));
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
            Err(number) => ambiguous.push((line.number, number)),
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
    // Prose above may speak of anything.
    let inside = lines.iter().map(|l| l.text.as_str()).chain(header.iter().map(String::as_str));
    let summarised = inside.into_iter().any(summarises);
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
        scan.not_understood(line, WhyNot::AmbiguousNumber(number));
    }
    scan.read[from..end].fill(true);
    let line = rows.first().map(|row| row.line)?;
    let aligned = with_cells || rows.iter().all(|row| row.figures.len() + 1 == header.len());
    let (meaning, rows) = assign_columns(rows, &header, &roles, aligned);
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

/// Reads a row; none of a line without figures.
///
/// # Errors
/// The text of a number of the line that may be one of two.
fn raw(line: &Line, known: Option<Decimals>) -> Result<Option<Raw>, String> {
    let cells = cells(line).unwrap_or_default();
    let Some((label, rest)) = cells.split_first() else { return Ok(None) };
    let mut figures = Vec::new();
    for cell in rest {
        match read_number(&cell.text, known, cell.line) {
            Reading::Number(figure) => figures.push(Some(figure)),
            Reading::No => figures.push(None),
            Reading::Ambiguous => return Err(cell.text.clone()),
        }
    }
    let has_any = figures.iter().any(Option::is_some);
    let texts = rest.iter().filter(|_| !line.cells.is_empty()).map(|cell| cell.text.clone());
    let (label, line, cells) = (label.text.clone(), line.number, texts.collect());
    Ok(has_any.then_some(Raw { label, line, figures, cells }))
}

/// The rows with what their columns mean, by the header or by the figures.
fn assign_columns(
    raw: Vec<Raw>,
    header: &[String],
    roles: &[Role],
    aligned: bool,
) -> (Meaning, Vec<Row>) {
    let raw = named_by_conditions(raw, header);
    if aligned && let Some(repeats) = named_repeats(header, roles) {
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
