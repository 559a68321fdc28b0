//! Tables with rows of records, and the columns that each stores.
//!
//! Seals, copies, removal and sizes go through this one list, so that a new table is named once.
//! Columns are read from the schema, which [`super::schema`] holds against the migrations.

use rusqlite::Connection;

/// Table with rows of records.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    rows: Rows,
    /// Content that takes the room, for `pgdyno store size`.
    pub(super) content: &'static str,
}

/// How the rows of a table belong to a record.
#[derive(Debug)]
enum Rows {
    /// Each row is sealed by itself.
    Own {
        /// Column of its key.
        key: &'static str,
        /// Condition on the rows of the record `?1`: a run with all of its trials, probes and crash
        /// tests, or one of the others by itself.
        of_record: &'static str,
    },
    /// The rows of a trial are sealed together. Condition on them; `?1` stands for trials.
    OfTrial(&'static str),
}

const fn own(name: &'static str, of_record: &'static str, content: &'static str) -> Table {
    Table { name, rows: Rows::Own { key: "id", of_record }, content }
}

const fn of_trial(name: &'static str, content: &'static str) -> Table {
    Table { name, rows: Rows::OfTrial("trial IN (?1)"), content }
}

/// Rows that name their run.
const OF_RUN: &str = "run = ?1";

/// Rows that may name a run. Two conditions, each with an index that reports use.
const OF_RUN_OR_ALONE: &str = "(run = ?1 OR (id = ?1 AND run IS NULL))";

const PLANS: &str = "plans and sessions";

/// Content of tables that are not copied with a record.
pub(super) const THE_STORES_OWN: &str = "the store's own";

/// All tables with a seal. Those that others refer to come first.
pub(super) static TABLES: [Table; 20] = [
    own("run", "id = ?1", PLANS),
    own("run_extension", OF_RUN, PLANS),
    own("thinning", OF_RUN, PLANS),
    own("session", OF_RUN, PLANS),
    Table {
        name: "session_end",
        rows: Rows::Own {
            key: "session",
            of_record: "session IN (SELECT id FROM session WHERE run = ?1)",
        },
        content: PLANS,
    },
    own("trial", OF_RUN, "trials"),
    of_trial("second", "seconds"),
    of_trial("second_histogram", "latencies by the second"),
    of_trial("second_command", "commands by the second"),
    of_trial("histogram", "histograms"),
    of_trial("setting", "settings"),
    of_trial("telemetry", "telemetry"),
    Table {
        name: "sample",
        rows: Rows::OfTrial("telemetry IN (SELECT id FROM telemetry WHERE trial IN (?1))"),
        content: "telemetry",
    },
    of_trial("server_log", "server logs"),
    own("fsync_rate", OF_RUN, "probes"),
    own("probe_record", OF_RUN_OR_ALONE, "probes"),
    own("crash_record", OF_RUN_OR_ALONE, "crash tests"),
    own("imported_run", "id = ?1", "imports"),
    own("arrival", "record = ?1", THE_STORES_OWN),
    own("removal", "?1 = 'removals'", THE_STORES_OWN),
];

/// Tables with rows that belong to a record wherever it is copied to.
pub(super) fn of_records() -> impl DoubleEndedIterator<Item = &'static Table> {
    TABLES.iter().filter(|table| table.content != THE_STORES_OWN)
}

/// The sealed table of a name.
pub(super) fn named(name: &str) -> rusqlite::Result<&'static Table> {
    let unknown = || rusqlite::Error::InvalidParameterName(name.to_owned());
    TABLES.iter().find(|table| table.name == name).ok_or_else(unknown)
}

impl Table {
    /// Column by which each row is sealed; none where rows are sealed with their trial.
    pub(super) fn key(&self) -> Option<&'static str> {
        match self.rows {
            Rows::Own { key, .. } => Some(key),
            Rows::OfTrial(_) => None,
        }
    }

    /// Condition on the rows of the record `?1`.
    pub(super) fn of_record(&self) -> String {
        match self.rows {
            Rows::Own { of_record, .. } => of_record.to_owned(),
            Rows::OfTrial(rows) => rows.replace("?1", "SELECT id FROM trial WHERE run = ?1"),
        }
    }

    /// Condition on the rows that one seal of the key `?1` covers.
    pub(super) fn of_key(&self) -> String {
        match self.rows {
            Rows::Own { key, .. } => format!("{key} = ?1"),
            Rows::OfTrial(rows) => rows.to_owned(),
        }
    }

    /// Stored columns in the schema's order, and those of the primary key in the key's. Columns
    /// that SQLite computes are not among them.
    fn lists(&self, connection: &Connection) -> rusqlite::Result<(String, String)> {
        connection
            .prepare_cached(
                "SELECT group_concat(name, ', ' ORDER BY cid),
                        group_concat(name, ', ' ORDER BY pk) FILTER (WHERE pk > 0)
                 FROM pragma_table_info(?)",
            )?
            .query_row([self.name], |row| row.try_into())
    }

    /// Stored columns in the schema's order.
    pub(super) fn columns(&self, connection: &Connection) -> rusqlite::Result<Vec<String>> {
        Ok(self.lists(connection)?.0.split(", ").map(str::to_owned).collect())
    }

    /// Query of the stored columns of the rows that meet `condition`, in the order of their key.
    pub(super) fn select(
        &self,
        connection: &Connection,
        condition: &str,
    ) -> rusqlite::Result<String> {
        let (columns, key) = self.lists(connection)?;
        Ok(format!("SELECT {columns} FROM {} WHERE {condition} ORDER BY {key}", self.name))
    }
}

/// The table whose rows an integer in a column of `table` numbers; none for other columns.
pub(super) fn numbered_by(table: &'static str, column: &str) -> Option<&'static str> {
    match column {
        "id" => Some(table),
        other => ["session", "trial", "telemetry"].into_iter().find(|name| *name == other),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::migrate::MIGRATIONS;

    #[test]
    fn each_table_of_the_schema_is_sealed_but_the_seals() {
        let connection = Connection::open_in_memory().unwrap();
        MIGRATIONS.iter().for_each(|script| connection.execute_batch(script).unwrap());
        let mut known: BTreeSet<String> =
            TABLES.iter().map(|table| table.name.to_owned()).collect();
        known.extend(["seal", "unsealed"].map(str::to_owned));
        let found: BTreeSet<String> = connection
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(found, known);
    }
}
