//! Figures of a report as a store keeps them, apart from what pgdyno measured.

use std::path::Path;

use pgdyno_model::json::Document;
use pgdyno_model::units::Epoch;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::recognise::Recognised;

/// Where figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// From a report that others wrote.
    Imported,
}

/// Figures of one report: pgdyno did not measure them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImportedRun {
    /// Name in the store.
    pub id: String,
    /// Said wherever it is shown.
    pub provenance: Provenance,
    /// The report's file, as it was named.
    pub source: String,
    /// SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
    /// When it was imported.
    #[serde(serialize_with = "pgdyno_text::format::as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub imported_at: Epoch,
    /// The pgdyno that read it.
    pub pgdyno_version: String,
    /// Recognised figures.
    pub recognised: Recognised,
}

impl Document for ImportedRun {
    const SCHEMA: &'static str = "pgdyno.import/1";
}

impl ImportedRun {
    /// Imports the figures of the file `source`, which holds `bytes`, at `at`. The import's name is
    /// made of the file's name, the time, and the beginning of the file's checksum.
    pub fn new(
        source: &str,
        bytes: &[u8],
        recognised: Recognised,
        at: std::time::SystemTime,
    ) -> Self {
        let sha256: String =
            Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let imported_at = Epoch::from_time(at);
        let stem = Path::new(source)
            .file_stem()
            .map(|s| s.to_string_lossy().to_lowercase())
            .unwrap_or_default();
        let stem: String = stem
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .take(24)
            .collect();
        // 2026-11-21T06:48:13Z is 20261121-064813 here.
        let digits: String = imported_at.to_string().chars().filter(char::is_ascii_digit).collect();
        let (date, time) = digits.split_at(digits.len().min(8));
        Self {
            id: format!("import-{stem}-{date}-{time}-{}", &sha256[..4]),
            provenance: Provenance::Imported,
            source: source.to_owned(),
            sha256,
            imported_at,
            pgdyno_version: env!("CARGO_PKG_VERSION").to_owned(),
            recognised,
        }
    }
}
