//! Schemas of the JSON documents of this crate. [`pgdyno_model::json`] writes them.

pub use pgdyno_model::json::{Document, for_browser, json, json_list};

use super::audit::AuditView;
use super::{CrashView, ReportError};
use crate::analysis::compare_runs::CompareView;
use crate::analysis::host_noise::NoiseView;
use crate::analysis::side_by_side::SideBySideView;
use crate::store::{
    CrashSummary, ImportSummary, Imported, Merged, ProbeSummary, RunSummary, Store, StoreSize,
    Stored, Thinning, Verification,
};
use crate::{RunView, analyse};

macro_rules! documents {
    ($($what:ty => $schema:literal),* $(,)?) => {
        $(impl Document for $what {
            const SCHEMA: &'static str = $schema;
        })*

        /// The schemas of this crate's documents.
        #[cfg(test)]
        const SCHEMAS: &[&str] =
            &[pgdyno_audit::ImportedRun::SCHEMA, pgdyno_model::ProbeRecord::SCHEMA, super::page::SCHEMA, $($schema),*];
    };
}

documents! {
    RunView => "pgdyno.run/1",
    CompareView => "pgdyno.compare/1",
    NoiseView => "pgdyno.noise/1",
    SideBySideView => "pgdyno.beside/1",
    CrashView => "pgdyno.crash/1",
    AuditView<'_> => "pgdyno.audit/1",
    RunSummary => "pgdyno.listed-run/1",
    ProbeSummary => "pgdyno.listed-probe/1",
    CrashSummary => "pgdyno.listed-crash/1",
    ImportSummary => "pgdyno.listed-import/1",
    Verification => "pgdyno.verify/1",
    StoreSize => "pgdyno.store-size/1",
    Thinning => "pgdyno.thinned-run/1",
    Imported => "pgdyno.imported/1",
    Merged => "pgdyno.merged/1",
}

/// Writes a stored result as `pgdyno show --json` prints it.
///
/// # Errors
/// [`ReportError::Store`] or [`ReportError::Render`].
pub fn stored(store: &Store, stored: &Stored) -> Result<String, ReportError> {
    let json = match stored {
        Stored::Run(run) => json(&analyse(store, run)?),
        Stored::Probe(probe) => json(&store.probe(probe)?),
        Stored::Crash(crash) => json(&CrashView::from(&store.crash(crash)?)),
        Stored::Imported(import) => json(&store.import(import)?),
    };
    json.map_err(|source| ReportError::Render { subject: stored.id().to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

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
