//! The load of crash tests as data: script, tables, amounts and statements.

use pgdyno_durability::EffectKey;
use pgdyno_model::ledger::Effect;

/// The load of crash tests, as SQL.
#[derive(Debug)]
pub(crate) struct CrashLoad {
    /// The workload whose tables are loaded.
    pub(crate) data_set: &'static str,
    /// The script, in pgbench's language. It sets `aid`, `tid`, `bid` and `delta` before its first
    /// statement, inserts them with `:client_id` and `:sequence`, and ends with COMMIT.
    pub(crate) script: &'static str,
    /// Takes back the changes of a round, but for the tokens and the index that it built.
    pub(crate) reset: &'static str,
    /// Tables whose rows are loaded, and neither added to nor removed.
    pub(crate) loaded: &'static [LoadedTable],
    /// Amounts that transactions add up.
    pub(crate) amounts: &'static [Amount],
    /// Conditions that hold the other tables against the tokens, beside those that the workload
    /// itself has.
    pub(crate) conditions: &'static [Condition],
    /// Rows that are written once more after recovery, with the values that they have: table,
    /// column and condition. They add nothing that a second verification would take for a
    /// transaction.
    pub(crate) rewritten: &'static [(&'static str, &'static str, &'static str)],
    /// The tables that transactions change first, as LOCK TABLE names them. A transaction changes
    /// them in this order.
    pub(crate) changed_first: &'static str,
    /// The table most of whose pages the load changes.
    pub(crate) changed_most: &'static str,
    /// Statements for a fault that is aimed at VACUUM.
    pub(crate) vacuum: &'static [&'static str],
    /// Statements for a fault that is aimed at CREATE INDEX. The index is `pgdyno_aim`.
    pub(crate) create_index: &'static [&'static str],
    /// Takes back all that a transaction of this effect did beside its token, which is gone. None
    /// for a transaction that later ones build upon.
    pub(crate) take_back: fn(&Effect) -> Option<String>,
}

/// A table of the data set, as its workload loads it: with the keys 1, 2, 3, ….
#[derive(Debug)]
pub(crate) struct LoadedTable {
    pub(crate) table: &'static str,
    /// The key of a row: a column, or several as one number, in parentheses.
    pub(crate) key: &'static str,
    /// A column of the primary key and of no other index.
    pub(crate) indexed: &'static str,
    /// A condition that every row meets, whatever load was offered.
    pub(crate) constant: &'static str,
}

/// A condition that holds whenever no transaction is under way.
#[derive(Debug)]
pub(crate) struct Condition {
    /// The condition in words.
    pub(crate) condition: &'static str,
    /// Whether it is asked of every state of a disk: it takes some hundredths of a second.
    pub(crate) is_quick: bool,
    /// Selects how many rows break it, as int8.
    pub(crate) broken: &'static str,
}

/// Amounts that transactions add to rows of a table.
#[derive(Debug)]
pub(crate) struct Amount {
    /// The kind of row, as text.
    pub(crate) holder: &'static str,
    /// Which key of a transaction names the row.
    pub(crate) key: EffectKey,
    pub(crate) table: &'static str,
    /// Selects key and amount, both as int8, of the rows whose amount is not 0.
    pub(crate) sql: &'static str,
    /// Whether a key has one row. Otherwise the amounts of its rows are added up.
    pub(crate) is_unique: bool,
}
