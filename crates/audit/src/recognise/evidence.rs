//! Evidence: everything that the rules judge.

use std::collections::BTreeSet;

use super::command::Command;
use super::loads::RowOfLoad;
use super::pgbench_run::PgbenchRun;
use super::properties::Property;
use super::recognised::Recognised;
use super::settings::Setting;
use super::shares::PrintedShare;
use super::sysbench::SysbenchCommand;
use crate::figure::Figure;

/// Everything that the rules judge: recognised figures, and facts that only rules need.
pub(crate) struct Evidence {
    pub(crate) recognised: Recognised,
    pub(crate) commands: Vec<Command>,
    /// Properties and settings, each as it is asked for or listed.
    pub(crate) properties: Vec<Property>,
    /// Repeats of each other: indices into the runs of pgbench.
    pub(crate) groups: Vec<Vec<usize>>,
    /// Repeats of each other: indices into the runs of sysbench.
    pub(crate) sysbench_groups: Vec<Vec<usize>>,
    /// First lines of runs that only warm up.
    pub(crate) warm_ups: BTreeSet<usize>,
    /// Percentages that pgbench prints, by run.
    pub(crate) shares: Vec<Vec<PrintedShare>>,
    /// Rows of tables that have clients, tps and latency.
    pub(crate) loads: Vec<RowOfLoad>,
    /// Clients of pgbench that were aborted: their lines.
    pub(crate) aborted: Vec<usize>,
    /// Scales that `pgbench -i` made.
    pub(crate) scales: Vec<f64>,
    /// Filesystems of which it is told how they were made or mounted, in lower case.
    pub(crate) described: BTreeSet<&'static str>,
    /// Percentiles of sysbench that are the greatest that its histogram knows.
    pub(crate) capped: Vec<Figure>,
    pub(crate) sysbench_commands: Vec<SysbenchCommand>,
}

impl Evidence {
    /// Runs of pgbench that measure: warm-ups are left out.
    pub(crate) fn measured_runs(&self) -> impl Iterator<Item = &PgbenchRun> {
        self.recognised.runs.iter().filter(|run| !self.warm_ups.contains(&run.line))
    }

    /// Values of the setting `name`, each where it is shown.
    pub(crate) fn settings<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Setting> {
        self.recognised.settings.iter().filter(move |setting| setting.name == name)
    }
}
