//! Flush accounting beside a trial: each commit is judged by the flushes of the emulated disk under
//! pg_wal.
//!
//! [`FlushAccounting::begin`] has the disk publish its flushes, unless commits of this trial wait
//! for none. The clients of the load read them ([`FlushAccounting::flushes`]), and
//! [`FlushAccounting::finish`] notes why nothing was judged. Dropping it ends the publishing.

use crate::error::LabError;
use pgdyno_emulated_disk::{Control, DiskServer};
use pgdyno_engine::{DiskFlushes, WeightedScript};
use pgdyno_model::{Measurement, NotJudged};

use super::server::Server;
use pgdyno_provision::BenchError;
use pgdyno_provision::sql::{query_number, query_text};

/// Selects the first relation whose changes may wait for no flush; empty if there is none.
const NOT_LOGGED: &str = "SELECT coalesce((SELECT c.oid::pg_catalog.regclass::text \
                          FROM pg_catalog.pg_class c \
                          JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                          WHERE n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' \
                          AND (c.relkind = 'f' OR c.relkind IN ('r', 'p') \
                          AND c.relpersistence = 'u' \
                          OR c.relkind = 'v' AND c.relhastriggers) ORDER BY 1 LIMIT 1), '')";

/// Selects 1 if the session's commits wait for no flush, else 0.
const IS_ASYNCHRONOUS: &str =
    "SELECT (pg_catalog.current_setting('synchronous_commit') = 'off')::int::bigint";

/// Flush accounting of one trial.
pub(super) enum FlushAccounting {
    /// The experiment does not ask for it.
    Off,
    /// No commit of this trial is judged.
    NotJudged(NotJudged),
    /// A disk publishes its flushes.
    On {
        /// The connection to the disk.
        disk: Control,
        flushes: DiskFlushes,
    },
}

impl FlushAccounting {
    /// Begins the accounting of a load of `scripts` on `server`, whose WAL lies on `disk`. Without
    /// a disk the accounting is off.
    ///
    /// # Errors
    /// The server or the disk does not answer.
    pub(super) fn begin(
        disk: Option<&DiskServer>,
        server: &Server,
        scripts: &[WeightedScript],
    ) -> Result<Self, BenchError> {
        let Some(disk) = disk else { return Ok(Self::Off) };
        if let Some(reason) = not_judged(server, scripts)? {
            return Ok(Self::NotJudged(reason));
        }
        let mut control = disk.control()?;
        control.publish_flushes(true)?;
        let path = disk.flushes();
        let flushes =
            DiskFlushes::open(&path).map_err(|source| LabError::Flushes { path, source })?;
        Ok(Self::On { disk: control, flushes })
    }

    /// Returns the flushes that the load's clients read.
    pub(super) fn flushes(&self) -> Option<DiskFlushes> {
        match self {
            Self::On { flushes, .. } => Some(flushes.clone()),
            Self::Off | Self::NotJudged(_) => None,
        }
    }

    /// Notes in `measurement` why no commit was judged.
    pub(super) fn finish(&self, measurement: &mut Measurement) {
        if let Self::NotJudged(reason) = self {
            let account = measurement.counters.flush_accounting.get_or_insert_default();
            account.not_judged = Some(reason.clone());
        }
    }
}

impl Drop for FlushAccounting {
    fn drop(&mut self) {
        if let Self::On { disk, .. } = self {
            // A disk that is gone publishes nothing.
            let _ = disk.publish_flushes(false);
        }
    }
}

/// Returns why no commit of `scripts` is judged; none if commits are judged.
fn not_judged(
    server: &Server,
    scripts: &[WeightedScript],
) -> Result<Option<NotJudged>, BenchError> {
    for WeightedScript { script, .. } in scripts {
        let texts = || {
            script.commands.iter().filter(|c| c.op.is_statement()).map(|c| c.text.to_lowercase())
        };
        if texts().any(|text| text.contains("synchronous_commit")) {
            return Ok(Some(NotJudged::ScriptSetsIt(script.name.clone())));
        }
        if texts().any(|text| uses_temporary_tables(&text)) {
            return Ok(Some(NotJudged::TemporaryTables(script.name.clone())));
        }
    }
    let mut client = server.connect_to_data()?;
    if query_number(&mut client, "read synchronous_commit", IS_ASYNCHRONOUS)? == 1 {
        return Ok(Some(NotJudged::Asynchronous));
    }
    let relation = query_text(&mut client, "look for unlogged tables", NOT_LOGGED)?;
    Ok((!relation.is_empty()).then_some(NotJudged::NotLogged(relation)))
}

/// Returns whether a statement, in lower case, makes a temporary table or names the schema of
/// temporary tables.
fn uses_temporary_tables(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let makes = words.windows(2).any(|pair| {
        matches!(pair[0], "create" | "local" | "global" | "into")
            && matches!(pair[1], "temp" | "temporary")
    });
    makes || text.contains("pg_temp")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_tables_are_told_from_columns_of_such_a_name() {
        assert!(uses_temporary_tables("create temp table t (a int)"));
        assert!(uses_temporary_tables("create local temporary table t as select 1"));
        assert!(uses_temporary_tables("select 1 into temp t"));
        assert!(uses_temporary_tables("insert into pg_temp.t values (1)"));
        assert!(!uses_temporary_tables("update sensor set temp = 3 where temporary"));
    }
}
