//! Answer and table as plain HTML, for readers without JavaScript.

use pgdyno_model::printable::escape_text;

use super::super::{compare, side_by_side, terminal};
use crate::analysis::compare_runs::CompareView;
use crate::analysis::side_by_side::SideBySideView;
use crate::analysis::{Caution, Headline, RunView, Tier};

/// Renders the card and the cautions that may change the conclusion.
pub(super) fn head(title: &str, headline: &Headline, cautions: &[Caution]) -> String {
    let mut out = format!("<h1>{}</h1>\n", escape(title));
    if let Some(question) = &headline.question {
        out.push_str(&format!("<p>{}</p>\n", prose(question)));
    }
    let badge = match serde_json::to_value(headline.badge) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    };
    out.push_str(&format!("<p class=\"badge\">{}</p>\n", escape(&badge)));
    out.push_str(&format!("<p class=\"answer\">{}</p>\n", prose(&headline.answer)));
    let figure = |f: &crate::analysis::KeyFigure| {
        let detail = f.detail.as_ref().map_or_else(String::new, |detail| format!(" ({detail})"));
        format!("{}: {}{detail}", f.name, f.value)
    };
    out.push_str(&list(headline.figures.iter().map(figure)));
    if let Some(command) = &headline.command {
        out.push_str(&format!("<p class=\"command\"><code>{}</code></p>\n", escape(command)));
    }
    let grave = cautions.iter().filter(|caution| caution.tier == Tier::Conclusion);
    out.push_str(&list(grave.map(|caution| caution.text.clone())));
    out
}

/// Renders the table of a run's treatments.
pub(super) fn treatments(view: &RunView) -> String {
    let table = terminal::treatment_table(view);
    self::table(&table.header, &table.rows, table.names) + &paragraph(terminal::LEGEND)
}

/// Renders the table of a comparison's pairs.
pub(super) fn pairs(view: &CompareView) -> String {
    let header: Vec<String> =
        ["treatment".to_owned()].into_iter().chain(compare::titles(view)).collect();
    let rows: Vec<Vec<String>> = view.pairs.iter().map(|pair| compare::row(pair).into()).collect();
    table(&header, &rows, 1) + &paragraph(compare::LEGEND)
}

/// Renders the tables of both sides.
pub(super) fn sides(view: &SideBySideView) -> String {
    let header = side_by_side::HEADER.map(str::to_owned);
    let side = |title: String, rows: &[crate::analysis::side_by_side::SideBySideRow]| {
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| side_by_side::cells(row).into()).collect();
        format!("<h2>{}</h2>\n{}", escape(&title), table(&header, &rows, 1))
    };
    side(format!("A: {}, imported from {}", view.imported, view.source), &view.theirs)
        + &side(format!("B: {}, measured", view.run), &view.ours)
}

/// Renders a page of the terminal.
pub(super) fn preformatted(text: &str) -> String {
    format!("<pre>{}</pre>\n", escape(text))
}

fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", prose(text))
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|item| format!("<li>{}</li>\n", prose(&item))).collect();
    if items.is_empty() { items } else { format!("<ul>\n{items}</ul>\n") }
}

/// Renders a table whose first `names` columns hold names, and the others numbers.
fn table(header: &[String], rows: &[Vec<String>], names: usize) -> String {
    let row = |cells: &[String], tag: &str| -> String {
        let cell = |(i, text): (usize, &String)| {
            let class = if i < names { "" } else { " class=\"n\"" };
            format!("<{tag}{class}>{}</{tag}>", escape(text))
        };
        format!("<tr>{}</tr>\n", cells.iter().enumerate().map(cell).collect::<String>())
    };
    let rows: String = rows.iter().map(|cells| row(cells, "td")).collect();
    format!("<table>\n<thead>\n{}</thead>\n<tbody>\n{rows}</tbody>\n</table>\n", row(header, "th"))
}

/// Renders a sentence as HTML; text between backticks becomes code.
fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(i, part)| match i % 2 {
        1 => format!("<code>{}</code>", escape(part)),
        _ => escape(part),
    });
    parts.collect()
}

/// Escapes markup and control characters.
pub(super) fn escape(text: &str) -> String {
    let text = escape_text(text);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
