//! Workloads: a folder with a `workload.toml`, its SQL and its scripts; built in, or the user's
//! own.

mod file;

use std::collections::BTreeMap;
use std::path::PathBuf;

use pgdyno_engine::copy::Families;
use pgdyno_model::{Advice, ClientGroup, FailureKind, Pauses};
use serde::Deserialize;
use thiserror::Error;

use file::{load_folder, read_script};

use crate::built_in::WORKLOADS;
use crate::column_spec::ColumnSpec;

/// A workload, read whole: its tables, its scripts, and SQL around trials.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Name or folder by which it was loaded.
    pub name: String,
    /// Description in a sentence.
    pub description: String,
    /// Tables that the workload works on.
    pub data: DataSet,
    /// Scripts with their weights.
    pub scripts: Vec<ScriptText>,
    /// Groups of clients that the scripts are divided among, in order; empty where all clients run
    /// all scripts.
    pub groups: Vec<ClientGroup>,
    /// Name of the script whose transactions are the figure of merit; none: all transactions.
    pub headline: Option<String>,
    /// Number that multiplies the pauses of its scripts unless a load says otherwise; 0: none.
    pub pauses: f64,
    /// Values of variables that its scripts use, as text, unless a load defines them otherwise.
    pub define: BTreeMap<String, String>,
    /// SQL that runs before every trial, one statement each.
    pub between: Vec<String>,
    /// Query for the rows that acknowledged transactions left in the database, where there is one.
    pub count: Option<Count>,
    /// Conditions that hold whenever no transaction is under way: those of the workload whose data
    /// it has come first.
    pub consistency: Vec<Consistency>,
}

impl Workload {
    /// Whether a script of it has pauses.
    pub fn has_pauses(&self) -> bool {
        self.scripts.iter().any(|script| !script.pauses.is_empty())
    }
}

/// Tables, and the rows that they begin with.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSet {
    /// The workload that describes the data set: workloads may share one.
    pub name: String,
    /// SQL that makes the tables.
    pub schema: String,
    /// SQL that runs once the tables are there, before their rows: what other engines want said of
    /// a table. The rows are then loaded without FREEZE.
    pub after_schema: String,
    /// SQL that runs after the rows are loaded and have their primary keys: indexes, sequences.
    pub keys: String,
    /// Tables to fill, in order.
    pub tables: Vec<TableSpec>,
    /// Room that one unit of scale takes, indexes included (bytes).
    pub bytes_per_scale: u64,
}

impl DataSet {
    /// Returns the rows of `table` at `scale` (count); `seed` draws those of children.
    pub fn rows(&self, table: &TableSpec, scale: u32, seed: u64) -> u64 {
        match &table.rows {
            TableRows::PerScale(rows) => rows * u64::from(scale),
            TableRows::Fixed(rows) => *rows,
            TableRows::Children(families) => {
                let parents = self.tables.iter().find(|table| table.name == families.parents);
                let parents = parents.map_or(0, |parents| self.rows(parents, scale, seed));
                families.children(seed, parents)
            }
        }
    }

    /// Returns the names of all tables that its schema makes, filled or not.
    pub fn table_names(&self) -> Vec<&str> {
        // `%I` of a function's format() is no name.
        let is_between = |c: char| !c.is_alphanumeric() && !['_', '.', '%'].contains(&c);
        let sql = [&self.schema, &self.after_schema].into_iter();
        let words = sql.flat_map(|sql| sql.split(is_between));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let follows = |at: usize| {
            let optional = ["if", "not", "exists"];
            words[at..].iter().find(|word| !optional.iter().any(|o| word.eq_ignore_ascii_case(o)))
        };
        let kinds = ["create", "unlogged"];
        (1..words.len())
            .filter(|&at| words[at].eq_ignore_ascii_case("table"))
            .filter(|&at| kinds.iter().any(|kind| words[at - 1].eq_ignore_ascii_case(kind)))
            .filter_map(|at| follows(at + 1).copied())
            .filter(|name| !name.starts_with('%'))
            .collect()
    }
}

/// One table to fill.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSpec {
    /// Name of the table.
    pub name: String,
    /// Number of rows.
    pub rows: TableRows,
    /// The columns that are filled.
    pub columns: Vec<ColumnSpec>,
    /// The columns of the primary key, which is built after the rows are there. Empty if the table
    /// has none, or if its schema makes it.
    pub primary_key: Vec<String>,
    /// The column by whose ranges the table may be partitioned: one filled with the row's number.
    pub partition_by: Option<String>,
    /// Maintenance after the table is filled.
    pub tidy: Tidy,
}

/// Rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableRows {
    /// So many for one unit of scale (count).
    PerScale(u64),
    /// So many at any scale (count).
    Fixed(u64),
    /// Children of another table's rows.
    Children(Families),
}

/// Maintenance of a table after it is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tidy {
    /// `VACUUM (ANALYZE)`, with FREEZE where its rows are not frozen already.
    #[default]
    Vacuum,
    /// `ANALYZE`.
    Analyze,
    /// Nothing.
    Nothing,
}

/// A script of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptText {
    /// Name of the script: the file's stem.
    pub name: String,
    /// Text of the script, as the file has it.
    pub text: String,
    /// Weight among the workload's scripts.
    pub weight: u32,
    /// Pauses of a client around its transactions, for [`Workload::pauses`] of one.
    pub pauses: Pauses,
    /// The file that the script was read from; none for a built-in script.
    pub file: Option<PathBuf>,
}

/// A query that counts rows, of which every acknowledged transaction adds so many.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// SQL with one bigint as its result.
    pub query: String,
    /// Rows that a transaction adds (count).
    pub rows_per_transaction: u32,
}

/// A condition that holds whenever no transaction is under way.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consistency {
    /// The condition in words.
    pub condition: String,
    /// SQL with one bigint as its result: rows that break the condition (count).
    pub broken: String,
}

/// A workload that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum WorkloadError {
    /// Neither built in nor a folder.
    #[error(
        "cannot load workload `{name}`: there is no built-in workload and no folder of that name"
    )]
    NoSuch {
        /// The name that was given.
        name: String,
        /// The built-in ones, nearest first.
        known: Vec<String>,
    },
    /// A file of the workload is missing or wrong.
    #[error("cannot load workload `{workload}`: {file}: {found}")]
    File {
        workload: String,
        file: String,
        /// The error in the file.
        found: String,
    },
}

impl WorkloadError {
    fn file(workload: &str, file: &str, found: String) -> Self {
        Self::File { workload: workload.into(), file: file.into(), found }
    }
}

impl Advice for WorkloadError {
    fn help(&self) -> Option<String> {
        match self {
            Self::NoSuch { known, .. } => Some(format!(
                "built in are {}; a folder of your own is named with a slash (`./name`) and holds \
                 a workload.toml",
                known.join(", ")
            )),
            Self::File { .. } => None,
        }
    }

    fn kind(&self) -> FailureKind {
        FailureKind::Input
    }
}

/// The built-in workloads.
pub fn names() -> Vec<&'static str> {
    WORKLOADS.iter().map(|(name, _)| *name).collect()
}

/// Reads workload `name`; `scripts` of the user's take the place of its own.
///
/// # Errors
/// There is no such workload, or a file of it is missing or wrong.
pub fn load(name: &str, scripts: &[(PathBuf, u32)]) -> Result<Workload, WorkloadError> {
    let mut workload = load_folder(name, 0)?;
    if !scripts.is_empty() {
        if !workload.groups.is_empty() {
            let found = "its groups of clients have scripts of their own, which yours cannot \
                         replace: name a folder with both";
            return Err(WorkloadError::file(name, "workload.toml", found.into()));
        }
        workload.headline = None;
        workload.scripts = scripts
            .iter()
            .map(|(path, weight)| read_script(name, path, *weight))
            .collect::<Result<_, _>>()?;
        // What the user's scripts add, only the user knows.
        workload.count = None;
    }
    Ok(workload)
}

#[cfg(test)]
mod tests;
