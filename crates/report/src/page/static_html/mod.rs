//! Answer and table as plain HTML: the first view of a page, and all of it without JavaScript.
//!
//! Card and table of treatments have the elements and classes of the front end's own. `first.css`
//! in `web/src` styles both, so that nothing moves when the front end takes their place. Other
//! tables have the class `rest`: they are seen where the front end does not run.

mod card;
mod treatments;

use pgdyno_text::printable::escape_text;
use serde::Serialize;
use serde_json::Value;

pub(super) use self::card::head;
pub(super) use self::treatments::treatments;
use crate::comparison;
use pgdyno_analysis::comparison::imported::SideBySideView;
use pgdyno_analysis::comparison::runs::CompareView;

/// Renders the table of a comparison's pairs.
pub(super) fn pairs(view: &CompareView) -> String {
    let header: Vec<String> =
        ["treatment".to_owned()].into_iter().chain(comparison::titles(view)).collect();
    let rows: Vec<Vec<String>> =
        view.pairs.iter().map(|pair| comparison::row(pair).into()).collect();
    table(&header, &rows, 1) + &paragraph(comparison::LEGEND)
}

/// Renders the tables of both sides.
pub(super) fn sides(view: &SideBySideView) -> String {
    let header = comparison::SIDES_HEADER.map(str::to_owned);
    let side = |title: String, rows: &[pgdyno_analysis::comparison::imported::SideBySideRow]| {
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| comparison::side_cells(row).into()).collect();
        format!("<h2 class=\"rest\">{}</h2>\n{}", escape(&title), table(&header, &rows, 1))
    };
    side(format!("A: {}, imported from {}", view.imported, view.source), &view.theirs)
        + &side(format!("B: {}, measured", view.run), &view.ours)
}

/// Renders a page of the terminal.
pub(super) fn preformatted(text: &str) -> String {
    format!("<pre class=\"rest\">{}</pre>\n", escape(text))
}

fn paragraph(text: &str) -> String {
    format!("<p class=\"rest\">{}</p>\n", prose(text))
}

/// Renders a verdict by sign, outline and word.
fn badge(verdict: &str) -> String {
    let (sign, weight) = match verdict {
        "answered" | "pass" => ("✓", "plain"),
        "unsafe" => ("✕", "heavy"),
        "recorded" => ("●", "quiet"),
        "bounded-loss" => ("≤", "plain"),
        _ if verdict.starts_with("FAIL") => ("✕", "heavy"),
        _ if verdict.starts_with("as planted") => ("●", "quiet"),
        _ => ("?", "open"),
    };
    let verdict = escape(verdict);
    format!(
        "<span class=\"badge {weight}\"><span aria-hidden=\"true\">{sign}</span> {verdict}</span>"
    )
}

/// Returns the text as which a value is serialized; empty if it is no text.
fn text_of(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        _ => String::new(),
    }
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
    format!(
        "<table class=\"rest\">\n<thead>\n{}</thead>\n<tbody>\n{rows}</tbody>\n</table>\n",
        row(header, "th")
    )
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
