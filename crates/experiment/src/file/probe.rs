//! `[probe]`: storages are probed before and after the trials.

use std::time::Duration;

use pgdyno_model::experiment::{ProbeKind, ProbeStages};
use pgdyno_model::units::{Bytes, Span};
use serde::Deserialize;
use toml::Spanned;

use super::error::{Complaint, read_at};

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(super) struct ProbeTable {
    /// Probes before the first trial of a session.
    #[cfg_attr(test, schemars(with = "Vec<ProbeKind>", extend("uniqueItems" = true)))]
    before: Option<Spanned<Vec<ProbeKind>>>,
    /// Probes after the last trial of a session, with the servers stopped.
    #[cfg_attr(test, schemars(with = "Vec<ProbeKind>", extend("uniqueItems" = true)))]
    after: Option<Spanned<Vec<ProbeKind>>>,
    /// Discard the free blocks of each storage after that (`fstrim`), and probe the disk once more.
    #[cfg_attr(test, schemars(with = "bool", extend("default" = false)))]
    after_trim: Option<Spanned<bool>>,
    /// Time for each test of `fsync` and each point of `disk`, at least 10ms.
    #[cfg_attr(test, schemars(with = "Span", extend("default" = "2s")))]
    duration: Option<Spanned<Span>>,
    /// Size of the file that `disk` makes on each storage, and removes.
    #[cfg_attr(test, schemars(schema_with = "super::schema::size", extend("default" = "4GiB")))]
    size: Option<Spanned<String>>,
    /// Block sizes of `fsync`, one probe for each.
    #[cfg_attr(test, schemars(with = "Vec<BlockSize>"))]
    #[cfg_attr(test, schemars(extend("minItems" = 1, "default" = ["8kB"])))]
    block_sizes: Option<Spanned<Vec<BlockSize>>>,
}

/// As `pgdyno fsync --block-size` knows them.
#[derive(Clone, Copy, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum BlockSize {
    #[serde(rename = "8kB")]
    Eight,
    #[serde(rename = "16kB")]
    Sixteen,
}

impl ProbeTable {
    /// Returns the probes of each stage. `given`: the server, and so its storage, is external.
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
                    "`probe` measures the storages that pgdyno makes clusters on, and \
                     `postgres.dsn` names a running server",
                )
                .with_help("probe its directory by itself: `pgdyno fsync DIR`, `pgdyno disk DIR`")
                .at(span));
            }
            Ok(kinds)
        };
        let after_trim = match self.after_trim {
            Some(wanted) if given && *wanted.get_ref() => {
                return Err(Complaint::new(
                    "`probe.after_trim` trims the storages that pgdyno makes clusters on, and \
                     `postgres.dsn` names a running server",
                )
                .with_help("leave it out")
                .at(wanted.span()));
            }
            wanted => wanted.is_some_and(Spanned::into_inner),
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
        let parse = |text: String| text.parse::<Bytes>().map_err(|e| Complaint::new(e.to_string()));
        let size = self.size.map(|size| read_at(size, parse)).transpose()?.unwrap_or(defaults.size);
        let block_bytes = match self.block_sizes {
            Some(sizes) if sizes.get_ref().is_empty() => {
                return Err(Complaint::new("`probe.block_sizes` is empty")
                    .with_help("\"8kB\", \"16kB\" or both")
                    .at(sizes.span()));
            }
            Some(sizes) => {
                let bytes = |size| match size {
                    BlockSize::Eight => 8192,
                    BlockSize::Sixteen => 16384,
                };
                sizes.into_inner().into_iter().map(bytes).collect()
            }
            None => defaults.block_bytes,
        };
        Ok(ProbeStages {
            before: kinds(self.before)?,
            after: kinds(self.after)?,
            after_trim,
            duration,
            size,
            block_bytes,
        })
    }
}
