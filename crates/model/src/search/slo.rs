//! The search for the highest rate that keeps a service level objective.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::steps::Step;
use crate::Measurement;
use crate::units::Span;

/// A service level objective: limits that a load must all keep.
#[derive(Clone, Debug, PartialEq)]
pub struct Slo(pub Vec<Limit>);

/// One limit.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Limit {
    /// A percentile of latency, from due to done, below a time.
    Latency {
        /// The percentile: 99 for p99.
        percentile: f64,
        below: Span,
    },
    /// Transactions that failed or were skipped, as a share of all that were due, below this.
    Failed(f64),
}

/// Error of reading an [`Slo`], with the place of the wrong bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SloError {
    /// Message, without the place.
    pub what: String,
    /// Range of the wrong bytes in the text.
    pub at: Range<usize>,
}

impl fmt::Display for SloError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl fmt::Display for Limit {
    /// `p99 < 20ms`, `failed < 0.1%`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latency { percentile, below } => write!(f, "p{percentile} < {below}"),
            // To nine digits: 0.001 is not a thousandth.
            Self::Failed(share) => write!(f, "failed < {}%", (share * 1e9).round() / 1e7),
        }
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&all.join(", "))
    }
}

impl FromStr for Slo {
    type Err = SloError;

    /// Reads `p99 < 20ms, failed < 0.1%`.
    fn from_str(text: &str) -> Result<Self, SloError> {
        let mut limits = Vec::new();
        let mut begin = 0;
        for part in text.split(',') {
            limits.push(limit(part, begin)?);
            begin += part.len() + 1;
        }
        Ok(Self(limits))
    }
}

fn limit(part: &str, begin: usize) -> Result<Limit, SloError> {
    let trimmed = part.trim();
    let start = begin + (part.len() - part.trim_start().len());
    let wrong = |what: String, from: usize, length: usize| {
        Err(SloError { what, at: start + from..start + from + length.max(1) })
    };
    let Some((measure, value)) = trimmed.split_once('<') else {
        return wrong(format!("`{trimmed}` is no limit"), 0, trimmed.len());
    };
    let value_at = measure.len() + 1 + (value.len() - value.trim_start().len());
    let (measure, value) = (measure.trim(), value.trim());
    if measure == "failed" {
        let percent = value.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        return match percent {
            Some(percent) if percent > 0.0 && percent <= 100.0 => {
                Ok(Limit::Failed(percent / 100.0))
            }
            _ => wrong(format!("`{value}` is no share of transactions"), value_at, value.len()),
        };
    }
    let percentile = measure.strip_prefix('p').and_then(|number| number.parse::<f64>().ok());
    let Some(percentile) = percentile.filter(|p| (1.0..100.0).contains(p)) else {
        return wrong(format!("`{measure}` is nothing that can be limited"), 0, measure.len());
    };
    match value.parse::<Span>() {
        Ok(below) if !below.0.is_zero() => Ok(Limit::Latency { percentile, below }),
        _ => wrong(format!("`{value}` is no time"), value_at, value.len()),
    }
}

impl Serialize for Slo {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Slo {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Slo {
    /// Returns why `m`, at an offered `rate` (1/s), does not keep the objective; none if it does.
    ///
    /// A load keeps nothing if it falls behind its rate by more than 5% and chance (three standard
    /// deviations of a Poisson count), whatever its latency.
    pub fn broken(&self, rate: f64, m: &Measurement) -> Option<String> {
        let due = rate * m.measured_s;
        let dealt_with = (m.transactions + m.failed + m.sums.skipped) as f64;
        if dealt_with < 0.95 * due - 3.0 * due.max(0.0).sqrt() {
            return Some(format!(
                "fell behind: {dealt_with:.0} of about {due:.0} due transactions"
            ));
        }
        self.0.iter().find_map(|limit| limit.broken(m))
    }
}

impl Limit {
    fn broken(&self, m: &Measurement) -> Option<String> {
        match self {
            Self::Latency { percentile, below } => {
                let Some(us) = m.latency.quantile_us(percentile / 100.0) else {
                    return Some("no transaction ended".to_owned());
                };
                let limit = below.0.as_secs_f64() * 1e6;
                (us >= limit).then(|| format!("p{percentile} = {:.2} ms", us / 1e3))
            }
            Self::Failed(most) => {
                let lost = (m.failed + m.sums.skipped) as f64;
                let all = m.transactions as f64 + lost;
                let share = if all > 0.0 { lost / all } else { 1.0 };
                (share >= *most).then(|| format!("{:.2}% failed or were skipped", 100.0 * share))
            }
        }
    }
}

/// Search of a trial for the highest rate that keeps an objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Find {
    /// Objective that the rate must keep.
    pub slo: Slo,
    /// Largest final distance between a rate that keeps the objective and one that does not (a
    /// share).
    pub resolution: f64,
    /// Window of a step; the answer is confirmed over the plan's whole window.
    pub step: Span,
}

impl Find {
    /// Creates a search whose answer is confirmed over `window`; each step's window is a quarter,
    /// at least 1 s.
    pub fn new(slo: Slo, window: Duration) -> Self {
        let step = (window / 4).max(Duration::from_secs(1));
        Self { slo, resolution: 0.03, step: Span(step) }
    }
}

impl Step {
    /// Judges the measurement `m` of a step that offered `rate` (1/s).
    pub fn judge(slo: &Slo, rate: Option<f64>, confirming: bool, m: &Measurement) -> Self {
        let quantile = |q| m.latency.quantile_us(q);
        Self {
            rate,
            confirming,
            measured_s: m.measured_s,
            tps: m.tps(),
            transactions: m.transactions,
            failed: m.failed,
            skipped: m.sums.skipped,
            latency_us_p50: quantile(0.5),
            latency_us_p95: quantile(0.95),
            latency_us_p99: quantile(0.99),
            latency_us_p99_9: quantile(0.999),
            broken: rate.and_then(|rate| slo.broken(rate, m)),
            generator_limit: m.generator_limit().map(|limit| limit.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::Search;
    use super::*;

    #[test]
    fn an_objective_is_read_and_shown_alike() {
        let text = "p99 < 20ms, failed < 0.1%, p99.9 < 1s";
        let slo: Slo = text.parse().unwrap();
        assert_eq!(slo.0[0], Limit::Latency { percentile: 99.0, below: "20ms".parse().unwrap() });
        assert_eq!((slo.0[1], slo.to_string().as_str()), (Limit::Failed(0.001), text));
        assert_eq!(
            serde_json::from_str::<Slo>(&serde_json::to_string(&slo).unwrap()).unwrap(),
            slo
        );
    }

    #[test]
    fn what_is_no_objective_is_told_with_its_place() {
        for (text, at, word) in [
            ("p99 < 20ms, faild < 1%", 12..17, "`faild`"),
            ("p99 > 20ms", 0..10, "`p99 > 20ms`"),
            (" p99 < 20", 7..9, "`20`"),
            ("p99 < 0s", 6..8, "`0s`"),
            ("p100 < 20ms", 0..4, "`p100`"),
            ("failed < 0.1", 9..12, "`0.1`"),
            ("", 0..1, "``"),
        ] {
            let error = text.parse::<Slo>().unwrap_err();
            assert_eq!(error.at, at, "{text}");
            assert!(error.what.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn an_objective_is_broken_by_latency_failures_skips_and_falling_behind() {
        let slo: Slo = "p99 < 20ms, failed < 1%".parse().unwrap();
        let mut m = Measurement { measured_s: 10.0, transactions: 1000, ..Measurement::default() };
        (0..1000).for_each(|_| m.latency.record(5_000_000));
        assert_eq!(slo.broken(100.0, &m), None);
        // Poisson: 1,000 is nothing strange where 1,050 are due, and is where 1,250 are.
        assert_eq!(slo.broken(105.0, &m), None);
        assert!(slo.broken(125.0, &m).unwrap().starts_with("fell behind: 1000 of about 1250"));
        m.sums.skipped = 20;
        assert!(slo.broken(100.0, &m).unwrap().contains("1.96% failed or were skipped"));
        m.sums.skipped = 0;
        (0..100).for_each(|_| m.latency.record(25_000_000));
        assert!(
            slo.broken(100.0, &m).unwrap().starts_with("p99 = 2"),
            "{:?}",
            slo.broken(100.0, &m)
        );
        assert!(slo.broken(0.0, &Measurement::default()).is_some(), "nothing is no success");
    }

    #[test]
    fn an_answer_that_the_generator_set_is_known() {
        let step = |rate: f64, confirming, broken: bool, limited: bool| Step {
            rate: Some(rate),
            confirming,
            broken: broken.then(|| "p99".to_owned()),
            generator_limit: limited.then(|| "busy".to_owned()),
            ..Step::default()
        };
        let search = |steps| Search { max_rate: Some(100.0), least_broken: Some(103.0), steps };
        assert!(
            !search(vec![step(400.0, false, true, true), step(103.0, false, true, false)])
                .generator_limited()
        );
        assert!(
            search(vec![step(103.0, false, true, true), step(100.0, true, false, false)])
                .generator_limited()
        );
        assert!(
            search(vec![step(103.0, false, true, false), step(100.0, true, false, true)])
                .generator_limited()
        );
        assert!(!Search::default().generator_limited());
    }
}
