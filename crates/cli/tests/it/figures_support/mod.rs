//! Runs that lie beside the docs' pages, and tables of their figures.

pub mod bars;
pub mod page;
mod run;
mod treatment;

use pgdyno_text::format;
use serde_json::Value;

pub use run::Run;
pub use treatment::{Treatment, highest};

use crate::support::{docs, elements};

/// Checks that docs/field-reports/images/`name`.svg is `picture`, and that `page` shows it; writes
/// it where that is asked for.
pub fn assert_drawn(page: &str, name: &str, picture: &str) {
    let folder = docs::path("field-reports");
    let file = format!("{folder}/images/{name}.svg");
    if std::env::var_os("PGDYNO_TRUTH_WRITE").is_some() {
        std::fs::write(&file, picture).unwrap();
    }
    let drawn = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(drawn == picture, "{name}.svg is not what the run has; PGDYNO_TRUTH_WRITE=1 draws it");
    let shown = std::fs::read_to_string(format!("{folder}/{page}")).unwrap();
    assert!(shown.contains(&format!("(images/{name}.svg)")), "{page} does not show {name}.svg");
}

/// Operations a second of a probe's test.
pub fn operations(probe: &Value, group: &str, test: &str) -> f64 {
    let mut all = elements(&probe["result"]["tests"]);
    let found = all.find(|one| one["group"] == group && one["name"] == test).unwrap();
    let measured = &found["outcome"]["measured"];
    measured["operations"].as_f64().unwrap() / measured["seconds"].as_f64().unwrap()
}

/// A table as the pages have them.
pub struct Table {
    text: String,
}

impl Table {
    /// A table with this head, its cells parted by ` | `.
    pub fn new(head: &str) -> Self {
        let columns = head.split(" | ").count();
        Self { text: format!("| {head} |\n|{}\n", "---|".repeat(columns)) }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        self.text += &format!("| {} |\n", cells.join(" | "));
    }

    /// The table, with a line's end after each row.
    pub fn text(&self) -> String {
        self.text.clone()
    }
}

/// The lowest and the highest of `values`.
pub fn range(values: &[f64]) -> [f64; 2] {
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    [lowest, values.iter().copied().fold(f64::NEG_INFINITY, f64::max)]
}

/// A number without decimals, its thousands parted by commas.
pub fn count(value: f64) -> String {
    format::count(value.round() as u64)
}

/// A ratio, with two decimals.
pub fn ratio(value: f64) -> String {
    format!("{value:.2}")
}

/// A part of one, in percent.
pub fn percent(value: f64) -> String {
    match format!("{:.0}%", 100.0 * value) {
        negative if negative == "-0%" => "0%".to_owned(),
        text => text,
    }
}

/// Microseconds, in milliseconds.
pub fn milliseconds(us: f64) -> String {
    format!("{:.2}", us / 1000.0)
}
