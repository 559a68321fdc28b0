//! Evidence: everything that the rules judge.

use std::collections::BTreeSet;

use super::changes::ChangeClaim;
use super::claims::{RatioClaim, SpreadClaim};
use super::command::Command;
use super::pgbench_run::PgbenchRun;
use super::properties::Property;
use super::recognised::Recognised;
use super::said::Said;

/// What the rules judge: what was recognised, and what only they need.
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
    /// What prose says of runs and settings.
    pub(crate) said: Said,
    pub(crate) changes: Vec<ChangeClaim>,
    pub(crate) ratios: Vec<RatioClaim>,
    pub(crate) spreads: Vec<SpreadClaim>,
}

impl Evidence {
    /// Runs of pgbench that measure: warm-ups are left out.
    pub(crate) fn measured_runs(&self) -> impl Iterator<Item = &PgbenchRun> {
        self.recognised.runs.iter().filter(|run| !self.warm_ups.contains(&run.line))
    }
}
