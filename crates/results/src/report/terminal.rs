//! What a terminal shows at the end of a run.

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use crate::analysis::{Comparison, FsyncView, RatioView, RunView, TreatmentView};
use crate::number;

/// Lines only under the header: numbers are what is to be seen.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

const LEGEND: &str = "p50, p95, p99: latency in ms. ±: half of the 95% confidence interval over trials. \
                      ~: cannot be told apart from the best.";

/// Shown where there is nothing.
const NONE: &str = "–";

/// Sentences shown before the rest is left to the report.
const COMPARISONS: usize = 6;

/// The run's answer, table, ceiling, comparisons and notes, in at most `width` columns; plain text, a newline at the
/// end.
#[must_use]
pub fn terminal(view: &RunView, width: u16) -> String {
    let width = width.max(40);
    let mut lines: Vec<String> = Vec::new();
    let mut paragraph = |text: &str| lines.extend(wrap(text, usize::from(width), ""));
    let run = &view.run;
    let head = format!(
        "{}: {}, {} of {} trials",
        run.id,
        run.state.name(),
        run.trials_completed,
        run.trials_planned
    );
    paragraph(&head);
    if let Some(question) = &run.question {
        paragraph(question);
    }
    paragraph("");
    view.answer.iter().for_each(|sentence| paragraph(sentence));
    paragraph("");
    lines.extend(table(view, width).lines().map(|line| line.trim_end().to_owned()));
    lines.extend(wrap(LEGEND, usize::from(width), ""));
    let fsync: Vec<String> = newest(&view.fsync).into_iter().map(ceiling).collect();
    for (title, items) in
        [("Ceiling", fsync), ("Differences", comparisons(view)), ("Notes", view.notes.clone())]
    {
        if !items.is_empty() {
            lines.extend([String::new(), title.to_owned()]);
            lines.extend(items.iter().flat_map(|item| wrap(&format!("- {item}"), usize::from(width), "  ")));
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

fn table(view: &RunView, width: u16) -> String {
    let mut table = Table::new();
    table
        .force_no_tty()
        .load_style(STYLE)
        .set_width(width)
        .set_content_arrangement(ContentArrangement::Dynamic);
    let factors = &view.plan.factors;
    let mut header: Vec<Cell> = factors.iter().map(|factor| Cell::new(plain(factor))).collect();
    for title in ["trials", "tps", "± 95%", "ratio to best", "p50", "p95", "p99", "failed"] {
        header.push(Cell::new(title).set_alignment(CellAlignment::Right));
    }
    table.set_header(header);
    for t in &view.treatments {
        let mut row: Vec<Cell> = factors
            .iter()
            .map(|factor| {
                Cell::new(t.factors.get(factor).map(|level| plain(&level.to_string())).unwrap_or_default())
            })
            .collect();
        row.extend(numbers(t).into_iter().map(|text| Cell::new(text).set_alignment(CellAlignment::Right)));
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    table.to_string()
}

fn numbers(t: &TreatmentView) -> [String; 8] {
    let trials = if t.trials == t.trials_planned {
        t.trials.to_string()
    } else {
        format!("{}/{}", t.trials, t.trials_planned)
    };
    let tps = t.tps.as_ref().map_or(NONE.to_owned(), |tps| number::rate(tps.mean));
    let half = t.tps.as_ref().and_then(|tps| number::plus_minus(tps.mean, tps.ci95?));
    let latency = |of: fn(&crate::analysis::LatencyView) -> f64| {
        t.latency_us.as_ref().map_or(NONE.to_owned(), |l| number::milliseconds(of(l)))
    };
    [
        trials,
        tps,
        half.map_or(NONE.to_owned(), |half| format!("{half}%")),
        t.ratio_to_best.as_ref().map_or(NONE.to_owned(), ratio),
        latency(|l| l.p50),
        latency(|l| l.p95),
        latency(|l| l.p99),
        if t.trials == 0 { NONE.to_owned() } else { number::count(t.failed) },
    ]
}

fn ratio(ratio: &RatioView) -> String {
    let Some(value) = ratio.value else { return NONE.to_owned() };
    let mark = if ratio.told_apart == Some(false) { "~ " } else { "" };
    // Half of an interval of logarithms, as a share: the same up and down but for its sign.
    let half = ratio
        .ci95
        .map_or_else(String::new, |[lo, hi]| format!(" ±{}%", number::percent((hi / lo).sqrt() - 1.0)));
    format!("{mark}{}{half}", number::times(value))
}

/// The newest probe of each storage and method.
fn newest(all: &[FsyncView]) -> Vec<&FsyncView> {
    let later = |i: usize, f: &FsyncView| {
        all[i + 1..].iter().any(|o| (&o.storage, &o.method) == (&f.storage, &f.method))
    };
    all.iter().enumerate().filter(|(i, f)| !later(*i, f)).map(|(_, f)| f).collect()
}

fn ceiling(f: &FsyncView) -> String {
    let Some(rate) = f.per_second else {
        return format!("storage `{}`: no flush was measured", f.storage);
    };
    let latency = f.latency_us.as_ref().map_or_else(String::new, |l| {
        format!("; p50 {} ms, p99 {} ms", number::milliseconds(l.p50), number::milliseconds(l.p99))
    });
    format!(
        "storage `{}`: {} flushes/s of one writer ({}, {} bytes each{latency}). Commits of several clients can share a flush.",
        f.storage,
        number::rate(rate),
        f.method,
        f.block_bytes
    )
}

/// The largest differences first, then what cannot be told apart.
fn comparisons(view: &RunView) -> Vec<String> {
    let size = |c: &&Comparison| match (c.ratio.value, c.ratio.told_apart) {
        (Some(value), Some(true)) if value > 0.0 => 1.0 + value.ln().abs(),
        (_, Some(_)) => 0.5,
        _ => 0.0,
    };
    let mut sorted: Vec<&Comparison> = view.comparisons.iter().collect();
    sorted.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let mut out: Vec<String> = sorted.iter().take(COMPARISONS).map(|c| c.words.clone()).collect();
    if sorted.len() > COMPARISONS {
        out.push(format!("{} more in the report.", sorted.len() - COMPARISONS));
    }
    out
}

/// `text` without what a terminal would obey: servers and files word much of a report.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && !c.is_whitespace() { '\u{fffd}' } else { c }).collect()
}

/// `text` in lines of at most `width` characters where words allow it; lines after the first begin with `indent`.
fn wrap(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in plain(text).split_whitespace() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        let used = line.chars().count();
        if line.trim().is_empty() {
            line.push_str(word);
        } else if used + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("{indent}{word}"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_whole_and_lines_short() {
        assert_eq!(wrap("- one two three", 9, "  "), ["- one two", "  three"]);
        assert_eq!(wrap("averyveryverylongword b", 5, ""), ["averyveryverylongword", "b"]);
        assert_eq!(wrap("", 5, ""), [""]);
        assert_eq!(wrap("a\u{1b}[31m red", 80, ""), ["a\u{fffd}[31m red"]);
    }
}
