//! Helpers of the tests on a real server.

pub(crate) mod attacks;
pub(crate) mod disks;
pub(crate) mod leftovers;
pub(crate) mod stacks;
pub(crate) mod tracer;

use pgdyno_postgres::Install;
use pgdyno_storage::StorageError;
use pgdyno_test_support::skip;
pub(crate) use pgdyno_test_support::{Place, RUN, traces};

/// Returns the machine's PostgreSQL, or else a fetched one.
pub(crate) fn install() -> Install {
    pgdyno_test_support::install(None)
}

/// Whether `error` says that this machine lacks what a storage takes: then `test` is said to be
/// skipped, past the test runner, which captures what passing tests print.
pub(crate) fn is_lacking(test: &str, error: &StorageError) -> bool {
    let lacking = matches!(
        error,
        StorageError::NotRoot { .. }
            | StorageError::ToolMissing { .. }
            | StorageError::Fuse { .. }
            | StorageError::Filesystem { .. }
    );
    if lacking {
        let cause = std::error::Error::source(error).map_or_else(String::new, |c| format!(": {c}"));
        skip(test, &format!("{error}{cause}"));
    }
    lacking
}
