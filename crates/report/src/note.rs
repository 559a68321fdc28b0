//! Notes: what a reader must know to trust or doubt the figures.

use serde::{Serialize, Serializer};
use strum::IntoStaticStr;

use super::headline::Tier;

/// One note: its kind for programs and tests, its text for readers. JSON has the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Subject of the note.
    pub kind: NoteKind,
    /// The sentence.
    pub text: String,
}

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text)
    }
}

/// Notes in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct NoteList(Vec<Note>);

impl NoteList {
    /// Adds a note.
    pub(crate) fn add(&mut self, kind: NoteKind, text: impl Into<String>) {
        self.0.push(Note { kind, text: text.into() });
    }

    /// Adds notes of one kind.
    pub(crate) fn add_all(&mut self, kind: NoteKind, texts: impl IntoIterator<Item = String>) {
        self.0.extend(texts.into_iter().map(|text| Note { kind, text }));
    }

    /// Returns these notes, and then `others`.
    pub(crate) fn followed_by(mut self, others: Self) -> Vec<Note> {
        self.0.extend(others.0);
        self.0
    }
}

/// Subject of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum NoteKind {
    /// The run is not complete.
    Progress,
    /// Crash tests that were asked for are not done to the end.
    NotCrashed,
    /// A treatment's storage is not available on this machine.
    NotAvailable,
    /// A treatment has no completed trial.
    NoTrial,
    /// A trial failed.
    TrialFailed,
    /// Clients gave up in a trial.
    ClientsGaveUp,
    /// The server holds other rows than were acknowledged.
    RowsDiffer,
    /// Transactions ended in an error.
    Errors,
    /// A storage is memory, or passes no flush on.
    NotDurable,
    /// Something measured was emulated by pgdyno.
    Emulated,
    /// The run is one of `pgdyno pgbench --store`.
    AdHoc,
    /// Seconds and telemetry were thinned.
    Thinned,
    /// Trials ran on fetched builds and on others.
    MixedBuilds,
    /// Trials ran on several builds that no factor names.
    DifferentBuilds,
    /// Commits were acknowledged without a flush of their own.
    EarlyAcknowledgements,
    /// Flush accounting was asked for and judged no commit.
    CommitsNotJudged,
    /// fsync was off.
    FsyncOff,
    /// Trials were too short for a timed checkpoint.
    NoCheckpoint,
    /// Sessions ran on hosts that differ.
    HostsDiffer,
    /// Sessions used different storage.
    StoragesDiffer,
    /// Other work was on the machine as a session began.
    BusyHost,
    /// The processors may have been the limit while the device had time left.
    IdleDevice,
    /// Trials may have measured the load generator.
    GeneratorLimited,
    /// The load generator may have been the limit.
    GeneratorBusy,
    /// How much CPU the load generator used.
    GeneratorUse,
    /// Whether what earlier runs told of the noise counts.
    NoisePrior,
    /// A trial that is not measured came first.
    Conditioning,
    /// There is one repeat only.
    OneRepeat,
    /// A treatment's mean has no interval.
    NoInterval,
    /// Repeats of a treatment ran one after the other.
    Sequential,
    /// tps rises or falls over repeats.
    Trend,
    /// tps never became steady within trials.
    NotSteady,
    /// The window begins with a warm-up.
    WarmUp,
    /// Whether tps was steady could not be judged.
    SteadinessNotJudged,
    /// tps changed within trials.
    Changes,
    /// There are too few transactions for p99.
    FewTransactions,
    /// Comparisons are judged together.
    JudgedTogether,
    /// How maximum rates were searched for.
    Capacity,
    /// State of a run that may end by itself.
    Stopping,
    /// The run was given more repeats.
    Extended,
    /// How far equal treatments differ on this host.
    NoiseFloor,
    /// Whether the effect of a factor depends on another.
    Interaction,
    /// Where tps rises, falls and is highest over an ordered factor.
    Course,
    /// How tps grows with the number of clients.
    Scaling,
    /// How near one client came to the rate of flushes.
    Ceiling,
    /// Little's law, or commits that share flushes.
    ClosedLoop,
    /// How the rows were made.
    Data,
    /// Tables or indexes grew.
    Growth,
    /// How many rows a treatment's rate comes to in a day.
    RowsADay,
    /// The server is a fetched build.
    FetchedBuild,
    /// Another reactor than expected carried the load.
    Reactor,
    /// Counters were reset while they were watched.
    CounterReset,
    /// Telemetry is missing or incomplete.
    TelemetryMissing,
    /// How much CPU watching took.
    ObserverCost,
}

impl NoteKind {
    /// Returns the kind's name in kebab case.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the tier: whether such a note may change the conclusion.
    pub fn tier(self) -> Tier {
        match self {
            Self::Progress
            | Self::NotCrashed
            | Self::NotAvailable
            | Self::NoTrial
            | Self::TrialFailed
            | Self::ClientsGaveUp
            | Self::RowsDiffer
            | Self::Errors
            | Self::Emulated
            | Self::NotDurable
            | Self::AdHoc
            | Self::MixedBuilds
            | Self::DifferentBuilds
            | Self::EarlyAcknowledgements
            | Self::CommitsNotJudged
            | Self::FsyncOff
            | Self::NoCheckpoint
            | Self::HostsDiffer
            | Self::StoragesDiffer
            | Self::BusyHost
            | Self::IdleDevice
            | Self::GeneratorLimited
            | Self::GeneratorBusy
            | Self::OneRepeat
            | Self::NoInterval
            | Self::Sequential
            | Self::Trend
            | Self::NotSteady
            | Self::WarmUp
            | Self::FewTransactions => Tier::Conclusion,
            Self::GeneratorUse
            | Self::SteadinessNotJudged
            | Self::Changes
            | Self::JudgedTogether
            | Self::Capacity
            | Self::Stopping
            | Self::Extended
            | Self::NoiseFloor
            | Self::NoisePrior
            | Self::Conditioning
            | Self::Interaction
            | Self::Course
            | Self::Scaling
            | Self::Ceiling
            | Self::ClosedLoop
            | Self::Data
            | Self::Growth
            | Self::RowsADay
            | Self::FetchedBuild
            | Self::Reactor
            | Self::CounterReset
            | Self::Thinned
            | Self::TelemetryMissing
            | Self::ObserverCost => Tier::Context,
        }
    }
}
