//! Notes that a reader needs to trust or doubt the figures.

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_model::facts::{BuildSource, HostFacts};
use pgdyno_model::measurement::GeneratorLimit;
use pgdyno_model::record::RunState;
use pgdyno_text::format::{self, counted};

use super::idle_device::idle_device;
use super::noise_floor::noise_floor;
use super::noise_prior::{conditioned, noise_prior};
use super::{
    capacity, factors, flush_accounting, growth, record, scaling, stopping, storage, unsteady,
};
use crate::note::{Note, NoteKind, NoteList};
use pgdyno_analysis::{Observations, RunView, SessionView, TrialState, TrialView, label};

/// Returns first the notes that could change a verdict, then those that explain it: only the first
/// few are always printed.
pub(crate) fn notes(view: &RunView) -> Vec<Note> {
    let watched = &view.observations;
    let mut doubts = NoteList::default();
    let mut context = NoteList::default();
    progress(view, &mut doubts);
    storage::emulated(view, &mut doubts);
    storage::not_durable(view, &mut doubts);
    doubts.add_all(NoteKind::AdHoc, record::ad_hoc(view));
    failures(view, &mut doubts);
    flush_accounting::notes(view, &mut doubts);
    server(view, watched, &mut doubts, &mut context);
    hosts(view, &mut doubts);
    doubts.add_all(NoteKind::BusyHost, busy_host(view));
    doubts.add_all(NoteKind::IdleDevice, idle_device(&watched.idle_device, &view.plan));
    generator_limited(view, &mut doubts);
    generator(view, watched, &mut doubts, &mut context);
    statistics(view, &mut doubts, &mut context);
    context.add_all(NoteKind::Capacity, capacity::how_found(view));
    context.add_all(NoteKind::Stopping, stopping_of(view));
    context.add_all(NoteKind::Extended, record::extended(view));
    if view.treatments.iter().any(|t| t.trials > 0) {
        context.add(NoteKind::NoiseFloor, noise_floor(view.noise_floor.as_ref()));
    }
    context.add_all(NoteKind::Conditioning, view.plan.conditioning.as_ref().map(conditioned));
    context.add_all(NoteKind::NoisePrior, view.noise_prior.as_ref().map(noise_prior));
    context.add_all(NoteKind::Interaction, factors::interactions(view));
    context.add_all(NoteKind::Course, factors::courses(view));
    context.add_all(NoteKind::Scaling, view.scaling.iter().map(scaling::scaling));
    ceiling(view, &mut context);
    data(view, &mut context);
    context.add_all(NoteKind::Growth, growth::notes(view));
    context.add_all(NoteKind::RowsADay, growth::rows_a_day(view));
    environment(view, watched, &mut context);
    context.add_all(NoteKind::Thinned, view.thinned.iter().map(record::thinned));
    doubts.followed_by(context)
}

/// Renders the state of a run that may end by itself; none for one of fixed repeats.
fn stopping_of(view: &RunView) -> Option<String> {
    let stopping = view.plan.stopping.as_ref()?;
    Some(stopping::stopping(&view.plan, stopping, view.stopping.as_ref()?))
}

fn progress(view: &RunView, out: &mut NoteList) {
    let (done, planned) = (view.run.trials_completed, view.run.trials_planned);
    let resume = match view.ad_hoc {
        true => "`pgdyno pgbench --store` measures anew".to_owned(),
        false => format!("`pgdyno run --resume {}` continues it", view.run.id),
    };
    let most = if view.plan.stopping.is_some() { "at most " } else { "" };
    match view.run.state {
        RunState::Completed => {}
        RunState::Running => {
            out.add(NoteKind::Progress, format!(
                "The run is not over: {done} of {most}{planned} trials are completed."
            ));
        }
        RunState::Failed => out.add(NoteKind::Progress, format!(
            "Trials failed or could not be run: {done} of {most}{planned} are completed; {resume}."
        )),
        RunState::Interrupted => {
            out.add(NoteKind::Progress, format!(
                "The run was interrupted: {done} of {most}{planned} trials are completed; {resume}."
            ));
        }
    }
    let not_crashed = &view.run.not_crashed;
    if !not_crashed.is_empty() && view.run.state != RunState::Running {
        out.add(
            NoteKind::NotCrashed,
            format!(
                "Crash tests were asked for and are not done to the end: {}; {resume}.",
                not_crashed.join("; ")
            ),
        );
    }
    for t in &view.treatments {
        if let Some(why) = &t.unavailable {
            out.add(NoteKind::NotAvailable, format!("Not available here: {}: {why}.", t.label));
        }
    }
    let missing: Vec<&str> = view
        .treatments
        .iter()
        .filter(|t| t.trials == 0 && t.unavailable.is_none())
        .map(|t| t.label.as_str())
        .collect();
    if !missing.is_empty() && missing.len() < view.treatments.len() {
        out.add(
            NoteKind::NoTrial,
            format!("No completed trial, so nothing is known of: {}.", missing.join("; ")),
        );
    }
}

fn failures(view: &RunView, out: &mut NoteList) {
    let name = |t: &TrialView| {
        format!("trial {} ({}, repeat {})", t.ordinal + 1, label(&t.factors), t.repeat)
    };
    for t in &view.trials {
        if let Some(failure) = &t.failure {
            let later = view
                .trials
                .iter()
                .any(|o| o.ordinal == t.ordinal && o.state == TrialState::Completed);
            let later = if later { " (another attempt was completed)" } else { "" };
            out.add(NoteKind::TrialFailed, format!("Failed: {}: {failure}{later}.", name(t)));
        }
        if t.aborted_clients > 0 {
            let met = t.abort_reasons.first().map_or_else(String::new, |r| format!(": {r}"));
            out.add(
                NoteKind::ClientsGaveUp,
                format!("Clients that gave up in {}: {}{met}.", name(t), t.aborted_clients),
            );
        }
        let Some(count) = t.server_count.as_ref().filter(|_| t.state == TrialState::Completed)
        else {
            continue;
        };
        if let (Some(rows), Some(expected)) = (count.rows, count.rows_expected)
            && rows != expected
        {
            out.add(NoteKind::RowsDiffer, format!(
                "In {} the server holds {rows} new rows where the acknowledged transactions make \
                 {expected}.",
                name(t)
            ));
        }
    }
    let mut states: BTreeMap<&str, u64> = BTreeMap::new();
    for (state, count) in view.treatments.iter().flat_map(|t| &t.failures) {
        *states.entry(state).or_default() += count;
    }
    if !states.is_empty() {
        let each: Vec<String> =
            states.iter().map(|(s, n)| format!("{} × {s}", format::count(*n))).collect();
        out.add(
            NoteKind::Errors,
            format!("Transactions that ended in an error, by SQLSTATE: {}.", each.join(", ")),
        );
    }
}

fn statistics(view: &RunView, out: &mut NoteList, context: &mut NoteList) {
    let measured: Vec<_> = view.treatments.iter().filter(|t| t.trials > 0).collect();
    if !measured.is_empty() && measured.iter().all(|t| t.trials == 1) {
        out.add(
            NoteKind::OneRepeat,
            "One repeat only: no interval, so that no difference can be told from chance."
                .to_owned(),
        );
    } else {
        for t in measured.iter().filter(|t| t.tps.as_ref().is_some_and(|tps| tps.ci95.is_none())) {
            let reason = t.reason.as_ref().map(|reason| format!("{}: {reason}.", t.label));
            out.add_all(NoteKind::NoInterval, reason);
        }
    }
    let judged = view.comparisons.iter().filter(|c| c.ratio.ci95.is_some()).count();
    if judged > 1 {
        context.add(
            NoteKind::JudgedTogether,
            format!(
                "Verdicts and intervals hold for all {judged} comparisons together: were nothing \
                 different, 19 of 20 such runs would find nothing."
            ),
        );
    }
    if view.plan.is_sequential() {
        out.add(NoteKind::Sequential,
            "The repeats of a treatment ran one after the other: a drift of the machine would look \
             like a difference. `order = \"randomized\"` guards against that."
                .to_owned(),
        );
    }
    unsteady::drift(&measured, out);
    unsteady::steadiness(view, out);
    let few: Vec<&str> = measured
        .iter()
        .filter(|t| t.latency_us.as_ref().is_some_and(|l| l.count < 1000))
        .map(|t| t.label.as_str())
        .collect();
    if !few.is_empty() {
        out.add(
            NoteKind::FewTransactions,
            format!(
                "Fewer than 1,000 transactions, so that p99 is little more than the maximum: {}.",
                few.join("; ")
            ),
        );
    }
}

/// Names trials that may have measured the load generator.
fn generator_limited(view: &RunView, out: &mut NoteList) {
    let trials: Vec<String> = view
        .trials
        .iter()
        .filter(|t| t.state == TrialState::Completed && t.generator_limit.is_some())
        .map(|t| (t.ordinal + 1).to_string())
        .collect();
    if !trials.is_empty() {
        out.add(
            NoteKind::GeneratorLimited,
            format!(
                "Generator-limited: trials {}. Comparisons drawn from them say so.",
                trials.join(", ")
            ),
        );
    }
}

fn ceiling(view: &RunView, out: &mut NoteList) {
    for (t, plan) in view.treatments.iter().zip(&view.plan.treatments) {
        if let (Some(tps), Some(rate), 1) = (&t.tps, t.fsync_per_second, plan.clients) {
            out.add(NoteKind::Ceiling, format!(
                "{}: one client reached {}% of the {} flushes/s that one writer gets from storage \
                 `{}`.",
                t.label,
                format::percent(tps.mean / rate),
                format::rate(rate),
                plan.storage
            ));
        }
        out.add_all(NoteKind::ClosedLoop, scaling::closed_loop(t, plan));
    }
}

fn server(view: &RunView, watched: &Observations, out: &mut NoteList, context: &mut NoteList) {
    let fetched =
        view.servers.iter().filter(|s| matches!(s.build, BuildSource::Fetched { .. })).count();
    if fetched > 0 {
        context.add(
            NoteKind::FetchedBuild,
            "The server is a fetched build: compiled for size, without lz4, zstd and io_uring. \
             Good for a first look; `pgdyno doctor` says how to get the distribution's."
                .to_owned(),
        );
    }
    if fetched > 0 && fetched < view.servers.len() {
        out.add(
            NoteKind::MixedBuilds,
            "Some trials ran on a fetched build and some on one found here: what differs between \
             them may be how they were compiled."
                .to_owned(),
        );
    }
    let versions: BTreeSet<&str> = view.servers.iter().map(|s| s.version.as_str()).collect();
    let chosen = view.plan.factors.iter().any(|f| f == "postgres.version")
        || view.plan.treatments.iter().any(|t| t.postgres_bindir.is_some() || t.server.is_some());
    if versions.len() > 1 && !chosen {
        out.add(NoteKind::DifferentBuilds, format!(
            "Trials ran on {} different builds of PostgreSQL, which is not one of the factors: see \
             the settings.",
            versions.len()
        ));
    }
    if watched.fsync_off {
        out.add(
            NoteKind::FsyncOff,
            "fsync was off: what this server acknowledged would not have survived a power loss."
                .to_owned(),
        );
    }
    if let Some((measured, timeout)) = watched.shorter_than_checkpoints {
        out.add(NoteKind::NoCheckpoint, format!(
            "Trials of {} are shorter than checkpoint_timeout ({} s): what checkpoints cost is not \
             in these numbers.",
            format::duration(measured),
            format::seconds(timeout)
        ));
    }
}

/// Says how the rows were generated, as far as it may matter to storage.
fn data(view: &RunView, out: &mut NoteList) {
    let loading = &view.plan.loading;
    if view.ad_hoc || view.treatments.iter().all(|t| t.trials == 0) {
        return;
    }
    let filler = match loading.filler_compress_percentage {
        100 => {
            "all blanks, as pgbench's is: a filesystem that compresses shrinks it to nearly nothing"
                .to_owned()
        }
        blanks => format!("{blanks}% blanks and the rest drawn from 64 characters"),
    };
    let partitions = match loading.partitions {
        0 => String::new(),
        n => format!("; tables that can be were cut into {n} partitions"),
    };
    let settings: Vec<String> =
        loading.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let settings = match settings.is_empty() {
        true => String::new(),
        false => format!("; they were loaded under {}", settings.join(", ")),
    };
    out.add(NoteKind::Data, format!("Filler in the rows was {filler}{partitions}{settings}."));
}

/// Says how much of its threads the load generator used.
fn generator(view: &RunView, watched: &Observations, out: &mut NoteList, context: &mut NoteList) {
    if let Some((cpus, threads)) = watched.generator {
        let used = format!(
            "The load generator used up to {} CPUs for its {threads} {}",
            format::times(cpus),
            if threads == 1 { "thread" } else { "threads" }
        );
        let given = view.servers.iter().any(|s| matches!(s.build, BuildSource::Given { .. }));
        if cpus >= 0.9 * f64::from(threads) {
            out.add(
                NoteKind::GeneratorBusy,
                format!(
                    "{used}: it may itself have been the limit; give it more with `load.threads`."
                ),
            );
        } else if let Some((limit, threads, clients)) = watched.limit {
            let remedy = match limit {
                GeneratorLimit::HeldBack(_) => "more CPU time for pgdyno",
                _ if threads < clients => "more `load.threads`",
                _ => "fewer `load.clients`, or a generator on another machine",
            };
            let many = if watched.limited == 1 { "a trial" } else { "several trials" };
            out.add(
                NoteKind::GeneratorBusy,
                format!(
                    "In {many} {limit}: it may itself have been the limit; {remedy} would tell."
                ),
            );
        } else if !given {
            let all = view.sessions.first().map_or(0, |s| s.host.cpus);
            context.add(
                NoteKind::GeneratorUse,
                format!("{used}, on the machine of the server, which has {all}."),
            );
        }
    }
}

/// Says that sessions ran on different hosts or storages.
fn hosts(view: &RunView, out: &mut NoteList) {
    let pairs = view.sessions.windows(2);
    let machine = |a: &HostFacts, b: &HostFacts| a.is_other_than(b).then_some("machine");
    let different: BTreeSet<&str> = pairs
        .map(|pair| (&pair[0].host, &pair[1].host))
        .flat_map(|(a, b)| a.differences(b).into_iter().chain(machine(a, b)))
        .collect();
    if !different.is_empty() {
        let different: Vec<&str> = different.into_iter().collect();
        out.add(
            NoteKind::HostsDiffer,
            format!(
                "The sessions ran on hosts that differ ({}): their trials may not be comparable.",
                different.join(", ")
            ),
        );
    } else if view.sessions.windows(2).any(|pair| {
        let of = |i: usize| -> Vec<_> {
            let s: &SessionView = &pair[i];
            s.storage
                .iter()
                .map(|s| (&s.name, &s.directory, &s.device, &s.filesystem, &s.mount_options))
                .collect()
        };
        of(0) != of(1)
    }) {
        out.add(
            NoteKind::StoragesDiffer,
            "The sessions used different storage: their trials may not be comparable.".to_owned(),
        );
    }
}

/// Names the session that began on the busiest machine, where that was not idle.
fn busy_host(view: &RunView) -> Option<String> {
    /// Share of the CPUs from which other work may be felt.
    const BUSY: f64 = 0.25;
    let loads = view.sessions.iter().filter_map(|s| Some((s.host.load_average?, s.host.cpus)));
    let share = |(load, cpus): &(f64, u32)| load / f64::from(*cpus).max(1.0);
    let busiest = loads.max_by(|a, b| share(a).total_cmp(&share(b)))?;
    (share(&busiest) > BUSY).then(|| {
        format!(
            "The machine was not idle as the run began: its load average over a minute was {:.1} \
             on {}.",
            busiest.0,
            counted(busiest.1, "CPU")
        )
    })
}

fn environment(view: &RunView, watched: &Observations, out: &mut NoteList) {
    for reactor in &watched.reactors {
        out.add(NoteKind::Reactor, format!("The load's bytes were carried by {reactor}."));
    }
    for (probe, trials) in &watched.resets {
        let trials: Vec<String> = trials.iter().map(ToString::to_string).collect();
        out.add(NoteKind::CounterReset, format!(
            "Counters of `{probe}` were reset while they were watched (trials {}): those intervals \
             have no rate.",
            trials.join(", ")
        ));
    }
    observer(view, out);
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (probe, why) in &watched.unavailable {
        by_reason.entry(why).or_default().push(format!("`{probe}`"));
    }
    let missing: Vec<String> =
        by_reason.iter().map(|(why, probes)| format!("{} ({why})", probes.join(", "))).collect();
    if !missing.is_empty() {
        out.add(
            NoteKind::TelemetryMissing,
            format!("Telemetry that is missing or incomplete: {}.", missing.join("; ")),
        );
    }
}

/// Notes the most CPU that watching took: it is part of what was measured.
fn observer(view: &RunView, out: &mut NoteList) {
    /// Share of one core from which watching may be felt on small machines.
    const MUCH: f64 = 0.01;
    let costs = view.trials.iter().filter_map(|t| t.observer);
    let Some(most) = costs.max_by(|a, b| a.cpus().total_cmp(&b.cpus())) else { return };
    let backends = match most.backends_cpus {
        Some(cpus) => format!("{}% in the server's backends that answered", format::percent(cpus)),
        None => "what the server's backends spent on it is not known".to_owned(),
    };
    let remedy = if most.cpus() > MUCH {
        "; a longer `telemetry.interval` or `telemetry.wait_events` makes it less"
    } else {
        ""
    };
    out.add(
        NoteKind::ObserverCost,
        format!(
            "Watching cost up to {}% of one core ({}% in pgdyno, {backends}){remedy}.",
            format::percent(most.cpus()),
            format::percent(most.sampler_cpus)
        ),
    );
}
