//! Loads that are crashed: their tables, their script, and what of them is checked afterwards.
//!
//! Every transaction inserts a row into [`TOKENS`], in one transaction with everything else that it
//! does. So the rows that are there say what all other tables must hold.

mod tpcb_like;
mod user_login;

use pgdyno_durability::EffectKey;
use pgdyno_model::crash::CrashWorkload;
use pgdyno_model::ledger::Effect;

/// Every transaction leaves one row here, named by its token. The other columns are its effect.
pub(super) const TOKENS: &str = "CREATE TABLE pgdyno_token (client int NOT NULL, sequence bigint NOT NULL, \
    aid int NOT NULL, tid int NOT NULL, bid int NOT NULL, delta int NOT NULL, PRIMARY KEY (client, sequence))";

/// The load of crash tests, as SQL.
#[derive(Debug)]
pub(super) struct CrashLoad {
    /// The workload whose tables are loaded.
    pub(super) data_set: &'static str,
    /// The script, in pgbench's language. It sets `aid`, `tid`, `bid` and `delta` before its first
    /// statement, inserts them with `:client_id` and `:sequence`, and ends with COMMIT.
    pub(super) script: &'static str,
    /// Takes back the changes of a round, but for the tokens and the index that it built.
    pub(super) reset: &'static str,
    /// Tables whose rows are loaded, and neither added to nor removed.
    pub(super) loaded: &'static [LoadedTable],
    /// What transactions add up.
    pub(super) amounts: &'static [Amount],
    /// Rows that are written once more after recovery, with the values that they have: table, column
    /// and condition. Nothing is there afterwards that a second verification would take for a
    /// transaction.
    pub(super) rewritten: &'static [(&'static str, &'static str, &'static str)],
    /// The table that every transaction changes first.
    pub(super) changed_first: &'static str,
    /// The table most of whose pages the load changes.
    pub(super) changed_most: &'static str,
    /// Statements for a fault that is aimed at VACUUM.
    pub(super) vacuum: &'static [&'static str],
    /// Statements for a fault that is aimed at CREATE INDEX. The index is `pgdyno_aim`.
    pub(super) create_index: &'static [&'static str],
    /// Takes back all that a transaction of this effect did beside its token.
    pub(super) take_back: fn(&Effect) -> String,
}

/// A table of the data set, as its workload loads it: with the keys 1, 2, 3, ….
#[derive(Debug)]
pub(super) struct LoadedTable {
    pub(super) table: &'static str,
    pub(super) key: &'static str,
    pub(super) rows_per_scale: u64,
    /// A condition that every row meets, whatever load was offered.
    pub(super) constant: &'static str,
}

/// Amounts that transactions add to rows of a table.
#[derive(Debug)]
pub(super) struct Amount {
    /// The kind of row, as text.
    pub(super) holder: &'static str,
    /// Which key of a transaction names the row.
    pub(super) key: EffectKey,
    pub(super) table: &'static str,
    /// Selects key and amount, both as int8, of the rows whose amount is not 0.
    pub(super) sql: &'static str,
    /// Whether a key has one row. Otherwise the amounts of its rows are added up.
    pub(super) is_unique: bool,
}

impl CrashLoad {
    /// Returns the load that `workload` names.
    pub(super) fn of(workload: CrashWorkload) -> &'static Self {
        match workload {
            CrashWorkload::TpcbLike => &tpcb_like::LOAD,
            CrashWorkload::UserLogin => &user_login::LOAD,
        }
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_dataset::workload::load;
    use pgdyno_engine::script::Script;

    use super::*;

    #[test]
    fn each_load_checks_every_table_that_its_workload_loads() {
        for workload in [CrashWorkload::TpcbLike, CrashWorkload::UserLogin] {
            let crash = CrashLoad::of(workload);
            Script::parse("ledger", crash.script).unwrap();
            let data = load(crash.data_set, &[]).unwrap().data;
            let loaded: Vec<(&str, u64)> =
                data.tables.iter().map(|t| (t.name.as_str(), t.rows_per_scale)).collect();
            let checked: Vec<(&str, u64)> =
                crash.loaded.iter().map(|t| (t.table, t.rows_per_scale)).collect();
            for table in &checked {
                assert!(loaded.contains(table), "{workload}: {table:?} of {loaded:?}");
            }
            let with_rows = loaded.iter().filter(|(_, rows)| *rows > 0).count();
            assert_eq!(with_rows, checked.len(), "{workload}: {loaded:?}");
        }
    }
}
