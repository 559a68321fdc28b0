//! Schemas of the JSON documents of this crate. [`pgdyno_model::json`] writes them.

pub use pgdyno_model::json::{Document, for_browser, json, json_list};

use super::audit::AuditView;
use super::{CompareReport, CrashView, ReportError, RunReport, SideBySideReport};
use pgdyno_store::{Store, Stored};

impl Document for RunReport {
    const SCHEMA: &'static str = "pgdyno.run/1";
}

impl Document for CompareReport {
    const SCHEMA: &'static str = "pgdyno.compare/1";
}

impl Document for SideBySideReport<'_> {
    const SCHEMA: &'static str = "pgdyno.beside/1";
}

impl Document for CrashView {
    const SCHEMA: &'static str = "pgdyno.crash/1";
}

impl Document for AuditView<'_> {
    const SCHEMA: &'static str = "pgdyno.audit/1";
}

/// Writes a stored result as `pgdyno show --json` prints it.
///
/// # Errors
/// [`ReportError::Store`] or [`ReportError::Render`].
pub fn stored(store: &Store, stored: &Stored) -> Result<String, ReportError> {
    let json = match stored {
        Stored::Run(run) => json(&RunReport::read(store, run)?),
        Stored::Probe(probe) => json(&store.probe(probe)?),
        Stored::Crash(crash) => json(&CrashView::from(&store.crash(crash)?)),
        Stored::Imported(import) => json(&store.import(import)?),
    };
    json.map_err(|source| ReportError::Render { subject: stored.id().to_owned(), source })
}

#[cfg(test)]
mod tests {
    use pgdyno_analysis::host_noise::NoiseView;
    use pgdyno_audit::ImportedRun;
    use pgdyno_model::ProbeRecord;
    use pgdyno_store::{
        CrashSummary, ImportSummary, Imported, Merged, ProbeSummary, RunSummary, StoreSize,
        Thinning, Verification,
    };

    use super::*;

    /// The schemas of this crate's documents, and of those of the crates below it.
    const SCHEMAS: &[&str] = &[
        AuditView::SCHEMA,
        CompareReport::SCHEMA,
        CrashSummary::SCHEMA,
        CrashView::SCHEMA,
        ImportSummary::SCHEMA,
        Imported::SCHEMA,
        ImportedRun::SCHEMA,
        Merged::SCHEMA,
        NoiseView::SCHEMA,
        ProbeRecord::SCHEMA,
        ProbeSummary::SCHEMA,
        RunReport::SCHEMA,
        RunSummary::SCHEMA,
        SideBySideReport::SCHEMA,
        StoreSize::SCHEMA,
        Thinning::SCHEMA,
        Verification::SCHEMA,
        crate::page::SCHEMA,
    ];

    #[test]
    fn each_schema_has_a_name_of_its_own_that_the_docs_list() {
        let docs =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md"))
                .unwrap();
        for (n, schema) in SCHEMAS.iter().enumerate() {
            assert!(!SCHEMAS[..n].contains(schema), "{schema} twice");
            assert!(docs.contains(&format!("| `{schema}` |")), "docs/json.md lacks {schema}");
        }
    }
}
