//! Schemas of the JSON documents of this crate.

use pgdyno_model::json::Document;

use crate::{
    CrashSummary, ImportSummary, Imported, Merged, ProbeSummary, RunSummary, StoreSize, Thinning,
    Verification,
};

macro_rules! documents {
    ($($document:ty => $schema:literal),* $(,)?) => {
        $(impl Document for $document {
            const SCHEMA: &'static str = $schema;
        })*
    };
}

documents! {
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
