//! Gates on the change of a measure: `--fail-if "tps < -3%"` and `--fail-unless "tps > -3%"`.

use std::fmt;
use std::ops::Range;

use pgdyno_model::{Advice, FailureKind};
use serde::{Serialize, Serializer};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Measure that a gate judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Transactions per second.
    Tps,
    /// Median latency.
    P50,
    /// 95th percentile of latency.
    P95,
    /// 99th percentile of latency.
    P99,
}

impl Measure {
    /// Finds the measure called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// Returns the measure's name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Form of a gate's question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Fails if the data show that the condition holds.
    #[default]
    FailIf,
    /// Fails unless the data prove that the condition holds (non-inferiority, if the condition is
    /// that nothing got worse).
    FailUnless,
}

impl Form {
    /// Returns the command-line option of this form.
    pub fn option(self) -> &'static str {
        match self {
            Self::FailIf => "--fail-if",
            Self::FailUnless => "--fail-unless",
        }
    }
}

/// Condition on a change that must not happen (`tps < -3%`), or that must be shown (`tps > -3%`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gate {
    /// Form of the question.
    pub form: Form,
    /// Measure whose change is judged.
    pub measure: Measure,
    /// Whether the condition is a change below `margin`; otherwise above it.
    pub below: bool,
    /// Where the condition begins (a share, signed: −0.03 for 3% less), above −1.
    pub margin: f64,
}

impl Gate {
    /// Returns the margin as a ratio.
    pub fn bound(&self) -> f64 {
        1.0 + self.margin
    }
}

impl fmt::Display for Gate {
    /// `tps < -3%`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // To nine digits: 0.03 is not three hundredths.
        let percent = (self.margin * 1e9).round() / 1e7;
        let sign = if percent > 0.0 { "+" } else { "" };
        write!(f, "{} {} {sign}{percent}%", self.measure.name(), if self.below { "<" } else { ">" })
    }
}

impl Serialize for Gate {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Text that is no gate, with the place of the fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot read `{}`: {what}\n  | {given}\n  | {}{}",
    form.option(),
    " ".repeat(at.start),
    "^".repeat(at.len().max(1))
)]
#[allow(missing_docs, reason = "the messages say it")]
pub struct GateError {
    pub form: Form,
    /// Whole value of the option.
    pub given: String,
    /// Characters at fault.
    pub at: Range<usize>,
    pub what: String,
    help: String,
}

impl Advice for GateError {
    fn help(&self) -> Option<String> {
        Some(self.help.clone())
    }

    fn kind(&self) -> FailureKind {
        FailureKind::Input
    }
}

/// Parses the gates of `given`, all of one `form`: `MEASURE < CHANGE` or `MEASURE > CHANGE`,
/// several with commas between them. MEASURE is `tps`, `p50`, `p95` or `p99`; CHANGE is a
/// percentage with its sign, above −100%.
///
/// # Errors
/// [`GateError`] with the place of the first thing that is wrong.
pub fn parse(given: &str, form: Form) -> Result<Vec<Gate>, GateError> {
    let mut gates = Vec::new();
    let mut begin = 0;
    for part in given.split(',') {
        gates.push(one(form, given, begin, part)?);
        begin += part.chars().count() + 1;
    }
    Ok(gates)
}

/// Parses the gate `part`, which begins at character `begin` of `given`.
fn one(form: Form, given: &str, begin: usize, part: &str) -> Result<Gate, GateError> {
    let wrong = |text: &str, what: String, help: &str| {
        // `text` is a slice of `part`.
        let before = &part[..text.as_ptr() as usize - part.as_ptr() as usize];
        let start = begin + before.chars().count();
        GateError {
            form,
            given: given.to_owned(),
            at: start..start + text.chars().count(),
            what,
            help: help.to_owned(),
        }
    };
    const LIKE: &str =
        "write it like \"tps < -3%\" or \"p99 > +10%\", several with commas between them";
    let trimmed = part.trim();
    if trimmed.is_empty() {
        return Err(wrong(part, "there is nothing here".to_owned(), LIKE));
    }
    let Some(at) = trimmed.find(['<', '>', '=']) else {
        return Err(wrong(trimmed, "there is neither `<` nor `>`".to_owned(), LIKE));
    };
    let (name, rest) = (trimmed[..at].trim_end(), &trimmed[at..]);
    let Some(measure) = Measure::from_name(name) else {
        return Err(wrong(
            name,
            format!("`{name}` is nothing that can be compared"),
            "what can be compared is tps, p50, p95, p99",
        ));
    };
    let operator = &rest[..rest.find(|c| !matches!(c, '<' | '>' | '=')).unwrap_or(rest.len())];
    if !matches!(operator, "<" | ">") {
        let help = "a change is below (`<`) or above (`>`) what is let through";
        return Err(wrong(operator, format!("`{operator}` is no comparison here"), help));
    }
    let change = rest[1..].trim_start();
    let Some(number) = change.strip_suffix('%').map(str::trim_end) else {
        return Err(wrong(
            change,
            format!("`{change}` is no percentage"),
            "a change is given in percent: -3%, +10%",
        ));
    };
    // The minus that pgdyno prints is taken, too.
    let ascii = number.replace('−', "-");
    let percent = ascii.parse::<f64>().ok().filter(|p| p.is_finite());
    let Some(percent) = percent else {
        return Err(wrong(number, format!("`{number}` is no number"), "such as -3% or +0.5%"));
    };
    if percent != 0.0 && !ascii.starts_with(['+', '-']) {
        return Err(wrong(
            change,
            format!("`{change}` has no sign"),
            "-3% is 3% less than before, +3% is 3% more",
        ));
    }
    if percent <= -100.0 {
        return Err(wrong(
            change,
            format!("nothing can change by {change}"),
            "a change is more than -100%",
        ));
    }
    Ok(Gate { form, measure, below: operator == "<", margin: percent / 100.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_meant() {
        let gates = parse(" tps<-3% ,p99 > +10 %, p50 > 0%", Form::FailIf).unwrap();
        let shown: Vec<String> = gates.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["tps < -3%", "p99 > +10%", "p50 > 0%"]);
        assert_eq!((gates[0].below, gates[0].margin, gates[0].bound()), (true, -0.03, 0.97));
        assert_eq!(parse("tps > −3%", Form::FailUnless), parse("tps > -3%", Form::FailUnless));
        assert_eq!(parse("tps > -0.5%", Form::FailUnless).unwrap()[0].to_string(), "tps > -0.5%");
    }

    #[test]
    fn what_cannot_be_read_is_shown_with_its_place() {
        let error = |given: &str| {
            let e = parse(given, Form::FailIf).unwrap_err();
            format!("{e}\nhelp: {}", e.help)
        };
        insta::assert_snapshot!(
            [
                "tsp < -3%",
                "tps < -3%, µ > +1%",
                "tps",
                "tps = -3%",
                "tps <= -3%",
                "tps < 3%",
                "tps < -3",
                "tps < -x%",
                "tps < -100%",
                "tps < +inf%",
                "",
                "tps < -3%,",
                "tps <",
            ]
            .map(error)
            .join("\n\n")
        );
    }
}
