//! `[probe]`: storages are probed before and after the trials.

use std::time::Duration;

use pgdyno_model::experiment::{ProbeKind, ProbeStages};
use pgdyno_model::units::{Bytes, Span};
use serde::Deserialize;
use toml::Spanned;

use super::error::Complaint;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProbeTable {
    before: Option<Spanned<Vec<ProbeKind>>>,
    after: Option<Spanned<Vec<ProbeKind>>>,
    duration: Option<Spanned<Span>>,
    size: Option<Spanned<String>>,
}

impl ProbeTable {
    /// What is to be probed when; `given` where the server, and so its storage, is not pgdyno's own.
    pub(super) fn into_stages(self, given: bool) -> Result<ProbeStages, Complaint> {
        let kinds = |stage: Option<Spanned<Vec<ProbeKind>>>| {
            let Some(stage) = stage else { return Ok(Vec::new()) };
            let span = stage.span();
            let kinds = stage.into_inner();
            if (1..kinds.len()).any(|i| kinds[..i].contains(&kinds[i])) {
                return Err(Complaint::new("a stage names a probe twice").at(span));
            }
            if given && !kinds.is_empty() {
                return Err(Complaint::new(
                    "`probe` measures the storages that pgdyno makes clusters on, and `postgres.dsn` names a running server",
                )
                .with_help("probe its directory by itself: `pgdyno fsync DIR`, `pgdyno disk DIR`")
                .at(span));
            }
            Ok(kinds)
        };
        let defaults = ProbeStages::default();
        let duration = match self.duration {
            Some(duration) if duration.get_ref().0 < Duration::from_millis(10) => {
                return Err(Complaint::new(format!("`probe.duration` is {}", duration.get_ref()))
                    .with_help("each test needs at least 10ms")
                    .at(duration.span()));
            }
            duration => duration.map_or(defaults.duration, Spanned::into_inner),
        };
        let size = match self.size {
            Some(size) => size.get_ref().parse::<Bytes>().map_err(|e| Complaint::new(e).at(size.span()))?,
            None => defaults.size,
        };
        Ok(ProbeStages { before: kinds(self.before)?, after: kinds(self.after)?, duration, size })
    }
}
