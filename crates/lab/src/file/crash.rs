//! `[crash]`: every treatment is crashed after the trials.

use std::num::NonZeroU32;

use pgdyno_model::Fault;
use pgdyno_model::crash::{CrashOptions, Under};
use pgdyno_model::units::Span;
use serde::Deserialize;
use toml::Spanned;

use super::error::Complaint;
use crate::nearest::nearest;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CrashTable {
    faults: Spanned<Vec<Spanned<String>>>,
    rounds: Option<NonZeroU32>,
    clients: Option<NonZeroU32>,
    scale: Option<NonZeroU32>,
    load: Option<Spanned<Span>>,
    recovery_limit: Option<Span>,
    seed: Option<u64>,
    under: Option<Under>,
    controls: Option<bool>,
}

impl CrashTable {
    /// What is to be done; `given` where the server, and so its storage, is not pgdyno's own.
    pub(super) fn into_options(self, given: bool) -> Result<CrashOptions, Complaint> {
        let defaults = CrashOptions::default();
        let at = self.faults.span();
        if given {
            return Err(Complaint::new(
                "`crash` crashes servers that pgdyno makes, and `postgres.dsn` names a running one",
            )
            .with_help("leave `postgres.dsn` out, or `[crash]`")
            .at(at));
        }
        let mut faults = Vec::new();
        for name in self.faults.into_inner() {
            let (span, name) = (name.span(), name.into_inner());
            let fault = Fault::parse(&name).ok_or_else(|| {
                Complaint::new(format!("unknown fault `{name}`"))
                    .with_help(format!(
                        "nearest is `{}`; there are {}",
                        nearest(&name, Fault::NAMES)[0],
                        Fault::NAMES.join(", ")
                    ))
                    .at(span.clone())
            })?;
            if faults.contains(&fault) {
                return Err(Complaint::new(format!("the fault `{name}` is named twice")).at(span));
            }
            faults.push(fault);
        }
        if faults.is_empty() {
            return Err(Complaint::new("`crash.faults` is empty: nothing would be crashed")
                .with_help(format!("name one or several of {}", Fault::NAMES.join(", ")))
                .at(at));
        }
        let load = match self.load {
            Some(load) if load.get_ref().0.as_millis() < 100 => {
                return Err(Complaint::new(format!("`crash.load` is {}", load.get_ref()))
                    .with_help("clients need at least 100ms to have something to lose")
                    .at(load.span()));
            }
            load => load.map_or(defaults.load, Spanned::into_inner),
        };
        Ok(CrashOptions {
            faults,
            rounds: self.rounds.map_or(defaults.rounds, NonZeroU32::get),
            clients: self.clients.map_or(defaults.clients, NonZeroU32::get),
            scale: self.scale.map_or(defaults.scale, NonZeroU32::get),
            load,
            recovery_limit: self.recovery_limit.unwrap_or(defaults.recovery_limit),
            seed: self.seed.unwrap_or(defaults.seed),
            under: self.under.unwrap_or_default(),
            controls: self.controls.unwrap_or(defaults.controls),
        })
    }
}
