//! Loads that are crashed: their tables, their script, and what of them is checked afterwards.
//!
//! Every transaction inserts a row into [`TOKENS`], in one transaction with everything else that it
//! does. So the rows that are there say what all other tables must hold.

mod crash_load;
mod tpcb_like;
mod tprocc;
mod user_login;

pub(super) use crash_load::{Amount, CrashLoad, LoadedTable};
use pgdyno_dataset::workload::{self, Workload, WorkloadError};
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
            CrashWorkload::Tprocc => &tprocc::LOAD,
        }
    }

    /// Reads the workload whose tables the load changes.
    ///
    /// # Errors
    /// There is no such workload.
    pub(super) fn workload(&self) -> Result<Workload, WorkloadError> {
        workload::load(self.data_set, &[])
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_engine::script::Script;

    use super::*;

    #[test]
    fn each_load_checks_every_table_that_its_workload_loads() {
        for workload in CrashWorkload::ALL {
            let crash = CrashLoad::named(*workload);
            Script::parse("ledger", crash.script).unwrap();
            let Workload { data, consistency, .. } = crash.workload().unwrap();
            let has_rows = |name: &str| {
                data.tables.iter().any(|table| table.name == name && data.rows(table, 1, 1) > 0)
            };
            for LoadedTable { table, .. } in crash.loaded {
                assert!(has_rows(table), "{workload}: {table}");
            }
            // Conditions look at the tables that transactions add rows to or remove rows from.
            let own = crash.conditions.iter().map(|condition| condition.broken);
            let conditions: Vec<&str> =
                own.chain(consistency.iter().map(|condition| condition.broken.as_str())).collect();
            let is_checked = |name: &str| {
                crash.loaded.iter().any(|loaded| loaded.table == name)
                    || conditions.iter().any(|broken| broken.contains(name))
            };
            for table in data.tables.iter().filter(|table| has_rows(&table.name)) {
                assert!(is_checked(&table.name), "{workload}: {}", table.name);
            }
        }
    }

    #[test]
    fn a_load_waits_for_locks_of_tables_that_it_has() {
        for workload in CrashWorkload::ALL {
            let crash = CrashLoad::named(*workload);
            let data = crash.workload().unwrap().data;
            for table in crash.changed_first.split(", ") {
                assert!(data.table_names().contains(&table), "{workload}: {table}");
            }
        }
    }
}
