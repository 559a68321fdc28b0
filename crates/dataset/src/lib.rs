//! Workloads and their data sets: folders of SQL and scripts, generated rows, bulk load.
//!
//! A workload is a folder with a `workload.toml`, SQL that makes tables and keys, and scripts.
//! [`workload::load`] reads a built-in one by its name or a user's own by its path.
//! [`bulk_load()`] then fills the tables of its data set: rows are generated in the process and
//! streamed by binary COPY over several connections; primary keys are built after the rows; VACUUM
//! and ANALYZE come last. The strategy ([`LoadStrategy`]) depends on tables and cores.
//!
//! A load is restartable. It notes each complete piece in a table `pgdyno_load` in the same
//! transaction, so that a load that was interrupted continues when it is begun again. Comments on
//! its tables tell pgdyno's tables from others: [`Existing::ReplaceOurs`] drops only pgdyno's.
//!
//! While a load runs, scripts add rows to its tables by `\copyfrom`: [`growing_tables`] asks the
//! server what it has to know for that.
//!
//! Because scripts may run commands, [`trust`] judges whose files root takes commands from.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//! use pgdyno_dataset::{BulkLoad, bulk_load, workload};
//! use pgdyno_model::experiment::Loading;
//! use pgdyno_model::progress::Silent;
//! use pgdyno_model::target::{Address, Target};
//!
//! let data = workload::load("tpcb-like", &[])?.data;
//! let loading = Loading::default();
//! let load = BulkLoad::new(&data, 10, 1, &loading);
//! let address = Address::Tcp { host: "localhost".into(), port: 5432 };
//! let target = Target::new(address, "postgres", "bench");
//! let result = bulk_load(&load, &target, &Silent, &AtomicBool::new(false))?;
//! println!("{} rows in {:?}", result.rows, result.took);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod built_in;
mod bulk_load;
pub mod column_spec;
mod column_table;
mod columns;
mod error;
mod growing;
mod key_settings;
mod load_progress;
mod loader;
mod pieces;
mod room;
mod schema;
pub mod trust;
mod wal_writer_keepalive;
mod worker;
pub mod workload;

pub use bulk_load::{BulkLoad, Existing};
pub use error::DatasetError;
pub use growing::growing_tables;
pub use loader::{LoadResult, bulk_load};
pub use pgdyno_model::load_strategy::LoadStrategy;
pub use room::{WAL_ROOM, room_needed, rows, tables_room};

#[cfg(test)]
mod tests {
    use pgdyno_model::experiment::Loading;

    use super::*;

    #[test]
    fn rows_and_names_are_what_the_folder_and_the_settings_say() {
        let data = crate::workload::load("tpcb-like", &[]).unwrap().data;
        assert_eq!(rows(&data, 2), 200_022);
        let plain = Loading::default();
        assert_eq!(BulkLoad::new(&data, 2, 1, &plain).identity(), "tpcb-like at scale 2, seed 1");
        let other = Loading { filler_compress_percentage: 0, partitions: 4, ..plain };
        assert_eq!(
            BulkLoad::new(&data, 2, 1, &other).identity(),
            "tpcb-like at scale 2, seed 1, filler 0% blanks, 4 partitions"
        );
    }
}
