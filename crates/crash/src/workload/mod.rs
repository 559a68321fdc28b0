//! Loads that are crashed: their tables, their script, and what of them is checked afterwards.
//!
//! Every transaction inserts a row into [`TOKENS`], in one transaction with everything else that it
//! does. So the rows that are there say what all other tables must hold.

mod crash_load;
mod tpcb_like;
mod user_login;

pub(super) use crash_load::{Amount, CrashLoad, LoadedTable};
use pgdyno_model::crash::CrashWorkload;

/// Every transaction leaves one row here, named by its token. The next four columns are its effect.
/// Then come a number from a sequence, which must not be set back, and the time at which it began,
/// which other tables of a load hold too.
pub(super) const TOKENS: &str = "CREATE TABLE pgdyno_token (client int NOT NULL, \
    sequence bigint NOT NULL, aid int NOT NULL, tid int NOT NULL, bid int NOT NULL, \
    delta int NOT NULL, number bigserial, begun timestamp NOT NULL DEFAULT now(), \
    PRIMARY KEY (client, sequence))";

impl CrashLoad {
    /// Returns the load that `workload` names.
    pub(super) fn named(workload: CrashWorkload) -> &'static Self {
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
            let crash = CrashLoad::named(workload);
            Script::parse("ledger", crash.script).unwrap();
            let data = load(crash.data_set, &[]).unwrap().data;
            let loaded: Vec<(&str, u64)> =
                data.tables.iter().map(|t| (t.name.as_str(), data.rows(t, 1, 1))).collect();
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
