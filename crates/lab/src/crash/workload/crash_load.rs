//! The load of crash tests as data: script, tables, amounts and statements.

use pgdyno_durability::EffectKey;
use pgdyno_model::ledger::Effect;

/// The load of crash tests, as SQL.
#[derive(Debug)]
pub(in crate::crash) struct CrashLoad {
    /// The workload whose tables are loaded.
    pub(in crate::crash) data_set: &'static str,
    /// The script, in pgbench's language. It sets `aid`, `tid`, `bid` and `delta` before its first
    /// statement, inserts them with `:client_id` and `:sequence`, and ends with COMMIT.
    pub(in crate::crash) script: &'static str,
    /// Takes back the changes of a round, but for the tokens and the index that it built.
    pub(in crate::crash) reset: &'static str,
    /// Tables whose rows are loaded, and neither added to nor removed.
    pub(in crate::crash) loaded: &'static [LoadedTable],
    /// Amounts that transactions add up.
    pub(in crate::crash) amounts: &'static [Amount],
    /// Rows that are written once more after recovery, with the values that they have: table,
    /// column and condition. They add nothing that a second verification would take for a
    /// transaction.
    pub(in crate::crash) rewritten: &'static [(&'static str, &'static str, &'static str)],
    /// The table that every transaction changes first.
    pub(in crate::crash) changed_first: &'static str,
    /// The table most of whose pages the load changes.
    pub(in crate::crash) changed_most: &'static str,
    /// Statements for a fault that is aimed at VACUUM.
    pub(in crate::crash) vacuum: &'static [&'static str],
    /// Statements for a fault that is aimed at CREATE INDEX. The index is `pgdyno_aim`.
    pub(in crate::crash) create_index: &'static [&'static str],
    /// Takes back all that a transaction of this effect did beside its token, which is gone.
    pub(in crate::crash) take_back: fn(&Effect) -> String,
}

/// A table of the data set, as its workload loads it: with the keys 1, 2, 3, ….
#[derive(Debug)]
pub(in crate::crash) struct LoadedTable {
    pub(in crate::crash) table: &'static str,
    pub(in crate::crash) key: &'static str,
    pub(in crate::crash) rows_per_scale: u64,
    /// A condition that every row meets, whatever load was offered.
    pub(in crate::crash) constant: &'static str,
}

/// Amounts that transactions add to rows of a table.
#[derive(Debug)]
pub(in crate::crash) struct Amount {
    /// The kind of row, as text.
    pub(in crate::crash) holder: &'static str,
    /// Which key of a transaction names the row.
    pub(in crate::crash) key: EffectKey,
    pub(in crate::crash) table: &'static str,
    /// Selects key and amount, both as int8, of the rows whose amount is not 0.
    pub(in crate::crash) sql: &'static str,
    /// Whether a key has one row. Otherwise the amounts of its rows are added up.
    pub(in crate::crash) is_unique: bool,
}
