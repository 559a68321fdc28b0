//! The head of a page: verdict, key figures, next command, and cautions in two tiers.

use pgdyno_analysis::Badge;
use serde::Serialize;

/// Verdict card of a result: what a reader sees first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Headline {
    /// The question that the result answers; none if none was asked.
    pub question: Option<String>,
    /// How far the question is answered.
    pub badge: Badge,
    /// Answer in one or two sentences. Text between backticks is code.
    pub answer: String,
    /// At most three figures that matter most, as texts.
    pub figures: Vec<KeyFigure>,
    /// Next command, ready to be copied; none where there is none to recommend.
    pub command: Option<String>,
    /// Findings that a reader should see before believing the answer, with their places.
    pub proofs: Vec<Proof>,
}

/// A figure of a headline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeyFigure {
    /// Name of the figure.
    pub name: String,
    /// Value with its unit.
    pub value: String,
    /// Interval and circumstances.
    pub detail: Option<String>,
}

/// A finding, and where the page shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proof {
    /// Kind of the finding.
    pub kind: ProofKind,
    /// The finding in a few words.
    pub text: String,
    /// Panel that shows it.
    pub panel: Panel,
    /// Index of the trial that shows it best, in
    /// [`RunView::trials`](pgdyno_analysis::RunView::trials).
    pub trial: Option<usize>,
}

/// Kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ProofKind {
    /// Verdict of crash tests.
    Crash,
    /// The server held other rows than were acknowledged.
    RowsDiffer,
    /// Commits were acknowledged without a flush of their own.
    EarlyAcknowledgements,
    /// fsync was off.
    FsyncOff,
    /// The load generator may have been the limit.
    GeneratorLimited,
    /// tps never became steady.
    NotSteady,
    /// Equal treatments differ much on this host.
    NoisyHost,
    /// Trials were shorter than `checkpoint_timeout`.
    ShortTrials,
}

/// Panel of a run's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Panel {
    /// Table of treatments.
    Treatments,
    /// Time axis of a trial.
    Time,
    /// Crash tests.
    Safety,
    /// Hosts, storages, servers.
    Environment,
}

/// A note with its tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Caution {
    /// The sentence.
    pub text: String,
    /// Kind of the note, in kebab case (see [`NoteKind`](crate::NoteKind)).
    pub kind: &'static str,
    /// Whether it may change the conclusion.
    pub tier: Tier,
}

/// Weight of a caution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// It may change the conclusion.
    Conclusion,
    /// It explains the figures.
    Context,
}
