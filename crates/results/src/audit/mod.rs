//! Benchmark reports that others wrote: what they hold, whether their figures agree with each
//! other, what they cannot show.
//!
//! Pure: bytes in, an [`Audit`] out. A document is read as lines; recognisers find figures in them;
//! rules judge what was found. Nothing is concluded from what was not recognised, and tolerances
//! come from the digits that were printed.

mod document;
mod figure;
mod recognise;
mod rules;

use std::path::{Path, PathBuf};

use pgdyno_model::units::Epoch;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

pub use figure::Figure;
pub use recognise::{
    CpuLine, DeviceLine, FsyncLine, Meaning, PgbenchRun, Progress, Recognised, Row, Script,
    Setting, Statement, StorageFact, StorageWhat, SysbenchRun, Table,
};
pub use rules::rules;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// A conclusion rests on less than it seems to.
    Warning,
    /// Figures contradict each other, or what was measured was not durable.
    Serious,
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sure {
    /// There may be another reason.
    Possible,
    /// It rests on an assumption that its message names.
    Likely,
    /// It follows from what is printed.
    Certain,
}

/// Something that a rule found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// How sure it is.
    pub sure: Sure,
    /// The line that it stands on, from 1: the first of `lines`.
    pub line: usize,
    /// All lines that it stands on.
    pub lines: Vec<usize>,
    /// What stands on `line`.
    pub quoted: String,
    /// What was found.
    pub message: String,
    /// The figures that were computed, by name.
    pub computed: Value,
}

/// Something that a rule looked at and found right.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// The rule's name.
    pub rule: &'static str,
    /// The first of `lines`.
    pub line: usize,
    /// The lines that it stands on, from 1.
    pub lines: Vec<usize>,
    /// What was checked.
    pub message: String,
    /// The figures that were computed, by name.
    pub computed: Value,
}

/// A line that seems to hold a figure that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotUnderstood {
    /// The line, from 1.
    pub line: usize,
    /// What stands there.
    pub quoted: String,
    /// Why it could not be read.
    pub why: String,
}

/// All there is to say of one report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Audit {
    /// What was found, the most serious first.
    pub findings: Vec<Finding>,
    /// What was checked and is right.
    pub checked: Vec<Checked>,
    /// What was recognised.
    pub recognised: Recognised,
    /// What was not.
    pub not_understood: Vec<NotUnderstood>,
}

/// Why a file could not be audited.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The file could not be read.
    #[error("cannot read the report {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is no text.
    #[error("cannot audit {}: it is no text", path.display())]
    NoText {
        /// The file.
        path: PathBuf,
    },
}

impl AuditError {
    /// What the user can do about it, where there is something.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Read { .. } => None,
            Self::NoText { .. } => Some(
                "save the report as text, Markdown or HTML; archives and PDF are not read".into(),
            ),
        }
    }
}

impl Audit {
    /// Audits the report that `bytes` hold; none if they are no text. What `name` ends in says what
    /// the text does not: that it is HTML.
    #[must_use]
    pub fn of(name: &str, bytes: &[u8]) -> Option<Self> {
        let document = document::Document::read(name, bytes)?;
        let (evidence, mut not_understood) = recognise::recognise(&document);
        if document.garbled {
            let why = "not all of it is UTF-8: what is not shows as \u{fffd}".to_owned();
            not_understood.insert(0, NotUnderstood { line: 1, quoted: String::new(), why });
        }
        let (mut findings, checked) = rules::judge(&evidence);
        for finding in &mut findings {
            document.quote(finding.line).clone_into(&mut finding.quoted);
        }
        Some(Self { findings, checked, recognised: evidence.recognised, not_understood })
    }

    /// Whether anything found is serious.
    #[must_use]
    pub fn is_serious(&self) -> bool {
        self.findings.iter().any(|f| f.severity == Severity::Serious)
    }
}

impl Recognised {
    /// Whether nothing was recognised.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether there is a figure to keep: settings alone are none.
    #[must_use]
    pub fn has_figures(&self) -> bool {
        !(self.runs.is_empty()
            && self.sysbench.is_empty()
            && self.tables.is_empty()
            && self.fsync.is_empty()
            && self.devices.is_empty())
    }

    /// What was recognised, in words: `2 pgbench reports, 19 lines of pg_test_fsync`.
    #[must_use]
    pub fn summary(&self) -> String {
        let of_sysbench: usize = self.sysbench.iter().map(|r| r.progress.len()).sum();
        let progress = self.runs.iter().map(|r| r.progress.len()).sum::<usize>() + of_sysbench;
        let of_scripts =
            |r: &PgbenchRun| r.scripts.iter().map(|s| s.statements.len()).sum::<usize>();
        let statements = self.runs.iter().map(|r| r.statements.len() + of_scripts(r)).sum();
        let parts = [
            (self.runs.len(), "pgbench report", "pgbench reports"),
            (self.sysbench.len(), "sysbench report", "sysbench reports"),
            (progress, "progress line", "progress lines"),
            (statements, "statement latency", "statement latencies"),
            (self.tables.len(), "table", "tables"),
            (self.fsync.len(), "line of pg_test_fsync", "lines of pg_test_fsync"),
            (self.cpus.len() + self.devices.len(), "line of iostat", "lines of iostat"),
            (self.settings.len(), "setting", "settings"),
            (self.storage.len(), "fact on storage", "facts on storage"),
        ];
        let words: Vec<String> = parts
            .iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many }))
            .collect();
        if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
    }
}

/// Where figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// From a report that others wrote.
    Imported,
}

/// What was imported from one report: figures that pgdyno did not measure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImportedRun {
    /// Its name in the store.
    pub id: String,
    /// Said wherever it is shown.
    pub provenance: Provenance,
    /// The report's file, as it was named.
    pub source: String,
    /// SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
    /// When it was imported.
    #[serde(serialize_with = "crate::analysis::as_text")]
    pub imported_at: Epoch,
    /// The pgdyno that read it.
    pub pgdyno_version: String,
    /// What was recognised in it.
    pub recognised: Recognised,
}

impl ImportedRun {
    /// What was recognised in the file `source`, which holds `bytes`, imported at `at`. Its name
    /// says the file's, the time, and how the file's checksum begins.
    #[must_use]
    pub fn new(
        source: &str,
        bytes: &[u8],
        recognised: Recognised,
        at: std::time::SystemTime,
    ) -> Self {
        let sha256: String =
            Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let imported_at = Epoch::of(at);
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
