//! Crash tests as JSON has them; [`page`] renders them for a terminal.

mod filesystem;
mod page;
mod power;
mod states;

pub use filesystem::FilesystemsView;
pub use page::crash;
use pgdyno_analysis::GravestFault;
use pgdyno_model::CrashRecord;
use pgdyno_model::crash::{Control, FaultOutcome, Round, Verdict};
use pgdyno_model::facts::{HostFacts, StorageFacts};
use pgdyno_model::units::Epoch;
pub use power::PowerView;
use serde::Serialize;
pub use states::StatesView;

/// Result of one fault, as JSON has it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultView {
    /// The verdict.
    pub verdict: Verdict,
    /// Reason for the verdict.
    pub reason: String,
    /// The fault.
    pub fault: String,
    /// Rounds (count).
    pub rounds: usize,
    /// Transactions acknowledged in all rounds (count).
    pub acknowledged: u64,
    /// Acknowledged transactions that are missing (count).
    pub lost: u64,
    /// Age of the oldest lost transaction at the fault (milliseconds).
    pub oldest_lost_ms: Option<f64>,
    /// Median over the rounds of the age of each one's oldest loss (milliseconds), 0 for a round
    /// without one; none if nothing was lost.
    pub median_lost_ms: Option<f64>,
    /// The longest recovery (milliseconds).
    pub recovery_ms: Option<f64>,
    /// Mounts after power cuts and fsck; none for a fault that cuts no power.
    pub filesystems: Option<FilesystemsView>,
    /// Upper bound of the probability that a round fails (95% confidence); none if one failed.
    pub chance_at_most: Option<f64>,
    /// Whether the fault is meant to fail.
    pub planted: bool,
    /// Detection power of the rounds; none for a fault that tests no flushes.
    pub power: Option<PowerView>,
    /// All rounds.
    pub each: Vec<Round>,
}

impl From<&FaultOutcome> for FaultView {
    fn from(fault: &FaultOutcome) -> Self {
        Self {
            verdict: fault.verdict,
            reason: fault.reason.clone(),
            fault: fault.fault.to_string(),
            rounds: fault.rounds.len(),
            acknowledged: fault.acknowledged(),
            lost: fault.lost(),
            oldest_lost_ms: fault.oldest_lost_ms(),
            median_lost_ms: fault.median_lost_ms(),
            recovery_ms: fault.recovery_ms(),
            filesystems: FilesystemsView::new(fault.rounds.iter()),
            chance_at_most: fault.chance_at_most,
            planted: fault.planted,
            power: fault.fault.tests_storage().then(|| PowerView::new(fault)),
            each: fault.rounds.clone(),
        }
    }
}

/// Crash tests as JSON has them: sums over all faults, then each fault.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CrashView {
    /// Name in the store.
    pub id: String,
    /// Run that they belong to.
    pub run: Option<String>,
    /// Index of the run's treatment.
    pub treatment: Option<usize>,
    /// Name of the crashed server.
    pub name: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Reason for the verdict.
    pub reason: String,
    /// Names of the faults, joined by commas.
    pub fault: String,
    /// Rounds (count).
    pub rounds: usize,
    /// Transactions acknowledged in the rounds of all faults (count).
    pub acknowledged: u64,
    /// Acknowledged transactions that are missing (count). It is not a share of `acknowledged`: the
    /// rounds of other faults dilute it.
    pub lost: u64,
    /// Fault that set the verdict; none if no fault was tried.
    pub gravest: Option<GravestFault>,
    /// Age of the oldest lost transaction at its fault (milliseconds).
    pub oldest_lost_ms: Option<f64>,
    /// Longest recovery (milliseconds).
    pub recovery_ms: Option<f64>,
    /// Mounts after power cuts and fsck, over the rounds of all faults; none without a power cut.
    pub filesystems: Option<FilesystemsView>,
    /// Positive controls.
    pub controls: Vec<Control>,
    /// Results fault by fault.
    pub faults: Vec<FaultView>,
    /// All states of a recorded stretch; none where moments were drawn.
    pub states: Option<StatesView>,
    /// Circumstances that weaken the verdict.
    pub notes: Vec<String>,
    /// Whether all planned rounds were done.
    pub complete: bool,
    /// Seed that repeats every round.
    #[cfg_attr(feature = "schema", schemars(with = "pgdyno_model::page_schema::Seed"))]
    pub seed: u64,
    /// Settings that were asked for.
    pub settings: std::collections::BTreeMap<String, String>,
    /// Begin of the session.
    #[serde(serialize_with = "pgdyno_text::format::as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub started_at: Epoch,
    /// Version of pgdyno.
    pub pgdyno_version: String,
    /// Version of the server.
    pub server_version: String,
    /// Machine.
    pub host: HostFacts,
    /// Storage of PGDATA.
    pub storage: StorageFacts,
}

impl From<&CrashRecord> for CrashView {
    fn from(record: &CrashRecord) -> Self {
        let outcome = &record.outcome;
        let faults: Vec<FaultView> = outcome.faults.iter().map(FaultView::from).collect();
        let names: Vec<&str> = outcome.options.faults.iter().map(|f| f.name()).collect();
        Self {
            id: record.id.clone(),
            run: record.run.clone(),
            treatment: record.treatment,
            name: record.name.clone(),
            verdict: outcome.verdict,
            reason: outcome.reason.clone(),
            fault: names.join(","),
            rounds: faults.iter().map(|f| f.rounds).sum(),
            acknowledged: faults.iter().map(|f| f.acknowledged).sum(),
            lost: faults.iter().map(|f| f.lost).sum(),
            gravest: GravestFault::find(outcome),
            states: outcome.states.as_ref().map(StatesView::from),
            oldest_lost_ms: faults.iter().filter_map(|f| f.oldest_lost_ms).reduce(f64::max),
            recovery_ms: faults.iter().filter_map(|f| f.recovery_ms).reduce(f64::max),
            filesystems: FilesystemsView::new(outcome.faults.iter().flat_map(|f| &f.rounds)),
            controls: outcome.controls.clone(),
            faults,
            notes: outcome.notes.clone(),
            complete: outcome.complete,
            seed: outcome.options.seed,
            settings: outcome.settings.clone(),
            started_at: record.started_at,
            pgdyno_version: record.pgdyno_version.clone(),
            server_version: outcome.server_version.clone(),
            host: record.host.clone(),
            storage: record.storage.clone(),
        }
    }
}
