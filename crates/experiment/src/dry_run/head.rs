//! The head of a plan in words: the experiment, its load and its treatments.

use pgdyno_model::experiment::{Connect, Length, LoadOptions, OnError, Order, ReconnectLost};
use pgdyno_model::load_rate::LoadRate;
use pgdyno_model::storage::DeviceSettings;
use pgdyno_model::{Stopping, Treatment};
use pgdyno_stats::InterimAnalyses;
use pgdyno_text::format::counted;

use crate::checks::generators::launch_of;
use crate::resolved_experiment::ResolvedExperiment;

/// Describes the experiment and its treatments.
pub(super) fn head(resolved: &ResolvedExperiment, out: &mut String) {
    let (plan, experiment) = (&resolved.plan, &resolved.experiment);
    let order = match experiment.order {
        Order::Interleaved => "interleaved",
        Order::Randomized => "randomized",
        Order::Sequential => "sequential",
    };
    line!(out, "{} (nothing is done: this is the plan)", plan.name);
    if let Some(question) = &plan.question {
        line!(out, "{question}");
    }
    let treatments = counted(plan.treatments.len() as u64, "treatment");
    let most = plan.trials.len();
    let (repeats, trials) = match &plan.stopping {
        None => (counted(experiment.repeats.get(), "repeat"), counted(most as u64, "trial")),
        Some(s) => {
            let least = plan.trials.iter().filter(|t| t.block <= s.floor).count();
            (format!("{} to {} repeats", s.floor, s.ceiling), format!("{least} to {most} trials"))
        }
    };
    line!(out, "{treatments} x {repeats} = {trials}, {order}, seed {}", plan.seed);
    if experiment.seed.is_none() {
        line!(
            out,
            "the seed was drawn for this plan, and each run draws its own; `--set \
             experiment.seed={}` keeps this one",
            plan.seed
        );
    }
    if let Some(stopping) = &plan.stopping {
        self::stopping(stopping, plan.margin, out);
    }
    let length = match plan.length {
        Length::Duration(span) => format!("{span} measured"),
        Length::Transactions(n) => format!("{n} transactions by each client measured"),
    };
    match &plan.find {
        None => line!(out, "each trial: {} warm-up, {length}", plan.warm_up),
        Some(find) => line!(
            out,
            "each trial: looks for the highest rate that keeps {}, to {}%: steps of {} each, the \
             answer confirmed with {length} after {} warm-up",
            find.slo,
            find.resolution * 100.0,
            find.step,
            plan.warm_up
        ),
    }
    if experiment.postgres.connect == Connect::Tcp && !experiment.postgres.is_external() {
        line!(
            out,
            "clients connect by TCP to 127.0.0.1, which is their address too: a server made on \
             this machine has no other host's clients; with `--dsn` they reach a server on another \
             host from here"
        );
    }
    line!(out, "\nTreatments");
    for (number, treatment) in (1..).zip(&plan.treatments) {
        let generators = launch_of(&experiment.generators, treatment);
        self::treatment(number, treatment, generators, out);
    }
}

/// Describes a treatment in a line.
fn treatment(number: usize, treatment: &Treatment, generators: Option<&str>, out: &mut String) {
    let levels = match treatment.levels.to_string() {
        none if none.is_empty() => "(no factors)".to_owned(),
        levels => levels,
    };
    line!(out, "  {number:>3}  {levels}");
    piece!(
        out,
        "       {} at scale {}, {} on {}, {} protocol, storage {}",
        treatment.workload,
        treatment.scale,
        counted(treatment.clients, "client"),
        counted(treatment.threads, "thread"),
        treatment.protocol.name(),
        treatment.storage,
    );
    out.push_str(&options(&treatment.options));
    if !treatment.groups.is_empty() {
        let groups: Vec<String> = treatment.groups.iter().map(ToString::to_string).collect();
        piece!(out, ", groups ({})", groups.join("; "));
    }
    if let Some(version) = treatment.postgres_version {
        piece!(out, ", PostgreSQL {version}");
    }
    if let Some(bindir) = &treatment.postgres_bindir {
        piece!(out, ", programs in {}", bindir.display());
    }
    if let Some(server) = &treatment.server {
        piece!(out, ", server {server}");
    }
    if let Some(generators) = generators {
        piece!(out, ", generators {generators}");
    }
    for (name, value) in &treatment.settings {
        piece!(out, ", {name} = {value}");
    }
    out.push_str(&device(&treatment.device));
    out.push('\n');
}

/// Describes when a run ends by itself.
fn stopping(stopping: &Stopping, margin: Option<f64>, out: &mut String) {
    // To nine digits: 0.03 is not three hundredths.
    let percent = |share: f64| (share * 1e9).round() / 1e7;
    let mut closed = vec!["its two differ significantly".to_owned()];
    closed.extend(margin.map(|m| format!("shown to differ by less than {}%", percent(m))));
    closed.extend(stopping.precision.map(|p| format!("known to ±{}%", percent(p))));
    let looks: Vec<String> = InterimAnalyses::between(stopping.floor, stopping.ceiling)
        .at()
        .iter()
        .map(ToString::to_string)
        .collect();
    line!(
        out,
        "a comparison is decided when {}; looked at after {} blocks, and treatments of no open \
         comparison are measured no more",
        closed.join(", or "),
        looks.join(", ")
    );
    if let Some(budget) = stopping.budget {
        line!(
            out,
            "after {} blocks no block begins that does not fit into {budget}",
            stopping.floor
        );
    }
}

/// Stages of a rate that are listed.
const STAGES: usize = 6;

/// Describes the load options that differ from a closed loop of single tries.
fn options(options: &LoadOptions) -> String {
    let LoadOptions {
        pauses, latency_limit, max_tries, on_error, reconnect, reconnect_lost, ..
    } = options;
    let mut out = String::new();
    match &options.rate {
        None => {}
        Some(rate @ LoadRate::Constant(_)) => {
            piece!(out, ", {rate} transactions due each second");
        }
        Some(LoadRate::Stages(stages)) => {
            let (first, more) = stages.split_at(stages.len().min(STAGES));
            let first: Vec<String> = first.iter().map(ToString::to_string).collect();
            piece!(out, ", transactions due each second: {}", first.join(", "));
            if !more.is_empty() {
                piece!(out, " and {} more", more.len());
            }
        }
    }
    match pauses {
        Some(0.0) => out.push_str(", without keying and think times"),
        Some(1.0) => out.push_str(", with keying and think times"),
        Some(factor) => piece!(out, ", keying and think times × {factor}"),
        None => {}
    }
    if let Some(limit) = latency_limit {
        piece!(out, ", latency limit {limit}");
    }
    match max_tries {
        0 => out.push_str(", tries without end"),
        1 => {}
        n => piece!(out, ", at most {n} tries"),
    }
    match on_error {
        OnError::AbortClient => {}
        OnError::AbortAll => out.push_str(", an error ends the load"),
        OnError::Continue => out.push_str(", clients go on after errors"),
    }
    if *reconnect {
        out.push_str(", a connection for each transaction");
    }
    match reconnect_lost {
        ReconnectLost::Never => {}
        ReconnectLost::UpTo(most) => {
            piece!(out, ", lost connections made anew, at most {most} in a row");
        }
        ReconnectLost::Always => out.push_str(", lost connections made anew"),
    }
    for (name, value) in &options.define {
        piece!(out, ", :{name} = {value}");
    }
    out
}

/// Describes the device settings of a treatment.
pub(super) fn device(device: &DeviceSettings) -> String {
    let DeviceSettings { scheduler, read_ahead_kb, nr_requests, write_cache, raid_cache, .. } =
        device;
    let settings = [
        ("scheduler", scheduler.as_ref().map(ToString::to_string)),
        ("read_ahead_kb", read_ahead_kb.as_ref().map(ToString::to_string)),
        ("nr_requests", nr_requests.as_ref().map(ToString::to_string)),
        ("write_cache", write_cache.as_ref().map(ToString::to_string)),
        ("raid_cache", raid_cache.map(|policy| policy.name().to_owned())),
    ];
    let mut out = String::new();
    for (name, value) in settings {
        if let Some(value) = value {
            piece!(out, ", device.{name} = {value}");
        }
    }
    out
}
