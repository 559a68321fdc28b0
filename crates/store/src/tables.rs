//! Describes which rows of which tables belong to a record, and which of their columns are row
//! numbers.
//!
//! Removal, archives and sizes go through this one list, so that a new table is named once.

use rusqlite::Connection;

/// A table with rows of records.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// Condition on the rows of the record `?1`: a run with all of its trials, probes and crash
    /// tests, or one of the others by itself.
    pub(super) of_record: &'static str,
    /// Kind of content in `pgdyno store size`.
    pub(super) content: &'static str,
}

macro_rules! table {
    ($name:literal, $of_record:expr, $content:literal) => {
        Table { name: $name, of_record: $of_record, content: $content }
    };
}

/// Rows that name their run.
const OF_RUN: &str = "run = ?1";

/// Rows that name the trial of a run.
const OF_TRIAL: &str = "trial IN (SELECT id FROM trial WHERE run = ?1)";

/// Tables with rows of records: those that others refer to come first.
pub(super) const TABLES: &[Table] = &[
    table!("run", "id = ?1", "plans and sessions"),
    table!("run_extension", OF_RUN, "plans and sessions"),
    table!("thinning", OF_RUN, "plans and sessions"),
    table!("session", OF_RUN, "plans and sessions"),
    table!(
        "session_end",
        "session IN (SELECT id FROM session WHERE run = ?1)",
        "plans and sessions"
    ),
    table!("trial", OF_RUN, "trials"),
    table!("second", OF_TRIAL, "seconds"),
    table!("second_histogram", OF_TRIAL, "latencies by the second"),
    table!("second_command", OF_TRIAL, "commands by the second"),
    table!("histogram", OF_TRIAL, "histograms"),
    table!("setting", OF_TRIAL, "settings"),
    table!("telemetry", OF_TRIAL, "telemetry"),
    table!(
        "sample",
        "telemetry IN (SELECT id FROM telemetry
                       WHERE trial IN (SELECT id FROM trial WHERE run = ?1))",
        "telemetry"
    ),
    table!("server_log", OF_TRIAL, "server logs"),
    table!("fsync_rate", OF_RUN, "probes"),
    table!("probe_record", "coalesce(run, id) = ?1", "probes"),
    table!("crash_record", "coalesce(run, id) = ?1", "crash tests"),
    table!("imported_run", "id = ?1", "imports"),
];

/// Kinds of row numbers, each counted by itself in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Numbers {
    Session,
    Trial,
    Telemetry,
    Extension,
    Thinning,
    FsyncRate,
}

impl Numbers {
    pub(super) const ALL: [(Self, &'static str); 6] = [
        (Self::Session, "session"),
        (Self::Trial, "trial"),
        (Self::Telemetry, "telemetry"),
        (Self::Extension, "run_extension"),
        (Self::Thinning, "thinning"),
        (Self::FsyncRate, "fsync_rate"),
    ];

    /// Returns the kind of row number in a column of `table`; none for a column that holds
    /// something else.
    fn of_column(table: &str, column: &str) -> Option<Self> {
        match (table, column) {
            (_, "session") => Some(Self::Session),
            (_, "trial") => Some(Self::Trial),
            ("sample", "telemetry") => Some(Self::Telemetry),
            (_, "id") => Self::ALL.into_iter().find(|(_, name)| *name == table).map(|(n, _)| n),
            _ => None,
        }
    }

    /// Returns the kind of row number that keys the seals of a table; none where names do.
    pub(super) fn of_seal(part: &str) -> Option<Self> {
        match part {
            "second" | "second_histogram" | "second_command" | "histogram" | "setting"
            | "telemetry" | "sample" | "server_log" => Some(Self::Trial),
            "session_end" => Some(Self::Session),
            own => Self::of_column(own, "id"),
        }
    }
}

/// A column, and the kind of row number that it holds.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) numbers: Option<Numbers>,
}

/// Returns the stored columns of a table, without those that SQLite computes, and the columns of
/// its primary key in order.
pub(super) fn columns(
    connection: &Connection,
    table: &str,
) -> rusqlite::Result<(Vec<Column>, Vec<String>)> {
    let mut statement =
        connection.prepare_cached("SELECT name, pk FROM pragma_table_info(?) ORDER BY cid")?;
    let found: Vec<(String, i64)> = statement
        .query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut keys: Vec<&(String, i64)> = found.iter().filter(|(_, pk)| *pk > 0).collect();
    keys.sort_by_key(|(_, pk)| *pk);
    let keys = keys.into_iter().map(|(name, _)| name.clone()).collect();
    let column =
        |(name, _): (String, i64)| Column { numbers: Numbers::of_column(table, &name), name };
    Ok((found.into_iter().map(column).collect(), keys))
}
