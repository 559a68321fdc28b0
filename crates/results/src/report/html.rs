//! Renders a run as HTML: one file that loads nothing from elsewhere.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};
use pgdyno_model::format;
use pgdyno_model::printable::{escape_text, is_hazard};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::error::ReportError;
use super::fingerprint::{self, Row};
use super::{charts, verdicts, why};
use crate::analysis::{RunView, SessionView, TrialState, TrialView};

const TEMPLATE: &str = include_str!("../../assets/report.html");
const STYLE: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");
const UPLOT_SCRIPT: &str = include_str!("../../assets/vendor/uPlot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../assets/vendor/uPlot/uPlot.min.css");

/// Renders the report as one HTML document, without control characters.
///
/// Texts of the run stay text: the template escapes them, and data in a script element are escaped
/// for it. The content security policy allows pgdyno's own scripts only, by their hashes.
///
/// # Errors
/// [`ReportError::Render`].
pub fn html(view: &RunView) -> Result<String, ReportError> {
    let page = render(view).map(|page| escape_text(&page).into_owned());
    page.map_err(|source| ReportError::Render { run: view.run.id.clone(), source })
}

fn render(view: &RunView) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    // A name that the template misspells is an error, not nothing.
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    for (name, show) in FILTERS {
        environment.add_filter(*name, move |value: Value| {
            f64::try_from(value).map_or_else(|_| NONE.to_owned(), show)
        });
    }
    environment.add_filter("prose", |text: String| Value::from_safe_string(prose(&text)));
    environment.add_template("report.html", TEMPLATE)?;
    let data = serde_json::to_string(view).map_err(|e| {
        minijinja::Error::new(minijinja::ErrorKind::BadSerialization, "the run as JSON")
            .with_source(e)
    })?;
    environment.get_template("report.html")?.render(context! {
        view => Value::from(Serde(view)),
        treatments => Value::from(Serde(treatments(view))),
        service => view.treatments.iter().any(|t| t.service_us.is_some()),
        trials => Value::from(Serde(trials(view))),
        intervals => Value::from(Serde(charts::intervals(view))),
        quantiles => Value::from(Serde(charts::quantiles(view))),
        capacity => Value::from(Serde(charts::capacity(view))),
        waits => Value::from(Serde(charts::waits(view))),
        probes => Value::from(Serde(view.probes.iter().map(super::terminal::probed).collect::<Vec<_>>())),
        crashes => Value::from(Serde(view.crashes.iter().flat_map(super::terminal::crashed).collect::<Vec<_>>())),
        differences => Value::from(Serde(verdicts::differences(view))),
        why => Value::from(Serde(why::pairs(view))),
        steadiness => Value::from(Serde(verdicts::steadiness(view))),
        machines => Value::from(Serde(machines(view))),
        policy => policy(),
        style => Value::from_safe_string(format!("{UPLOT_STYLE}\n{STYLE}")),
        uplot => Value::from_safe_string(UPLOT_SCRIPT.to_owned()),
        script => Value::from_safe_string(SCRIPT.to_owned()),
        data => Value::from_safe_string(for_script(&data)),
    })
}

const NONE: &str = "–";

type Filter = (&'static str, fn(f64) -> String);

const FILTERS: &[Filter] = &[
    ("rate", format::rate),
    ("ms", format::milliseconds),
    ("times", format::times),
    ("seconds", format::seconds),
    ("bytes", bytes),
];

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn bytes(value: f64) -> String {
    pgdyno_model::units::Bytes(value.max(0.0) as u64).to_string()
}

/// Returns the content security policy: nothing is loaded, and only these scripts run.
fn policy() -> String {
    let hash = |script: &str| BASE64_STANDARD.encode(Sha256::digest(script.as_bytes()));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{}' 'sha256-{}'; \
         base-uri 'none'; form-action 'none'",
        hash(UPLOT_SCRIPT),
        hash(SCRIPT)
    )
}

/// Renders a sentence as HTML; text between backticks becomes code.
fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 32);
    for (i, part) in text.split('`').enumerate() {
        let code = i % 2 == 1;
        out.push_str(if code { "<code>" } else { "" });
        for c in part.chars() {
            match c {
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '&' => out.push_str("&amp;"),
                '"' => out.push_str("&quot;"),
                '\'' => out.push_str("&#39;"),
                c => out.push(c),
            }
        }
        out.push_str(if code { "</code>" } else { "" });
    }
    out
}

/// Escapes JSON so that an HTML parser reads it as text only.
fn for_script(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            // The page's script shows it: written out as it is on a terminal.
            c if is_hazard(c) => out.push_str(&escape_text(&c.to_string()).replace('\\', "\\\\")),
            c => out.push(c),
        }
    }
    out
}

/// Rows of a session that the template needs beside the view.
#[derive(Serialize)]
struct Machine {
    host: Vec<Row>,
    details: Vec<Row>,
    /// Rows of each storage, by its name.
    storage: Vec<(String, Vec<Row>)>,
}

fn machines(view: &RunView) -> Vec<Machine> {
    let machine = |s: &SessionView| {
        let (details, host) = fingerprint::host(&s.host).into_iter().partition(|row| row.detail);
        let storage = s.storage.iter().map(|s| (s.name.clone(), fingerprint::storage(s))).collect();
        Machine { host, details, storage }
    };
    view.sessions.iter().map(machine).collect()
}

/// Texts of a treatment that the template needs beside the view.
#[derive(Serialize)]
struct TreatmentRow {
    /// Level of each of the plan's factors.
    levels: Vec<String>,
    half: Option<String>,
}

fn treatments(view: &RunView) -> Vec<TreatmentRow> {
    let label = |levels: &pgdyno_model::Levels, factor: &String| {
        levels.get(factor).map(ToString::to_string).unwrap_or_default()
    };
    view.treatments
        .iter()
        .map(|t| TreatmentRow {
            levels: view.plan.factors.iter().map(|factor| label(&t.factors, factor)).collect(),
            half: t.tps.as_ref().and_then(|tps| format::plus_minus(tps.mean, tps.ci95?)),
        })
        .collect()
}

/// Texts of a trial that the template needs beside the view.
#[derive(Serialize)]
struct TrialRow {
    label: String,
    state: TrialState,
    /// tps of the slowest and the fastest whole second.
    range: Option<(f64, f64)>,
    /// Whether pgdyno's count of transactions agrees with the server's; none if not comparable.
    agrees: Option<bool>,
}

fn trials(view: &RunView) -> Vec<TrialRow> {
    view.trials
        .iter()
        .map(|t| TrialRow {
            label: view.treatments.get(t.treatment).map(|t| t.label.clone()).unwrap_or_default(),
            state: t.state,
            range: range(t),
            agrees: t.server_count.as_ref().and_then(|c| Some(c.rows? == c.rows_expected?)),
        })
        .collect()
}

fn range(trial: &TrialView) -> Option<(f64, f64)> {
    let whole = || trial.series.iter().filter(|s| s.second.length_s > 0.5).filter_map(|s| s.tps);
    Some((whole().reduce(f64::min)?, whole().reduce(f64::max)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_pass_as_they_are_so_that_their_hashes_hold() {
        for own in [TEMPLATE, STYLE, SCRIPT, UPLOT_SCRIPT, UPLOT_STYLE] {
            assert_eq!(escape_text(own), own);
        }
    }

    #[test]
    fn data_end_no_script_and_hold_nothing_that_is_obeyed() {
        let json = serde_json::to_string("</script><!--\u{202e}\u{9b}\u{1b}\u{2028}").unwrap();
        let escaped = for_script(&json);
        assert!(!escaped.contains('<') && !escaped.chars().any(is_hazard), "{escaped}");
        let read: String = serde_json::from_str(&escaped).unwrap();
        assert_eq!(read, "</script><!--\\u{202e}\\x9b\u{1b}\\u{2028}");
    }
}
