//! `[load]`: clients, rates, and what ends a trial.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use pgdyno_model::Slo;
use pgdyno_model::experiment::{Length, Load, LoadOptions, OnError, Protocol, ReconnectLost};
use pgdyno_model::level::{Key, LevelValue};
use pgdyno_model::load_rate::LoadRate;
use pgdyno_model::units::Span;
use serde::Deserialize;
use toml::Spanned;

use super::error::{Complaint, read_at};
use super::levels::{check_level, set_option};
use super::rate::rate_value;
use super::source::Source;

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transform = super::schema::load_rules))]
#[serde(default, deny_unknown_fields)]
pub(super) struct LoadTable {
    /// Connections. By default one, or those of the workload's groups of clients, where it has any:
    /// then `groups.NAME.clients` sets them.
    pub(super) clients: Option<NonZeroU32>,
    /// Threads of the load generator, at most one for each client.
    #[cfg_attr(test, schemars(extend("default" = 1)))]
    pub(super) threads: Option<NonZeroU32>,
    /// How statements are sent.
    #[cfg_attr(test, schemars(extend("default" = "simple")))]
    pub(super) protocol: Option<Protocol>,
    /// The measured window, at least 1s.
    #[cfg_attr(test, schemars(with = "Span", extend("default" = "5s")))]
    pub(super) duration: Option<Spanned<Span>>,
    /// Instead of `duration`: transactions of each client.
    pub(super) transactions: Option<std::num::NonZeroU64>,
    /// Load before the measured window.
    #[cfg_attr(test, schemars(extend("default" = "1s")))]
    pub(super) warm_up: Option<Span>,
    /// Transactions per second over all clients, due at random times. Latency then counts from
    /// when a transaction was due. A list: stages of a length and a rate, or of a length and the
    /// rates at its beginning and end.
    #[cfg_attr(test, schemars(schema_with = "super::schema::rate_over_time"))]
    pub(super) rate: Option<Spanned<toml::Value>>,
    /// Multiplies the keying and think times of the workload's scripts. 0: none; 1: as they are. By
    /// default as the workload says.
    #[cfg_attr(test, schemars(with = "f64", range(min = 0, max = 1000)))]
    pub(super) pauses: Option<Spanned<LevelValue>>,
    /// Count transactions over this as late. With `rate`, skip one that is that late before it
    /// begins.
    #[cfg_attr(test, schemars(with = "Span"))]
    pub(super) latency_limit: Option<Spanned<LevelValue>>,
    /// Tries of a transaction that meets a serialization failure or a deadlock. 0: no limit.
    #[cfg_attr(test, schemars(extend("default" = 1)))]
    pub(super) max_tries: Option<u32>,
    /// Effect of any other error.
    #[cfg_attr(test, schemars(extend("default" = "abort-client")))]
    pub(super) on_error: Option<OnError>,
    /// Open a connection for each transaction.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub(super) reconnect: Option<bool>,
    /// Effect of a lost connection. A number: the client connects again, up to so many failed
    /// tries in a row.
    #[cfg_attr(test, schemars(extend("default" = "never")))]
    pub(super) reconnect_lost: Option<ReconnectLost>,
    /// Search for the highest rate that keeps the objective `slo`.
    #[cfg_attr(test, schemars(with = "SearchTarget"))]
    pub(super) find: Option<Spanned<SearchTarget>>,
    /// The objective of the search.
    #[cfg_attr(test, schemars(with = "String", extend("examples" = ["p99 < 20ms, failed < 0.1%"])))]
    pub(super) slo: Option<Spanned<String>>,
    /// Variables for scripts.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, LevelValue>"))]
    pub(super) define: BTreeMap<Spanned<String>, LevelValue>,
}

/// Searches that `load.find` can name.
#[derive(Clone, Copy, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum SearchTarget {
    /// The highest rate that keeps `slo`.
    MaxRate,
}

impl LoadTable {
    /// Returns the load that the table describes.
    ///
    /// # Errors
    /// Keys contradict each other, or a value is out of its range.
    pub(super) fn into_load(mut self, source: &Source) -> Result<Load, Complaint> {
        let find = self.find()?;
        let options = self.options(source)?;
        Ok(Load {
            clients: self.clients,
            threads: self.threads.unwrap_or(NonZeroU32::MIN),
            protocol: self.protocol.unwrap_or_default(),
            length: self.length(options.rate.as_ref())?,
            warm_up: self.warm_up.unwrap_or(Span::from_secs(1)),
            options,
            find,
        })
    }

    /// Returns what ends a trial: time or a count. Stages of `rate` end it if nothing else does.
    fn length(&self, rate: Option<&LoadRate>) -> Result<Length, Complaint> {
        match (&self.duration, self.transactions) {
            (Some(_), Some(_)) => {
                Err(Complaint::new("`load.duration` and `load.transactions` are both given")
                    .with_help("keep the one that shall end a trial"))
            }
            (None, Some(n)) => Ok(Length::Transactions(n.get())),
            (Some(duration), None) if duration.get_ref().0 < Duration::from_secs(1) => {
                Err(Complaint::new(format!("`load.duration` is {}", duration.get_ref()))
                    .with_help("a trial needs at least a second: \"5s\", \"2m\"")
                    .at(duration.span()))
            }
            (Some(duration), None) => Ok(Length::Duration(*duration.get_ref())),
            (None, None) => {
                let seconds = rate.and_then(LoadRate::seconds).unwrap_or(5);
                Ok(Length::Duration(Span::from_secs(seconds)))
            }
        }
    }

    /// Returns the objective that the rate must keep, where a rate is searched for.
    fn find(&self) -> Result<Option<Slo>, Complaint> {
        let (find, slo) = match (&self.find, &self.slo) {
            (None, None) => return Ok(None),
            (Some(find), Some(slo)) => (find, slo),
            (Some(find), None) => {
                return Err(Complaint::new("`load.find` is given without `load.slo`")
                    .with_help("what shall the rate keep? `slo = \"p99 < 20ms, failed < 0.1%\"`")
                    .at(find.span()));
            }
            (None, Some(slo)) => {
                return Err(Complaint::new("`load.slo` is given without `load.find`")
                    .with_help("`find = \"max_rate\"` looks for the highest rate that keeps it")
                    .at(slo.span()));
            }
        };
        let SearchTarget::MaxRate = find.get_ref();
        if self.rate.is_some() {
            return Err(Complaint::new("`load.rate` and `load.find` are both given")
                .with_help("a rate is offered or looked for: keep one of the two")
                .at(find.span()));
        }
        if self.transactions.is_some() {
            return Err(Complaint::new("`load.find` cannot be with `load.transactions`")
                .with_help(
                    "give `load.duration`: over so long the answer is confirmed, each step takes a \
                     quarter of it",
                )
                .at(find.span()));
        }
        let parsed = slo.get_ref().parse::<Slo>().map_err(|e| {
            // The text begins after its quote; what has escapes in it is marked a little off.
            let begin = slo.span().start + 1;
            Complaint::new(e.what)
                .with_help("write it like \"p99 < 20ms, failed < 0.1%\"")
                .at(begin + e.at.start..begin + e.at.end)
        })?;
        Ok(Some(parsed))
    }

    /// Returns the options that go beyond the scripts.
    fn options(&mut self, source: &Source) -> Result<LoadOptions, Complaint> {
        let mut options = LoadOptions::default();
        let mut set = |key: Key, value: LevelValue| -> Result<(), Complaint> {
            check_level(&key, &value)?;
            set_option(&mut options, &key, &value);
            Ok(())
        };
        if let Some(rate) = self.rate.take() {
            read_at(rate, |rate| set(Key::Rate, rate_value("load.rate", &rate, source)?))?;
        }
        if let Some(pauses) = self.pauses.take() {
            read_at(pauses, |pauses| set(Key::Pauses, pauses))?;
        }
        if let Some(limit) = self.latency_limit.take() {
            read_at(limit, |limit| set(Key::LatencyLimit, limit))?;
        }
        options.max_tries = self.max_tries.unwrap_or(options.max_tries);
        options.on_error = self.on_error.unwrap_or_default();
        options.reconnect = self.reconnect.unwrap_or_default();
        options.reconnect_lost = self.reconnect_lost.unwrap_or_default();
        for (name, value) in std::mem::take(&mut self.define) {
            if !pgdyno_engine::script::is_variable_name(name.get_ref()) {
                return Err(Complaint::new(format!(
                    "`{}` cannot be a variable's name",
                    name.get_ref()
                ))
                .with_help("letters, digits and underscores, no digit first")
                .at(name.span()));
            }
            options.define.insert(name.into_inner(), value.to_variable());
        }
        Ok(options)
    }
}
