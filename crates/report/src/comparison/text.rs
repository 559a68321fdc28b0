//! Renders the comparison of two sides for a terminal, and as Markdown for a pull request.

use comfy_table::Cell;
use pgdyno_text::format;
use pgdyno_text::printable::escape_text;

use crate::table::{NONE, right, table_lines};
use crate::terminal::{half_width, ratio, section};
use crate::text::{Detail, plain, wrap};
use crate::{CompareReport, prose};
use pgdyno_analysis::comparison::runs::{
    CompareView, MemberView, Outcome, PairView, SideView, Unequal,
};

pub(crate) const LEGEND: &str = "A and B: means over trials. Ratios are B ÷ A; ±: half of the 95% \
                                 confidence interval. ~: no significant difference. x→y: A's level \
                                 and B's.";

/// Titles of the table's columns after the treatment.
pub(crate) fn titles(view: &CompareView) -> [String; 7] {
    let m = view.measure;
    [
        "trials".into(),
        format!("{m} A"),
        format!("{m} B"),
        m.into(),
        "p50".into(),
        "p95".into(),
        "p99".into(),
    ]
}

/// Renders the comparison as plain text in at most `width` columns, with a newline at the end.
///
/// `detail` says how many notes are printed.
pub fn compare(report: &CompareReport, width: u16, detail: Detail) -> String {
    let CompareReport { view, answer, .. } = report;
    let width = width.max(40);
    let mut lines: Vec<String> = Vec::new();
    let mut paragraph = |text: &str| lines.extend(wrap(text, usize::from(width), "   "));
    for (name, of) in [("A", &view.a), ("B", &view.b)] {
        paragraph(&side(name, of, view.a.hosts != view.b.hosts));
    }
    if !view.by.is_empty() {
        paragraph(&format!("Compared: {}", view.by.join(", ")));
    }
    lines.push(String::new());
    answer.iter().for_each(|sentence| lines.extend(wrap(sentence, usize::from(width), "")));
    lines.push(String::new());
    let header = [Cell::new("treatment")].into_iter().chain(titles(view).map(right)).collect();
    let cells = |pair: &PairView| {
        let [label, figures @ ..] = row(pair);
        [Cell::new(plain(&label))].into_iter().chain(figures.map(right)).collect()
    };
    lines.extend(table_lines(header, view.pairs.iter().map(cells).collect(), width));
    lines.extend(wrap(LEGEND, usize::from(width), ""));
    for (title, items) in sections(report, detail, width) {
        lines.extend(section(title, &items, width));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Renders the comparison as Markdown (GitHub's).
pub fn compare_markdown(report: &CompareReport) -> String {
    let CompareReport { view, answer, .. } = report;
    let mut out = String::new();
    let verdict = match view.outcome {
        None => "",
        Some(Outcome::Exceeded) => " – a gate is exceeded",
        Some(Outcome::Undecided) => " – undecided",
        Some(Outcome::Passed) => " – all gates passed",
    };
    out.push_str(&format!("### pgdyno: B against A{verdict}\n\n"));
    for (name, of) in [("A", &view.a), ("B", &view.b)] {
        let heading = side(name, of, view.a.hosts != view.b.hosts);
        out.push_str(&format!("- {}\n", escaped(&heading)));
    }
    if !view.by.is_empty() {
        out.push_str(&format!("- Compared: {}\n", escaped(&view.by.join(", "))));
    }
    out.push('\n');
    for sentence in answer {
        out.push_str(&format!("**{}**\n\n", escaped(sentence)));
    }
    out.push_str(&format!(
        "| treatment | {} |\n|---|{}\n",
        titles(view).join(" | "),
        "---:|".repeat(titles(view).len())
    ));
    for pair in &view.pairs {
        out.push_str(&format!("| {} |\n", row(pair).map(|cell| escaped(&cell)).join(" | ")));
    }
    out.push_str(&format!("\n<sub>{}</sub>\n", escaped(LEGEND)));
    // Its notes are folded, and nobody can ask a page for more.
    for (title, items) in sections(report, Detail::Full, u16::MAX) {
        if items.is_empty() {
            continue;
        }
        // What asks for a decision is open to the eye; the rest is for those who want it.
        let open = matches!(title, "Gates" | "Not equal" | "Why");
        let (begin, end) = if open {
            (format!("\n#### {title}\n\n"), "")
        } else {
            (format!("\n<details><summary>{title}</summary>\n\n"), "\n</details>\n")
        };
        out.push_str(&begin);
        for item in items {
            out.push_str(&format!("- {}\n", escaped(&item)));
        }
        out.push_str(end);
    }
    out
}

/// Escapes Markdown and HTML in `text`, and puts it on one line. Text between backticks stays code.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in escape_text(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '|' | '*' | '_' | '[' | ']' | '~' => out.extend(['\\', c]),
            '\n' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Describes a side. The machines are named where those of the other side are others.
fn side(name: &str, side: &SideView, with_hosts: bool) -> String {
    let on = match with_hosts && !side.hosts.is_empty() {
        true => format!(" on {}", side.hosts.join(" and ")),
        false => String::new(),
    };
    format!("{name}: {}{on}, {}, begun {}", side.run, side.state.name(), side.started_at)
}

/// Returns the cells of a pair: its label, then figures.
pub(crate) fn row(pair: &PairView) -> [String; 8] {
    let tps = |m: &MemberView| m.tps.as_ref().map_or(NONE.to_owned(), |tps| format::rate(tps.mean));
    let latency = |name: &str| {
        let found = pair.latency.iter().find(|l| l.percentile == name);
        found.map_or(NONE.to_owned(), |l| match l.ci95 {
            Some([lo, hi]) => {
                format!("{}{}", format::times(l.value), half_width((hi / lo).sqrt() - 1.0))
            }
            None => format::times(l.value),
        })
    };
    let label =
        if pair.label.is_empty() { "the only treatment".to_owned() } else { pair.label.clone() };
    [
        label,
        format!("{} / {}", pair.a.trials, pair.b.trials),
        tps(&pair.a),
        tps(&pair.b),
        ratio(&pair.ratio),
        latency("p50"),
        latency("p95"),
        latency("p99"),
    ]
}

/// Sections below the table: title and items.
fn sections(
    report: &CompareReport,
    detail: Detail,
    width: u16,
) -> Vec<(&'static str, Vec<String>)> {
    let view = &report.view;
    let unmatched = |name: &str, side: &SideView| {
        (!side.unmatched.is_empty()).then(|| {
            format!(
                "Only {name} has, and nothing was compared with it: {}.",
                side.unmatched.join("; ")
            )
        })
    };
    let mut notes: Vec<String> =
        [unmatched("A", &view.a), unmatched("B", &view.b)].into_iter().flatten().collect();
    notes.extend(report.notes.iter().cloned());
    let differences = if view.pairs.len() > 1 {
        view.pairs.iter().map(prose::pair).collect()
    } else {
        // The only one is the answer.
        Vec::new()
    };
    let (on_purpose, not_equal): (Vec<&Unequal>, Vec<&Unequal>) =
        view.unequal.iter().partition(|u| u.on_purpose);
    let shown = |u: &&Unequal| format!("{}: A: {}; B: {}", u.what, u.a, u.b);
    vec![
        ("Gates", report.gates.clone()),
        ("Not equal", forced(&not_equal.iter().map(shown).collect::<Vec<_>>())),
        ("Differences", differences),
        ("Why", view.pairs.iter().flat_map(why).collect()),
        ("Differs on purpose", on_purpose.iter().map(shown).collect()),
        ("Notes", detail.notes(notes, width)),
    ]
}

/// Returns sentences on the largest parts of a pair's difference.
fn why(pair: &PairView) -> Vec<String> {
    let label = if pair.label.is_empty() { String::new() } else { format!("{}: ", pair.label) };
    let words = pair.why.iter().flat_map(|why| prose::why(why, "A", "B"));
    words.map(|words| format!("{label}{words}.")).collect()
}

/// Lists what differs although it must not, and what that means for the verdicts.
fn forced(items: &[String]) -> Vec<String> {
    if items.is_empty() {
        return Vec::new();
    }
    let warning = "What must be equal is not, and `--force` was given: a difference of the results \
                   may come from any of this.";
    [warning.to_owned()].into_iter().chain(items.iter().cloned()).collect()
}
