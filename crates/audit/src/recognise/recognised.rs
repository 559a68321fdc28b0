//! Figures that were recognised in one document.

use serde::{Deserialize, Serialize};

use super::pgbench_run::PgbenchRun;
use super::probes::{CpuLine, DeviceLine, FsyncLine};
use super::settings::Setting;
use super::storage::StorageFact;
use super::sysbench::SysbenchRun;
use super::table::Table;

/// Figures that were recognised in one document. A store keeps them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recognised {
    /// Reports of pgbench.
    pub runs: Vec<PgbenchRun>,
    /// Reports of sysbench.
    #[serde(default)]
    pub sysbench: Vec<SysbenchRun>,
    /// Tables of tps, or of figures that the authors computed.
    pub tables: Vec<Table>,
    /// Lines of pg_test_fsync.
    pub fsync: Vec<FsyncLine>,
    /// CPU lines of iostat.
    pub cpus: Vec<CpuLine>,
    /// Device lines of iostat.
    pub devices: Vec<DeviceLine>,
    /// Settings of PostgreSQL.
    pub settings: Vec<Setting>,
    /// Facts on the storage.
    pub storage: Vec<StorageFact>,
}

impl Recognised {
    /// Whether nothing was recognised.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether there is a figure to keep: settings alone are none.
    pub fn has_figures(&self) -> bool {
        !(self.runs.is_empty()
            && self.sysbench.is_empty()
            && self.tables.is_empty()
            && self.fsync.is_empty()
            && self.devices.is_empty())
    }

    /// Sums up the figures in words: `2 pgbench reports, 19 lines of pg_test_fsync`.
    pub fn summary(&self) -> String {
        let of_sysbench: usize = self.sysbench.iter().map(|r| r.progress.len()).sum();
        let progress = self.runs.iter().map(|r| r.progress.len()).sum::<usize>() + of_sysbench;
        let of_scripts =
            |r: &PgbenchRun| r.scripts.iter().map(|s| s.statements.len()).sum::<usize>();
        let statements = self.runs.iter().map(|r| r.statements.len() + of_scripts(r)).sum();
        let parts = [
            (self.runs.len(), "pgbench report", "pgbench reports"),
            (self.sysbench.len(), "sysbench report", "sysbench reports"),
            (progress, "progress line", "progress lines"),
            (statements, "statement latency", "statement latencies"),
            (self.tables.len(), "table", "tables"),
            (self.fsync.len(), "line of pg_test_fsync", "lines of pg_test_fsync"),
            (self.cpus.len() + self.devices.len(), "line of iostat", "lines of iostat"),
            (self.settings.len(), "setting", "settings"),
            (self.storage.len(), "fact on storage", "facts on storage"),
        ];
        let words: Vec<String> = parts
            .iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many }))
            .collect();
        if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
    }
}
