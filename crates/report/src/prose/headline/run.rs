//! The verdict card of a run.

use pgdyno_model::AnswerKind;
use pgdyno_model::record::RunState;
use pgdyno_text::format;

use super::super::answer::next;
use super::super::phrases::{interval, tps_of};
use super::super::shell::command_line;
use super::{SENTENCES, figure, joined, range};
use crate::CrashView;
use crate::headline::{Headline, KeyFigure, Panel, Proof, ProofKind};
use crate::note::{Note, NoteKind};
use pgdyno_analysis::badge::{answer_kind, badge};
use pgdyno_analysis::effect::asked_comparisons;
use pgdyno_analysis::question::asked_levels;
use pgdyno_analysis::{
    Badge, Comparison, RunView, TreatmentView, TrialState, TrialView, noise_floor,
};

/// Difference of equal treatments from which a host is noisy (a share).
const NOISY: f64 = 0.05;

/// Makes the card of an analysed run from its answer and notes.
pub(crate) fn run_headline(
    view: &RunView,
    crashes: &[CrashView],
    answer: &[String],
    notes: &[Note],
) -> Headline {
    let badge = badge(view);
    let next = next::command(view, answer_kind(view));
    let is_answer = |said: &&String| next.as_ref().is_none_or(|next| next.sentence != **said);
    let answer: Vec<&str> =
        answer.iter().filter(is_answer).take(SENTENCES).map(String::as_str).collect();
    let figures = [speed(view), difference(view), promise(view, crashes)];
    Headline {
        question: view.run.question.clone(),
        badge,
        answer: answer.join(" "),
        figures: figures.into_iter().flatten().collect(),
        command: command(view, crashes, badge, next),
        proofs: proofs(view, crashes, notes),
    }
}

fn best(view: &RunView) -> Option<&TreatmentView> {
    let highest = || {
        let tps = |t: &TreatmentView| t.tps.as_ref().map(|tps| tps.mean);
        let measured = view.treatments.iter().filter(|t| tps(t).is_some());
        measured.max_by(|a, b| tps(a).partial_cmp(&tps(b)).unwrap_or(std::cmp::Ordering::Equal))
    };
    view.best.and_then(|best| view.treatments.get(best)).or_else(highest)
}

fn speed(view: &RunView) -> Option<KeyFigure> {
    let best = best(view)?;
    let tps = best.tps.as_ref()?;
    let (name, unit) = match (&view.plan.find, view.treatments.len()) {
        (Some(_), _) => ("maximum rate", "transactions/s".to_owned()),
        (None, 1) => ("throughput", tps_of(&view.plan)),
        (None, _) => ("highest throughput", tps_of(&view.plan)),
    };
    let interval = interval(tps);
    let interval = interval.trim().trim_start_matches('(').trim_end_matches(')').to_owned();
    let label = (view.treatments.len() > 1).then(|| best.label.clone());
    let a_minute = || format!("{} a minute", format::rate(60.0 * tps.mean));
    let a_minute = view.plan.headline.as_ref().map(|_| a_minute());
    let detail = joined([Some(interval), a_minute, label]);
    Some(figure(name, format!("{} {unit}", format::rate(tps.mean)), detail))
}

/// Shows the difference that the question is about: the noise floor, the asked level's effect, or
/// the best against the runner-up.
fn difference(view: &RunView) -> Option<KeyFigure> {
    match answer_kind(view) {
        AnswerKind::AA => floor(view),
        AnswerKind::Effect => effect(view).or_else(|| runner_up(view)),
        _ => runner_up(view),
    }
}

fn floor(view: &RunView) -> Option<KeyFigure> {
    let [a, b] = noise_floor::same_pair(&view.plan)?;
    let is_same = |c: &&Comparison| [(a, b), (b, a)].contains(&(c.treatment, c.to));
    let ratio = &view.comparisons.iter().find(is_same)?.ratio;
    let ci95 = ratio.ci95?;
    let value = format!("{}%", format::percent(noise_floor::farther(ci95)));
    Some(figure("noise floor", value, joined([Some(format!("ratio {}", range(ci95)))])))
}

fn effect(view: &RunView) -> Option<KeyFigure> {
    let (factor, level, against) = asked_levels(&view.plan)?;
    let name = |this: &str, that: &str| format!("{factor}={this} against {factor}={that}");
    let times = |ratio: f64| format!("{}×", format::times(ratio));
    if let Some(effect) = &view.effect {
        let significant = not_significant(Some(effect.significant));
        let over = format!("on average over {} combinations", effect.combinations);
        let detail = joined([Some(range(effect.ci95)), significant, Some(over)]);
        return Some(figure(&name(&level, &against), times(effect.ratio), detail));
    }
    let size = |c: &Comparison| c.ratio.value.filter(|v| *v > 0.0).map_or(0.0, |v| v.ln().abs());
    let weight = |c: &Comparison| (c.ratio.significant == Some(true), size(c));
    let most = asked_comparisons(view)
        .into_iter()
        .max_by(|a, b| weight(a).partial_cmp(&weight(b)).unwrap_or(std::cmp::Ordering::Equal))?;
    let label = |index: usize| Some(view.treatments.get(index)?.factors.get(&factor)?.to_string());
    let (this, that) = (label(most.treatment)?, label(most.to)?);
    let (value, ci95) = (most.ratio.value.filter(|value| *value > 0.0)?, most.ratio.ci95);
    let is_turned = this == against && that == level;
    let (this, that) = if is_turned { (that, this) } else { (this, that) };
    let (value, ci95) = if is_turned { turned(value, ci95) } else { (value, ci95) };
    let given = (!most.given.is_empty()).then(|| format!("with {}", most.given));
    let detail = joined([ci95.map(range), not_significant(most.ratio.significant), given]);
    Some(figure(&name(&this, &that), times(value), detail))
}

fn runner_up(view: &RunView) -> Option<KeyFigure> {
    let best = view.best?;
    let tps = |t: &TreatmentView| t.tps.as_ref().map(|tps| tps.mean);
    let others = view.treatments.iter().filter(|t| t.index != best && t.not_ranked.is_none());
    let second = others
        .filter(|t| tps(t).is_some())
        .max_by(|a, b| tps(a).partial_cmp(&tps(b)).unwrap_or(std::cmp::Ordering::Equal))?;
    let ratio = second.ratio_to_best.as_ref()?;
    let (value, ci95) = turned(ratio.value.filter(|value| *value > 0.0)?, ratio.ci95);
    let detail = joined([
        ci95.map(range),
        not_significant(ratio.significant),
        Some(format!("against {}", second.label)),
    ]);
    Some(figure("lead over the runner-up", format!("{}×", format::times(value)), detail))
}

/// Returns the inverse ratio.
fn turned(value: f64, ci95: Option<[f64; 2]>) -> (f64, Option<[f64; 2]>) {
    (1.0 / value, ci95.filter(|[low, _]| *low > 0.0).map(|[low, high]| [1.0 / high, 1.0 / low]))
}

fn not_significant(significant: Option<bool>) -> Option<String> {
    (significant == Some(false)).then(|| "not significant".to_owned())
}

/// Shows the verdict of crash tests; p99 without any.
fn promise(view: &RunView, crashes: &[CrashView]) -> Option<KeyFigure> {
    if let Some(crash) = gravest(crashes) {
        let rounds: usize = crashes.iter().map(|crash| crash.rounds).sum();
        let lost = format!("{} lost", format::count(crash.lost));
        let detail = joined([Some(format::counted(rounds as u64, "round")), Some(lost)]);
        return Some(figure("crash tests", crash.verdict.to_string(), detail));
    }
    let best = best(view)?;
    let latency = best.latency_us.as_ref()?;
    let label = (view.treatments.len() > 1).then(|| best.label.clone());
    let value = format!("{} ms", format::milliseconds(latency.p99));
    Some(figure("p99 latency", value, joined([label])))
}

fn gravest(crashes: &[CrashView]) -> Option<&CrashView> {
    crashes.iter().max_by_key(|crash| crash.verdict)
}

fn command(
    view: &RunView,
    crashes: &[CrashView],
    badge: Badge,
    next: Option<next::Next>,
) -> Option<String> {
    let run = view.run.id.as_str();
    match (badge, view.run.state) {
        (Badge::Unsafe, _) => command_line(&["pgdyno", "show", &gravest(crashes)?.id]),
        // Another process works on it.
        (_, RunState::Running) => None,
        (Badge::Unfinished, _) if view.ad_hoc => None,
        (Badge::Unfinished, _) => command_line(&["pgdyno", "run", "--resume", run]),
        _ => next.and_then(|next| next.command),
    }
}

fn proofs(view: &RunView, crashes: &[CrashView], notes: &[Note]) -> Vec<Proof> {
    let completed =
        || view.trials.iter().enumerate().filter(|(_, t)| t.state == TrialState::Completed);
    let first = |is: &dyn Fn(&TrialView) -> bool| completed().find(|(_, t)| is(t)).map(|(i, _)| i);
    let count = |is: &dyn Fn(&TrialView) -> bool| completed().filter(|(_, t)| is(t)).count();
    let noted = |kind: NoteKind| notes.iter().any(|note| note.kind == kind);
    let proof = |kind, text: String, panel, trial| Proof { kind, text, panel, trial };
    let all = completed().count();
    let mut out = Vec::new();
    out.extend(gravest(crashes).map(|crash| {
        proof(ProofKind::Crash, format!("crash tests: {}", crash.verdict), Panel::Safety, None)
    }));
    let differs = |t: &TrialView| {
        t.server_count.as_ref().is_some_and(|c| c.rows.is_some() && c.rows != c.rows_expected)
    };
    if noted(NoteKind::RowsDiffer) {
        let text = "the server holds other rows than were acknowledged".to_owned();
        out.push(proof(ProofKind::RowsDiffer, text, Panel::Time, first(&differs)));
    }
    let early = |t: &TrialView| t.flush_accounting.as_ref().is_some_and(|found| found.early > 0);
    if count(&early) > 0 {
        let text =
            format!("commits acknowledged without a flush in {} of {all} trials", count(&early));
        out.push(proof(ProofKind::EarlyAcknowledgements, text, Panel::Time, first(&early)));
    }
    if noted(NoteKind::FsyncOff) {
        out.push(proof(ProofKind::FsyncOff, "fsync off".to_owned(), Panel::Environment, None));
    }
    let limited = |t: &TrialView| t.generator_limit.is_some();
    if count(&limited) > 0 {
        let text = format!("generator-limited in {} of {all} trials", count(&limited));
        out.push(proof(ProofKind::GeneratorLimited, text, Panel::Time, first(&limited)));
    }
    let unsteady = |t: &TrialView| t.steadiness.as_ref().is_some_and(|s| s.steady == Some(false));
    if count(&unsteady) > 0 {
        let text = format!("never steady in {} of {all} trials", count(&unsteady));
        out.push(proof(ProofKind::NotSteady, text, Panel::Time, first(&unsteady)));
    }
    if let Some(floor) = view.noise_floor.as_ref().filter(|floor| floor.floor >= NOISY) {
        let share = format::percent(floor.floor);
        let text = format!("noisy host: equal treatments differ by up to {share}%");
        out.push(proof(ProofKind::NoisyHost, text, Panel::Treatments, None));
    }
    if noted(NoteKind::NoCheckpoint) {
        let text = "trials shorter than checkpoint_timeout".to_owned();
        out.push(proof(ProofKind::ShortTrials, text, Panel::Time, first(&|_| true)));
    }
    out
}
