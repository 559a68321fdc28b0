//! Documents: views with their words, as JSON and pages have them.
//!
//! Each document takes over the fields of a view and adds the sentences on it. Keys are only ever
//! added: scripts rely on them.

use pgdyno_analysis::comparison::imported::SideBySideView;
use pgdyno_analysis::comparison::runs::{CompareView, GateView, PairView};
use pgdyno_analysis::{
    CapacityView, Change, Comparison, GapPart, GapView, Part, PartView, RatioView, RunView,
    ScalingView, StageProbeView, Steadiness, StoppingView, TreatmentCrash, TreatmentView,
    TrialView, WhyView,
};
use pgdyno_model::FailureKind;
use pgdyno_stats::Scaling;
use serde::{Serialize, Serializer};

use crate::comparison::CompareReport;
use crate::headline::{Caution, Headline};
use crate::note::Note;
use crate::run_report::RunReport;
use crate::{CrashView, FilesystemsView, prose};

/// Serializes reports as their documents, and describes them so.
macro_rules! serialize_as_document {
    ($($report:ty => $document:ident),+ $(,)?) => {
        $(impl Serialize for $report {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $document::new(self).serialize(serializer)
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $report {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $document::schema_name()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $document::json_schema(generator)
            }
        })+
    };
}

serialize_as_document!(
    RunReport => RunDocument,
    CompareReport => CompareDocument,
    SideBySideReport<'_> => SideBySideDocument,
);

/// A run beside an imported report, with what keeps the two apart.
#[derive(Clone, Copy, Debug)]
pub struct SideBySideReport<'a>(pub &'a SideBySideView);

/// A run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RunView"))]
struct RunDocument<'a> {
    /// Answer to the run's question, in one or two sentences.
    answer: &'a [String],
    /// Verdict card: badge, key figures, next command.
    headline: &'a Headline,
    /// The notes with their tiers: first those that may change the conclusion.
    cautions: &'a [Caution],
    #[serde(flatten)]
    view: &'a RunView,
    /// Every treatment, in the plan's order.
    treatments: Vec<TreatmentDocument<'a>>,
    /// Pairs of treatments that differ in one factor.
    comparisons: Vec<ComparisonDocument<'a>>,
    /// Parts of each significant difference: against the best, and between treatments that differ
    /// in one factor.
    why: Vec<WhyDocument<'a>>,
    /// Rates that each treatment's searches tried; empty without a search.
    capacity: Vec<CapacityDocument<'a>>,
    /// Growth of tps with the number of clients; empty for fewer than three numbers of clients.
    scaling: Vec<ScalingDocument<'a>>,
    /// State of a run that may end by itself; none for fixed repeats.
    stopping: Option<StoppingDocument<'a>>,
    /// Notes that a reader needs to trust or doubt the figures.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    notes: &'a [Note],
    /// Every attempt at a trial, in the order of recording.
    trials: Vec<TrialDocument<'a>>,
    /// Probes of the storages before and after the trials, in order.
    probes: Vec<StageProbeDocument<'a>>,
    /// Crash tests of the treatments, in order; treatments that differ in their load only share
    /// one.
    crashes: &'a [CrashView],
}

impl<'a> RunDocument<'a> {
    fn new(report: &'a RunReport) -> Self {
        let RunReport { view, crashes, notes, answer, headline, cautions } = report;
        let treatment = |t| TreatmentDocument::new(report, t);
        let comparison = |view: &'a Comparison, plan| ComparisonDocument {
            ratio: RatioDocument::new(&view.ratio, prose::comparison_verdict(plan, view)),
            words: prose::comparison(plan, view),
            view,
        };
        let why = |why: &'a WhyView| {
            let label = |treatment: usize| view.treatments[treatment].label.as_str();
            WhyDocument::new(why, label(why.to), label(why.treatment))
        };
        let capacity = view.capacity.iter().zip(prose::capacities(view));
        let scaling = |view: &'a ScalingView| ScalingDocument {
            law: view.law.as_ref().ok(),
            words: prose::scaling(view),
            view,
        };
        let stopping = view.plan.stopping.as_ref().zip(view.stopping.as_ref());
        Self {
            answer,
            headline,
            cautions,
            treatments: view.treatments.iter().map(treatment).collect(),
            comparisons: view.comparisons.iter().map(|c| comparison(c, &view.plan)).collect(),
            why: view.why.iter().map(why).collect(),
            capacity: capacity.map(|(view, words)| CapacityDocument { view, words }).collect(),
            scaling: view.scaling.iter().map(scaling).collect(),
            stopping: stopping.map(|(stopping, state)| StoppingDocument {
                open: prose::open_comparisons(&view.plan, state),
                words: prose::stopping(&view.plan, stopping, state),
                view: state,
            }),
            notes,
            trials: view.trials.iter().map(TrialDocument::new).collect(),
            probes: view.probes.iter().map(StageProbeDocument::new).collect(),
            crashes,
            view,
        }
    }
}

/// A treatment over its completed trials.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TreatmentView"))]
struct TreatmentDocument<'a> {
    #[serde(flatten)]
    view: &'a TreatmentView,
    /// Result of crash tests; none if there were none.
    crash: Option<TreatmentCrashDocument<'a>>,
    /// Reason why it cannot be the best: it is known to break its promise.
    not_ranked: Option<String>,
    /// Ratio of its tps to that of the best treatment; none without a completed trial.
    ratio_to_best: Option<RatioDocument<'a>>,
}

impl<'a> TreatmentDocument<'a> {
    fn new(run: &'a RunReport, view: &'a TreatmentView) -> Self {
        let crash = |crash: &'a TreatmentCrash| TreatmentCrashDocument {
            view: crash,
            filesystems: run.mounts(view),
        };
        let ratio = view.ratio_to_best.as_ref().zip(prose::ratio_to_best(&run.view, view));
        Self {
            crash: view.crash.as_ref().map(crash),
            not_ranked: view.not_ranked.as_ref().map(prose::reason_not_ranked),
            ratio_to_best: ratio.map(|(ratio, verdict)| RatioDocument::new(ratio, verdict)),
            view,
        }
    }
}

/// Crash tests of a treatment, in brief.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TreatmentCrash"))]
struct TreatmentCrashDocument<'a> {
    #[serde(flatten)]
    view: &'a TreatmentCrash,
    /// Mounts after power cuts and fsck; none without a power cut.
    filesystems: Option<&'a FilesystemsView>,
}

/// Ratio of two treatments' tps, with its verdict.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RatioView"))]
struct RatioDocument<'a> {
    #[serde(flatten)]
    view: &'a RatioView,
    /// Reason for an interval without a verdict.
    withheld: Option<String>,
    /// Verdict as a sentence.
    verdict: String,
}

impl<'a> RatioDocument<'a> {
    fn new(view: &'a RatioView, verdict: String) -> Self {
        Self { view, withheld: view.withheld.map(prose::withheld), verdict }
    }
}

/// Two treatments that differ in one factor only.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Comparison"))]
struct ComparisonDocument<'a> {
    #[serde(flatten)]
    view: &'a Comparison,
    /// The ratio of their tps.
    ratio: RatioDocument<'a>,
    /// Comparison as a sentence.
    words: String,
}

/// Difference of two treatments taken apart: B is compared with A. Times are means over trials.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WhyView"))]
struct WhyDocument<'a> {
    #[serde(flatten)]
    view: &'a WhyView,
    /// Mean latency of a transaction by statement; none without a transaction on either side.
    latency: Option<GapDocument<'a>>,
    /// Active time of the backends per transaction, by wait event; none where either side has no
    /// samples.
    active: Option<GapDocument<'a>>,
    /// Sentences on the largest parts.
    words: Vec<String>,
}

impl<'a> WhyDocument<'a> {
    fn new(view: &'a WhyView, a: &str, b: &str) -> Self {
        Self {
            latency: view.latency.as_ref().map(GapDocument::new),
            active: view.active.as_ref().map(GapDocument::new),
            words: prose::why(view, a, b),
            view,
        }
    }
}

/// Difference (gap) and its parts, which add up to it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "GapView"))]
struct GapDocument<'a> {
    #[serde(flatten)]
    view: &'a GapView,
    /// Parts, the largest first.
    parts: Vec<PartDocument<'a>>,
}

impl<'a> GapDocument<'a> {
    fn new(view: &'a GapView) -> Self {
        Self { view, parts: view.parts.iter().map(PartDocument::new).collect() }
    }
}

/// One part of a gap.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PartView"))]
struct PartDocument<'a> {
    /// Name: a statement, a wait event, or a phrase.
    what: &'a str,
    /// Kind of the part; none for a wait event.
    part: Option<&'a Part>,
    #[serde(flatten)]
    view: &'a PartView,
}

impl<'a> PartDocument<'a> {
    fn new(view: &'a PartView) -> Self {
        let part = match &view.part {
            GapPart::Latency(part) => Some(part),
            GapPart::Event(_) => None,
        };
        Self { what: prose::part_name(&view.part), part, view }
    }
}

/// Rates that a treatment's searches tried.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CapacityView"))]
struct CapacityDocument<'a> {
    #[serde(flatten)]
    view: &'a CapacityView,
    /// Maximum rate, in a sentence.
    words: String,
}

/// Treatments that differ in the number of clients only.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ScalingView"))]
struct ScalingDocument<'a> {
    #[serde(flatten)]
    view: &'a ScalingView,
    /// Universal Scalability Law through them; none where `words` say why.
    law: Option<&'a Scaling>,
    /// The law in a sentence.
    words: String,
}

/// State of a run that may end by itself.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StoppingView"))]
struct StoppingDocument<'a> {
    #[serde(flatten)]
    view: &'a StoppingView,
    /// Comparisons that are not decided, each in a line.
    open: Vec<String>,
    /// State in a sentence.
    words: String,
}

/// One attempt at a trial.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TrialView"))]
struct TrialDocument<'a> {
    #[serde(flatten)]
    view: &'a TrialView,
    /// Reason of the failure, and advice.
    failure: Option<String>,
    /// Kind of obstacle that the failure was.
    failure_kind: Option<FailureKind>,
    /// Reason why the load generator may have been the limit; none if it was not.
    generator_limit: Option<String>,
    /// Steadiness of its seconds; none without a series.
    steadiness: Option<SteadinessDocument<'a>>,
}

impl<'a> TrialDocument<'a> {
    fn new(view: &'a TrialView) -> Self {
        Self {
            view,
            failure: view.failure.as_ref().map(ToString::to_string),
            failure_kind: view.failure.as_ref().map(|failure| failure.kind),
            generator_limit: view.generator_limit.map(|limit| limit.to_string()),
            steadiness: view.steadiness.as_ref().map(SteadinessDocument::new),
        }
    }
}

/// Probe of one of the run's storages, in brief. `pgdyno show ID` has all of it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StageProbeView"))]
struct StageProbeDocument<'a> {
    #[serde(flatten)]
    view: &'a StageProbeView,
    /// Of an fsync probe: why the storage is suspected to acknowledge what is not yet durable, in
    /// few words.
    acknowledges_from_cache: Vec<&'static str>,
}

impl<'a> StageProbeDocument<'a> {
    fn new(view: &'a StageProbeView) -> Self {
        let words = view.acknowledges_from_cache.iter().copied().map(prose::suspicion);
        Self { view, acknowledges_from_cache: words.collect() }
    }
}

/// Steadiness of tps from second to second, over the whole seconds of the window.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Steadiness"))]
struct SteadinessDocument<'a> {
    #[serde(flatten)]
    view: &'a Steadiness,
    /// Reason why steadiness was not judged.
    steady_why: Option<String>,
    /// Reason why `within` is missing.
    within_why: Option<String>,
    /// Changes of tps; none for fewer than 20 seconds.
    changes: Option<Vec<ChangeDocument<'a>>>,
}

impl<'a> SteadinessDocument<'a> {
    fn new(view: &'a Steadiness) -> Self {
        let change = |view: &'a Change| ChangeDocument {
            with: view.with.iter().map(prose::cause).collect(),
            view,
        };
        let changes = view.changes.as_ref();
        Self {
            steady_why: view.steady_why.as_ref().map(prose::not_judged),
            within_why: view.within_why.as_ref().map(prose::not_judged),
            changes: changes.map(|changes| changes.iter().map(change).collect()),
            view,
        }
    }
}

/// A change of the mean tps within a trial.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Change"))]
struct ChangeDocument<'a> {
    #[serde(flatten)]
    view: &'a Change,
    /// Events and figures that changed at that time. They need not be the cause.
    with: Vec<String>,
}

/// Comparison of side B with side A, treatment by treatment.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CompareView"))]
struct CompareDocument<'a> {
    /// Summary in a sentence or two.
    answer: &'a [String],
    #[serde(flatten)]
    view: &'a CompareView,
    /// Pairs of matching treatments.
    pairs: Vec<PairDocument<'a>>,
    /// Gates, for every pair.
    gates: Vec<GateDocument<'a>>,
    /// Notes that a reader needs to trust or doubt the figures.
    notes: &'a [String],
}

impl<'a> CompareDocument<'a> {
    fn new(report: &'a CompareReport) -> Self {
        let CompareReport { view, answer, notes, gates } = report;
        let pair = |view: &'a PairView| PairDocument {
            ratio: RatioDocument::new(&view.ratio, prose::pair_verdict(view)),
            why: view.why.as_ref().map(|why| WhyDocument::new(why, "A", "B")),
            words: prose::pair(view),
            view,
        };
        let gates = view.gates.iter().zip(gates);
        Self {
            answer,
            pairs: view.pairs.iter().map(pair).collect(),
            gates: gates.map(|(view, words)| GateDocument { view, words }).collect(),
            notes,
            view,
        }
    }
}

/// A treatment of B and the matching treatment of A.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PairView"))]
struct PairDocument<'a> {
    #[serde(flatten)]
    view: &'a PairView,
    /// Ratio of B's tps to A's.
    ratio: RatioDocument<'a>,
    /// Parts of the difference; none if the loads differ or the difference is not significant.
    why: Option<WhyDocument<'a>>,
    /// Comparison as a sentence.
    words: String,
}

/// Result of a gate for one pair.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "GateView"))]
struct GateDocument<'a> {
    #[serde(flatten)]
    view: &'a GateView,
    /// Result as a sentence.
    words: &'a str,
}

/// Imported figures and a run. Nothing is computed between the two: they share neither machine nor
/// repeats.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SideBySideView"))]
struct SideBySideDocument<'a> {
    #[serde(flatten)]
    view: &'a SideBySideView,
    /// Notes on what keeps the two apart.
    notes: Vec<String>,
}

impl<'a> SideBySideDocument<'a> {
    fn new(report: &SideBySideReport<'a>) -> Self {
        Self { view: report.0, notes: prose::side_by_side_notes(report.0) }
    }
}
