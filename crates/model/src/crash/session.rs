//! Sessions of crash tests: options, outcome, and the record in the store.

use serde::{Deserialize, Serialize};

use super::rollup::{Control, FaultOutcome};
use super::{CrashWorkload, Fault, States, StatesOutcome, Under, Verdict};
use crate::facts::{HostFacts, StorageFacts};
use crate::units::{Epoch, Span};

/// Options of a session of crash tests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CrashOptions {
    /// Faults to inject, one after the other.
    pub faults: Vec<Fault>,
    /// Rounds of each fault (count).
    pub rounds: u32,
    /// The load that runs when a fault strikes.
    #[serde(default)]
    pub workload: CrashWorkload,
    /// Connections (count).
    pub clients: u32,
    /// Size of the data set: 100,000 accounts or users each.
    pub scale: u32,
    /// Longest time that load runs before a fault strikes.
    pub load: Span,
    /// Time limit for the server's recovery.
    pub recovery_limit: Span,
    /// Seed from which all moments are drawn.
    #[cfg_attr(feature = "schema", schemars(with = "crate::page_schema::Seed"))]
    pub seed: u64,
    /// Part of the data whose disk lies or fails, for faults of the disk.
    #[serde(default)]
    pub under: Under,
    /// Whether positive controls are run.
    pub controls: bool,
    /// Share of flushes that a lying disk acknowledges and does not do (0 to 1).
    #[serde(default = "always")]
    pub lie: f64,
    /// Faults that the server is meant to fail, beside those that every server fails.
    #[serde(default)]
    pub planted: Vec<Fault>,
    /// States of the disk that are judged.
    #[serde(default)]
    pub states: States,
    /// Time limit for judging states, where all are judged; none: no limit.
    pub budget: Option<Span>,
    /// States judged at the same time (count), each on a disk of its own.
    #[serde(default = "one")]
    pub jobs: u32,
}

impl CrashOptions {
    /// Whether the server is meant to fail `fault`.
    pub fn plants(&self, fault: Fault) -> bool {
        fault.is_planted() || self.planted.contains(&fault)
    }
}

/// Default of `jobs`, as sessions of earlier versions had it.
fn one() -> u32 {
    1
}

/// Default of `lie`: every flush, as sessions of earlier versions had it.
fn always() -> f64 {
    1.0
}

impl Default for CrashOptions {
    fn default() -> Self {
        Self {
            faults: vec![Fault::Process],
            rounds: 3,
            workload: CrashWorkload::default(),
            clients: 4,
            scale: 1,
            load: Span::from_secs(2),
            recovery_limit: Span::from_secs(120),
            seed: 1,
            under: Under::Both,
            controls: true,
            lie: always(),
            planted: Vec::new(),
            states: States::Drawn,
            budget: None,
            jobs: one(),
        }
    }
}

/// Outcome of a session of crash tests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CrashOutcome {
    /// Options that the session was started with.
    pub options: CrashOptions,
    /// Server settings that the session asked for, by name.
    pub settings: std::collections::BTreeMap<String, String>,
    /// Version of the server; empty if none came up.
    pub server_version: String,
    /// The gravest of the faults' verdicts; without a failure among them, *invalid* if a control is
    /// lacking or was not seen.
    pub verdict: Verdict,
    /// Reason for the verdict.
    pub reason: String,
    /// Outcome of each fault.
    pub faults: Vec<FaultOutcome>,
    /// All states of a recorded stretch; none where moments were drawn, and in records of earlier
    /// versions.
    pub states: Option<StatesOutcome>,
    /// The positive controls.
    pub controls: Vec<Control>,
    /// Limits of the verdict, such as controls that were left out.
    pub notes: Vec<String>,
    /// Whether the session ran to its end; false after a signal.
    pub complete: bool,
}

impl CrashOutcome {
    /// Draws the session's verdict and its reason from its faults and controls.
    ///
    /// The gravest fault's verdict is the session's. A fault that every server fails weighs only
    /// where nothing else was tried. A pass without a control of its fault that was run and seen
    /// makes the session *invalid*.
    pub fn conclude(&mut self) {
        for fault in &mut self.faults {
            if self.options.plants(fault.fault) {
                fault.plant();
            }
        }
        if let (true, Some(states)) = (self.options.plants(Fault::Power), &mut self.states) {
            states.plant();
        }
        (self.verdict, self.reason) = self.judge();
        if !self.complete && self.verdict.is_good() {
            self.reason = format!("not done to the end; so far {}: {}", self.verdict, self.reason);
            self.verdict = Verdict::Unknown;
        }
    }

    fn judge(&self) -> (Verdict, String) {
        let own = match (&self.states, self.gravest()) {
            (Some(states), _) => (states.verdict, states.reason.clone()),
            (None, Some(fault)) => (fault.verdict, format!("{}: {}", fault.fault, fault.reason)),
            (None, None) => return (Verdict::Unknown, "no fault was tried to the end".into()),
        };
        if own.0.is_failure() {
            return own;
        }
        let blind: Vec<&str> =
            self.controls.iter().filter(|c| !c.seen).map(|c| c.name.as_str()).collect();
        if !blind.is_empty() {
            let why = format!("the instrument did not see what was planted: {}", blind.join(", "));
            return (Verdict::Invalid, why);
        }
        let passed = |f: &&FaultOutcome| matches!(f.verdict, Verdict::Pass | Verdict::BoundedLoss);
        let is_shown = |f: &&FaultOutcome| self.controls.iter().any(|c| c.fault == Some(f.fault));
        let unshown = self.faults.iter().filter(passed).filter(|f| !is_shown(f));
        let mut unshown: Vec<&str> = unshown.map(|f| f.fault.name()).collect();
        let has_passed =
            |states: &StatesOutcome| matches!(states.verdict, Verdict::Pass | Verdict::BoundedLoss);
        if self.states.as_ref().is_some_and(has_passed) && self.controls.is_empty() {
            unshown.push("the states");
        }
        if !unshown.is_empty() && own.0 < Verdict::Invalid {
            let why = format!(
                "no control of {} was run: nothing shows that its failure would have been seen",
                unshown.join(", ")
            );
            return (Verdict::Invalid, why);
        }
        own
    }

    /// Returns the fault whose verdict is the session's.
    pub fn gravest(&self) -> Option<&FaultOutcome> {
        let weighs = |f: &&FaultOutcome| {
            f.says_something_of_the_server() || !matches!(f.verdict, Verdict::AsPlanted(_))
        };
        let weighing = self.faults.iter().filter(weighs).max_by_key(|f| f.verdict);
        weighing.or_else(|| self.faults.iter().max_by_key(|f| f.verdict))
    }
}

/// A session of crash tests in the store.
#[derive(Clone, Debug, PartialEq)]
pub struct CrashRecord {
    /// Id in the store: `crash`, start and four letters drawn at random.
    pub id: String,
    /// Run that the session belongs to; none for a session by itself.
    pub run: Option<String>,
    /// Index of the run's treatment that was crashed.
    pub treatment: Option<usize>,
    /// Name of the crashed storage, programs and settings, in a few words.
    pub name: String,
    /// When it began.
    pub started_at: Epoch,
    /// pgdyno's version.
    pub pgdyno_version: String,
    /// The machine.
    pub host: HostFacts,
    /// Storage of PGDATA.
    pub storage: StorageFacts,
    /// Verdict, faults, controls and notes.
    pub outcome: CrashOutcome,
}
