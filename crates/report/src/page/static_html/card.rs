//! The head of a page: title, verdict card, cautions.

use super::{badge, escape, prose, text_of};
use crate::headline::{Caution, Headline, Tier};

/// Cautions that stand open (count). The front end folds the others too.
const OPEN: usize = 5;

/// Characters from which an answer is set smaller (count).
const LONG_ANSWER: usize = 240;

/// Characters from which a caution is folded, and those that stay in view (count).
const LONG_CAUTION: (usize, usize) = (360, 220);

/// Renders title, card and cautions; the body's `main` stays open.
pub(in super::super) fn head(title: &str, headline: &Headline, cautions: &[Caution]) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut out = format!(
        "<header class=\"top\">\n<p class=\"kind\">pgdyno {version}</p>\n<h1>{}</h1>\n</header>\n\
         <div class=\"nav-room\"></div>\n<main>\n",
        escape(title)
    );
    out.push_str(&card(headline));
    out.push_str(&aside(cautions));
    out
}

fn card(headline: &Headline) -> String {
    let name = text_of(&headline.badge);
    let mut out = format!("<article class=\"card\">\n<p class=\"badges\">{}", badge(&name));
    for proof in &headline.proofs {
        out.push_str(&format!(" <span class=\"proof\">{}</span>", escape(&proof.text)));
    }
    out.push_str("</p>\n");
    if let Some(question) = &headline.question {
        out.push_str(&format!("<p class=\"question\">{}</p>\n", prose(question)));
    }
    let long = if headline.answer.chars().count() > LONG_ANSWER { " long" } else { "" };
    out.push_str(&format!("<p class=\"answer{long}\">{}</p>\n", prose(&headline.answer)));
    let figures = headline.figures.iter().map(|figure| {
        let detail = figure.detail.as_ref();
        let detail = detail.map(|detail| format!(" <span>{}</span>", escape(detail)));
        format!(
            "<div><dt>{}</dt><dd><strong>{}</strong>{}</dd></div>\n",
            escape(&figure.name),
            escape(&figure.value),
            detail.unwrap_or_default()
        )
    });
    let figures: String = figures.collect();
    if !figures.is_empty() {
        out.push_str(&format!("<dl class=\"figures\">\n{figures}</dl>\n"));
    }
    if let Some(command) = &headline.command {
        let command = escape(command);
        out.push_str(&format!("<div class=\"command\"><code>{command}</code></div>\n"));
    }
    out + "</article>\n"
}

fn aside(cautions: &[Caution]) -> String {
    let (grave, context): (Vec<_>, Vec<_>) =
        cautions.iter().partition(|caution| caution.tier == Tier::Conclusion);
    let (open, rest) = grave.split_at(grave.len().min(OPEN));
    let folded: Vec<&Caution> = rest.iter().chain(&context).copied().collect();
    if cautions.is_empty() {
        return String::new();
    }
    let mut out = "<aside class=\"cautions\">\n".to_owned();
    if !open.is_empty() {
        out.push_str(&format!("<h2>Changes the conclusion</h2>\n{}", items(open)));
    }
    if !folded.is_empty() {
        let title = if open.is_empty() { "To know" } else { "More to know" };
        let (count, items) = (folded.len(), items(&folded));
        out.push_str(&format!(
            "<details><summary>{title} ({count})</summary>\n{items}</details>\n"
        ));
    }
    out + "</aside>\n"
}

fn items(cautions: &[&Caution]) -> String {
    let item = |caution: &&Caution| {
        let (most, kept) = LONG_CAUTION;
        let text = prose(&caution.text);
        if caution.text.chars().count() <= most {
            return format!("<li>{text}</li>\n");
        }
        let brief: String = caution.text.chars().take(kept).filter(|c| *c != '`').collect();
        let brief = escape(&brief);
        format!("<li><details><summary>{brief} …</summary>{text}</details></li>\n")
    };
    format!("<ul>\n{}</ul>\n", cautions.iter().map(item).collect::<String>())
}
