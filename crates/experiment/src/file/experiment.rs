//! `[experiment]`: the question, and how often and in which order trials run.

use std::num::NonZeroU32;

use pgdyno_model::Stopping;
use pgdyno_model::experiment::Order;
use pgdyno_model::units::Span;
use serde::Deserialize;
use toml::Spanned;

use super::error::{Complaint, read_at};

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(super) struct ExperimentTable {
    /// The name that a run's id begins with. By default the file's name.
    pub(super) name: Option<String>,
    /// The question that heads the report.
    pub(super) question: Option<String>,
    /// Trials of every treatment. With `precision` or `budget`: the fewest, 4 by default.
    #[cfg_attr(test, schemars(extend("default" = 3)))]
    repeats: Option<NonZeroU32>,
    /// The order of trials.
    pub(super) order: Order,
    /// Seed for the order and the load's random numbers. By default drawn for each run.
    pub(super) seed: Option<u64>,
    /// The largest difference of tps that does not matter. Comparisons are also judged for
    /// equivalence within it.
    #[cfg_attr(test, schemars(schema_with = "super::schema::percentage"))]
    margin: Option<Spanned<String>>,
    /// End the run when each comparison is significant, equivalent within `margin`, or known to ±
    /// this.
    #[cfg_attr(test, schemars(schema_with = "super::schema::percentage"))]
    precision: Option<Spanned<String>>,
    /// Time for all trials. After the fewest repeats, no block begins that does not fit into it.
    #[cfg_attr(test, schemars(with = "Span"))]
    budget: Option<Spanned<Span>>,
    /// With `precision` or `budget`: the most trials of a treatment, 30 by default.
    #[cfg_attr(test, schemars(with = "NonZeroU32"))]
    max_repeats: Option<Spanned<NonZeroU32>>,
    /// Judge with what earlier runs on the host tell of its noise, beside the run's own.
    #[cfg_attr(test, schemars(extend("default" = true)))]
    pub(super) host_noise: Option<bool>,
}

impl ExperimentTable {
    /// The largest difference that does not matter (a share).
    pub(super) fn margin(&self) -> Result<Option<f64>, Complaint> {
        let margin = self.margin.clone();
        margin.map(|m| read_at(m, |text| percentage("margin", &text))).transpose()
    }

    /// The most repeats, and when the run ends before them.
    pub(super) fn repeats(&self) -> Result<(NonZeroU32, Option<Stopping>), Complaint> {
        /// Where repeats are not fixed: the least, and the most.
        const RANGE: (u32, u32) = (4, 30);
        let precision = self.precision.clone();
        let precision = precision.map(|p| read_at(p, |text| percentage("precision", &text)));
        let precision = precision.transpose()?;
        let Some(first) =
            self.precision.as_ref().map(Spanned::span).or(self.budget.as_ref().map(Spanned::span))
        else {
            if let Some(most) = &self.max_repeats {
                return Err(Complaint::new(
                    "`max_repeats` is given without `precision` or `budget`",
                )
                .with_help("`repeats` alone is how often every treatment is run")
                .at(most.span()));
            }
            return Ok((self.repeats.unwrap_or(NonZeroU32::MIN.saturating_add(2)), None));
        };
        if self.order == Order::Sequential {
            return Err(Complaint::new(
                "`order = \"sequential\"` leaves no blocks after which a run could end",
            )
            .with_help("leave `order` out, or give `repeats` alone")
            .at(first));
        }
        if let Some(budget) = self.budget.as_ref().filter(|b| b.get_ref().0.is_zero()) {
            return Err(Complaint::new("`budget` is no time at all")
                .with_help("such as \"30m\"")
                .at(budget.span()));
        }
        let floor = self.repeats.map_or(RANGE.0, NonZeroU32::get);
        let most = self.max_repeats.as_ref();
        let ceiling = most.map_or(RANGE.1.max(floor), |most| most.get_ref().get());
        if floor < 2 {
            return Err(Complaint::new("`repeats = 1` is too few for a run that ends by itself")
                .with_help("its first look needs at least 2 repeats; 4 unless said otherwise")
                .at(first));
        }
        if ceiling < floor {
            return Err(Complaint::new(format!(
                "`max_repeats` is {ceiling}, and at least {floor} repeats are run"
            ))
            .with_help("give less `repeats`, or more `max_repeats`")
            .at(most.map_or(first, Spanned::span)));
        }
        let budget = self.budget.as_ref().map(|b| *b.get_ref());
        let ceiling = NonZeroU32::MIN.saturating_add(ceiling - 1);
        Ok((ceiling, Some(Stopping { floor, ceiling: ceiling.get(), precision, budget })))
    }
}

/// A share from its text in percent: 0.03 from `3%`.
fn percentage(name: &str, text: &str) -> Result<f64, Complaint> {
    let percent =
        text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match percent {
        Some(percent) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        _ => Err(Complaint::new(format!("`{text}` is no {name}"))
            .with_help("a percentage above 0 and below 100, such as \"3%\"")),
    }
}
