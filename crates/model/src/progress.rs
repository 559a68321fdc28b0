//! Progress events of long operations: runs, crash tests, probes and bulk loads.
//!
//! Events are data. The command line renders them in words; a web page may render them differently.
//! Pass a [`Progress`] to the operation; [`Silent`] ignores every event.
//!
//! ```
//! use std::sync::Mutex;
//! use pgdyno_model::progress::{Event, Progress};
//!
//! /// Counts warnings.
//! #[derive(Default)]
//! struct Warnings(Mutex<usize>);
//!
//! impl Progress for Warnings {
//!     fn event(&self, event: &Event) {
//!         if let (Event::Warning(_), Ok(mut count)) = (event, self.0.lock()) {
//!             *count += 1;
//!         }
//!     }
//! }
//! # Warnings::default().event(&Event::TakingDown);
//! ```

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

use crate::crash::Fault;
use crate::live::{LiveRun, LoadSecond, Outlook};
use crate::load_strategy::LoadStrategy;
use crate::record::SessionEnd;
use crate::search::Slo;
use crate::units::{Bytes, Epoch};
use crate::{Conditioning, Failure, PlannedTrial};

/// Who chose how a table is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StrategyChoice {
    /// The caller.
    Caller,
    /// The number of cores.
    Cores,
    /// The data set's `after_schema`: its tables may take no FREEZE.
    AfterSchema,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", content = "of", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Event {
    /// Something worth keeping: a leftover cleared, a default chosen, an assumption made.
    Note(Notice),
    /// Something that must not be missed: a failure, or work for the user.
    Warning(Warning),
    /// Work without transactions is under way.
    Working {
        activity: Activity,
        /// How much of the work is done (0 to 1), where that is known.
        share: Option<f64>,
    },
    /// Sent many times a second while a data set is loaded.
    Loading {
        /// The data set, such as `tpcb-like at scale 10, seed 1`.
        data: String,
        /// Rows sent so far (count).
        rows: u64,
        /// Rows to send (count). Once all are sent, keys are built and tables vacuumed.
        of: u64,
        /// Mean rate since the load began (rows per second).
        rows_per_s: f64,
        /// Mean rate on the wire since the load began (bytes per second).
        bytes_per_s: f64,
        /// Expected time until the last row is sent.
        left: Option<Duration>,
    },
    /// A run has its place in the store.
    Begun {
        /// The run and its plan.
        run: LiveRun,
        /// Trials still to run (count).
        trials: usize,
        /// The store's path.
        #[serde(serialize_with = "lossy")]
        store: PathBuf,
    },
    /// A trial begins.
    Trial {
        /// The trial's place in the plan.
        planned: PlannedTrial,
        /// When it began.
        at: Epoch,
        /// Expected time until the run ends.
        left: Duration,
    },
    /// Sent about once a second while load runs.
    Load(LoadSecond),
    /// A trial is in the store.
    TrialDone {
        /// The trial's place in the plan, from 0.
        ordinal: u32,
        /// Transactions per second; none for a trial that failed.
        tps: Option<f64>,
        /// 99th percentile of latency (microseconds).
        latency_us_p99: Option<f64>,
        /// Why the trial failed.
        failure: Option<Failure>,
        /// Expected time until the run ends.
        left: Duration,
    },
    /// Sent after each block of a run that ends by itself.
    Outlook(Outlook),
    /// The run was asked to end after the trial in progress.
    Stopping,
    /// Servers and storages are being taken down.
    TakingDown,
    /// The work is over. A run that was killed has no such event.
    Ended {
        end: SessionEnd,
        /// Why the work could not go on; none if it finished.
        error: Option<Failure>,
    },
}

impl Event {
    /// Returns how much of the work that the event reports is done (0 to 1), where that is known.
    pub fn share(&self) -> Option<f64> {
        match self {
            Self::Working { share, .. } => *share,
            Self::Loading { of: 0, .. } => Some(1.0),
            Self::Loading { rows, of, .. } => Some(*rows as f64 / *of as f64),
            _ => None,
        }
    }
}

/// Something worth keeping.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Notice {
    /// A script was read in a dialect other than the newest; the reader's words.
    Script(String),
    /// Percentiles are kept only for a script's first statements.
    StatementsWithoutPercentiles {
        script: String,
        /// Statements of the workload whose percentiles are kept (count).
        kept: usize,
        /// Statements of the script (count).
        statements: usize,
    },
    /// A leftover of a killed process was cleared, or could not be; the sweep's words.
    Swept(String),
    /// Remark of a connection that was made; the connection's words.
    Connection(String),
    /// Wait of one of pgdyno's own statements, in words.
    Waits(String),
    /// Finding, change or restoration on an external server; its words.
    ExternalServer(String),
    /// A storage is about to be made on a device.
    OverwritesDevice {
        storage: String,
        /// The device and its contents.
        device: String,
    },
    /// A probe found a storage suspect.
    SuspectStorage {
        storage: String,
        /// The probe's finding.
        finding: String,
    },
    /// `fstrim` failed on a storage, so that it is not probed after it.
    NotTrimmed { storage: String, reason: Failure },
    /// No PostgreSQL of the wanted version is installed; a small build is fetched.
    FetchingPrograms {
        /// The wanted major version; none: any.
        wanted: Option<u32>,
        /// The exact version that is fetched.
        version: String,
    },
    /// A seed was drawn for order and load.
    SeedDrawn(u64),
    /// A run ends before all of its trials.
    RunEnds(EndReason),
    /// A trial that is not measured opens the run.
    Conditioning(Conditioning),
    /// A trial in which a generator failed is tried again.
    TriedAgain {
        /// Further attempts that are left after this one (count).
        left: u32,
    },
    /// A cluster's data was copied from a template.
    DataCopied {
        /// The data set.
        data: String,
        /// The storage that the copy lies on.
        storage: String,
        /// Bytes copied.
        bytes: Bytes,
        /// Files copied (count).
        files: u64,
        /// Files copied by reflink (count).
        reflinks: u64,
    },
    /// There is no room for a template, so that the data is loaded again.
    NoTemplate {
        /// The data set.
        data: String,
        /// Room that the template takes.
        needed: Bytes,
        /// Where it would lie.
        #[serde(serialize_with = "lossy")]
        directory: PathBuf,
    },
    /// A template is kept for later runs.
    TemplateKept {
        /// The data set.
        data: String,
    },
    /// Room that a load takes, and the room that is free; none if that cannot be seen.
    RoomForLoad {
        /// The data set.
        data: String,
        /// Room that the data, its keys and WAL take.
        needed: Bytes,
        /// Free room.
        available: Option<Bytes>,
    },
    /// A load goes on where an earlier one ended.
    LoadContinues {
        /// The data set.
        data: String,
        /// Pieces that are loaded already (count).
        pieces: usize,
    },
    /// How a table is loaded.
    Strategy {
        table: String,
        /// How its rows are loaded.
        strategy: LoadStrategy,
        /// Who chose it.
        chosen_by: StrategyChoice,
        /// Partitions (count), for [`LoadStrategy::Partitions`].
        partitions: u32,
        /// Connections (count).
        connections: usize,
        /// Cores of this machine (count).
        cores: usize,
    },
    /// Settings under which a table's primary key is built.
    KeySettings {
        table: String,
        /// Settings, as `name = value`.
        settings: Vec<String>,
    },
    /// The server's WAL writer is kept awake by empty logical messages.
    WalWriterKeptAwake,
    /// A session of a plug test ended without a restart of the machine, and is begun again.
    SessionBegunAgain { session: String },
    /// A recorded stretch of load and its judgements are kept for a later session to continue.
    StretchKept {
        /// The session that recorded it.
        session: String,
    },
    /// Judging continues with a kept stretch.
    StretchResumed {
        /// The session that recorded it.
        session: String,
        /// States that are judged already (count).
        judged: u64,
    },
}

/// Why a run ends before all of its trials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Every comparison is decided.
    Decided {
        /// Blocks measured (count).
        blocks: u32,
    },
    /// Another block does not fit into the time budget.
    BudgetSpent {
        /// The budget, as the experiment gives it.
        budget: crate::units::Span,
    },
}

/// Something that must not be missed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Warning {
    /// Something that pgdyno made could not be taken down.
    NotTakenDown(String),
    /// This machine lacks what a storage takes; the storage's trials are left out.
    StorageUnavailable { storage: String, reason: Failure },
    /// A storage could not be made; every trial on it will fail.
    StorageFailed {
        storage: String,
        /// Why it could not be made.
        reason: Failure,
    },
    /// The noise of earlier runs could not be read; the run is judged without it.
    NoiseUnread { reason: Failure },
    /// The trial that is not measured and opens a run failed; the run goes on.
    NotConditioned { reason: Failure },
    /// A treatment could not be crashed.
    NotCrashed { subject: String, reason: Failure },
    /// Crash tests ended before all of their rounds.
    CrashTestsCutShort { reason: Failure },
    /// The remains of a failed crash round could not be kept.
    RemainsNotKept {
        fault: Fault,
        /// The round's number.
        round: u32,
        reason: Failure,
    },
    /// A session's work cannot be kept for a later session to continue.
    StretchNotKept { reason: Failure },
    /// A kept stretch of a run's treatment cannot be continued; another one is recorded.
    StretchNotResumed { reason: Failure },
    /// The run's live file cannot be written: nobody can watch it or ask it to stop.
    NotWatchable {
        /// The live folder.
        #[serde(serialize_with = "lossy")]
        folder: PathBuf,
        reason: Failure,
    },
    /// Load runs: the user is to pull the plug.
    PullThePlug { session: String },
}

/// Work that is under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Activity {
    /// A storage is made.
    MakingStorage { storage: String },
    /// A storage is taken down for another one on its device.
    TakingDownStorage { storage: String },
    /// A cluster is made.
    MakingCluster {
        /// PostgreSQL's version.
        version: String,
        storage: String,
    },
    /// A build of PostgreSQL is fetched.
    FetchingPostgres {
        /// PostgreSQL's version.
        version: String,
    },
    /// A fetched build is unpacked.
    UnpackingPostgres {
        /// PostgreSQL's version.
        version: String,
    },
    /// Loaded data is copied to another cluster.
    CopyingData {
        /// The data set.
        data: String,
        storage: String,
    },
    /// A template of loaded data is made.
    MakingTemplate {
        /// The data set.
        data: String,
    },
    /// A trial that is not measured opens a run.
    Conditioning,
    /// The fsync rate of a storage is measured.
    MeasuringFsyncRate { storage: String },
    /// A probe runs.
    Probing {
        /// The storage; none for a probe that the user started by itself.
        storage: Option<String>,
        /// The probe's test.
        test: String,
    },
    /// A rate is tried in the search for the highest one that keeps an objective.
    TryingRate {
        /// The rate (transactions per second).
        rate: f64,
        /// Whether the rate is the answer that is confirmed.
        confirming: bool,
        objective: Slo,
    },
    /// A server that pgdyno does not own takes no connections, and something is to be put back on
    /// it.
    AwaitingServer { server: String },
    /// A replica that clients will read from has not replayed all of the primary's WAL.
    AwaitingReplica {
        server: String,
        /// WAL that is left to replay (bytes).
        behind: i64,
    },
    /// The workload's conditions are checked.
    CheckingConsistency {
        /// The workload.
        workload: String,
    },
    /// Storage and cluster for crash tests are made.
    MakingTestBed {
        /// Server or treatment under test.
        subject: String,
    },
    /// A round of crash tests is under way.
    CrashRound {
        /// Server or treatment under test.
        subject: String,
        fault: Fault,
        /// The round's number and how many are asked for; none for a positive control.
        round: Option<(u32, u32)>,
        /// How far the round is.
        stage: RoundStage,
    },
    /// States that a power cut could have left are judged, one after the other.
    JudgingStates {
        /// Server or treatment under test.
        subject: String,
        /// States that are done (count).
        judged: u64,
        /// States that there are (count).
        total: u64,
        /// Whether they are flush boundaries; else they lie between two flushes.
        boundaries: bool,
    },
    /// Load runs until somebody pulls the plug.
    AwaitingPlug {
        session: String,
        /// Transactions per second in the last second.
        tps: f64,
        /// Time since the load began.
        elapsed: Duration,
    },
    /// The machine is back, and a plug test is judged.
    JudgingReturn {
        session: String,
        /// How far the judgement is.
        stage: RoundStage,
    },
}

/// How far a crash round is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundStage {
    /// Load runs.
    Load,
    /// The fault is due.
    Fault,
    /// The server recovers.
    Recovery,
    /// The oracles look at the server.
    Verification,
}

/// Serializes a path for people: bytes that are not UTF-8 are replaced.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Receives progress events. Events may come from several threads.
pub trait Progress: Sync {
    /// Takes note of `event`.
    fn event(&self, event: &Event);
}

/// Ignores every event.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Progress for Silent {
    fn event(&self, _: &Event) {}
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;
    use crate::FailureKind;

    #[test]
    fn a_path_that_is_not_utf_8_is_written_too() {
        let directory = PathBuf::from(OsStr::from_bytes(b"/mnt/\xff"));
        let event =
            Event::Note(Notice::NoTemplate { data: "a".into(), needed: Bytes(1), directory });
        assert!(serde_json::to_string(&event).unwrap().contains("/mnt/\u{fffd}"));
    }

    #[test]
    fn events_of_all_forms_are_read_back_as_they_were_written() {
        let reason = Failure::new(FailureKind::Storage, "no room");
        let activity = Activity::TryingRate {
            rate: 100.5,
            confirming: true,
            objective: "p99 < 20ms".parse().unwrap(),
        };
        for event in [
            Event::Note(Notice::WalWriterKeptAwake),
            Event::Note(Notice::SeedDrawn(5)),
            Event::Warning(Warning::StorageFailed { storage: "a".into(), reason: reason.clone() }),
            Event::Working { activity, share: None },
            Event::Load(LoadSecond { tps: 7.0, ..LoadSecond::default() }),
            Event::Stopping,
            Event::Ended { end: SessionEnd::Failed, error: Some(reason) },
        ] {
            let line = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event, "{line}");
        }
    }
}
