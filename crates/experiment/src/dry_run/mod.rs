//! `--dry-run`: the whole plan in words, every trial in order, every step that would touch the
//! host.
//!
//! The text names parts of the machine. The caller collects them in a [`Machine`].

#[macro_use]
mod lines;
mod head;
mod storages;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use head::head;
use pgdyno_dataset as dataset;
use pgdyno_exec::account::Account;
use pgdyno_model::Treatment;
use pgdyno_model::crash::States;
use pgdyno_model::experiment::ProbeKind;
use pgdyno_model::units::Span;
use pgdyno_postgres::{ClusterSpec, Install, Judgement};
use pgdyno_text::format::counted;
pub use storages::{FilesRoom, PlannedStorage, design_storages};

use crate::checks;
use crate::clusters::{Build, ClusterKey};
use crate::estimate::{self, TimeEstimate};
use crate::footprint::{self, RoomNeeded};
use crate::resolved_experiment::ResolvedExperiment;
use crate::settings::base_settings;

/// Stands for what is drawn at random when a cluster is really made.
const DRAWN: &str = "pgdyno-XXXXXXXX";

/// The parts of a machine that a plan's text names.
pub struct Machine {
    /// The account that runs servers.
    pub account: Account,
    /// The folder of servers' sockets.
    pub socket_base: PathBuf,
    /// The directory of storages that name none.
    pub default_storage: PathBuf,
    /// The programs of each build that the plan uses.
    pub programs: BTreeMap<Build, BuildPrograms>,
    /// The storages of the plan, by name.
    pub storages: BTreeMap<String, PlannedStorage>,
    /// The directories where storages that can be made have their files.
    pub files: Vec<FilesRoom>,
}

/// Programs of a build, on a machine.
pub enum BuildPrograms {
    /// Installed, with the judgement of the server program on the settings of its treatments.
    Installed(Install, Judgement),
    /// To be fetched, in this version.
    ToFetch(String),
}

/// Describes the plan of `resolved` on `machine`; without one, on external servers.
pub fn dry_run(resolved: &ResolvedExperiment, machine: Option<&Machine>) -> String {
    let mut out = String::new();
    head(resolved, &mut out);
    trials(resolved, &mut out);
    match machine {
        Some(machine) => steps(resolved, machine, &mut out),
        None => given_steps(resolved, &mut out),
    }
    closing(resolved, machine, &mut out);
    out
}

fn trials(resolved: &ResolvedExperiment, out: &mut String) {
    line!(out, "\nTrials, in order");
    line!(out, "    #  block  repeat  treatment");
    let certain = resolved.plan.stopping.as_ref().map_or(u32::MAX, |s| s.floor);
    for trial in resolved.plan.trials.iter().filter(|t| t.block <= certain) {
        let levels = &resolved.plan.treatments[trial.treatment].levels;
        line!(
            out,
            "  {:>3}  {:>5}  {:>6}  {:>3}  {levels}",
            trial.ordinal + 1,
            trial.block,
            trial.repeat,
            trial.treatment + 1
        );
    }
    if let Some(stopping) = resolved.plan.stopping.as_ref().filter(|s| s.ceiling > s.floor) {
        line!(
            out,
            "  then up to {} blocks more, each of the treatments whose comparisons are open",
            stopping.ceiling - stopping.floor
        );
    }
}

/// Returns the specification of the cluster of `key`, made by the programs of `install`.
fn spec(
    resolved: &ResolvedExperiment,
    machine: &Machine,
    key: &ClusterKey,
    install: &Install,
) -> ClusterSpec {
    let storage = &resolved.experiment.storage[&key.storage];
    let cluster_on = |name: &str| directory(machine, name).join(DRAWN);
    ClusterSpec {
        install: install.clone(),
        directory: cluster_on(&key.storage),
        wal: storage.wal.as_deref().map(cluster_on),
        tablespaces: storage.tablespaces.keys().map(|name| cluster_on(name)).collect(),
        initdb: resolved.experiment.postgres.initdb.clone(),
        settings: base_settings(resolved),
        connect: resolved.experiment.postgres.connect,
        listen: resolved.experiment.postgres.listen,
        account: machine.account.clone(),
        socket_base: machine.socket_base.clone(),
        is_clone: false,
    }
}

fn directory(machine: &Machine, storage: &str) -> PathBuf {
    machine.storages[storage].stack.path()
}

/// Says whether the settings for a server of `build` were checked; none where there are no
/// settings.
fn judgement(
    resolved: &ResolvedExperiment,
    build: &Build,
    programs: &BuildPrograms,
) -> Option<String> {
    let settings = resolved.settings_on(Some(build));
    let (Some(first), n) = (settings.first(), settings.len()) else { return None };
    let what = if n == 1 { format!("the setting {}", first.0) } else { format!("{n} settings") };
    Some(match programs {
        BuildPrograms::Installed(_, Judgement::Taken) => {
            format!("checked: this build takes {what}, by name and value")
        }
        BuildPrograms::Installed(_, Judgement::NotAsked(why)) => {
            format!("not checked: {what}; {why}")
        }
        BuildPrograms::ToFetch(_) => {
            format!("not checked: {what}; this build is not here to be asked")
        }
    })
}

/// Describes how storages and clusters are made on `machine`, and loaded.
pub fn making(resolved: &ResolvedExperiment, machine: &Machine) -> String {
    let mut text = String::new();
    let out = &mut text;
    storages::making(resolved, &machine.storages, out);
    for (number, (key, treatment)) in (1..).zip(resolved.clusters()) {
        line!(
            out,
            "\nCluster {number}: storage {}, {} at scale {}",
            key.storage,
            key.data,
            key.scale
        );
        let programs = &machine.programs[&key.build];
        match programs {
            BuildPrograms::Installed(install, _) => {
                line!(out, "  PostgreSQL {} in {}", install.version, install.bindir.display());
                let steps = spec(resolved, machine, &key, install).steps();
                steps.iter().for_each(|step| step!(out, "{step}"));
            }
            BuildPrograms::ToFetch(version) => {
                step!(
                    out,
                    "fetch PostgreSQL {version} from Maven Central and unpack it into the cache"
                );
                let directory = directory(machine, &key.storage).join(DRAWN);
                step!(out, "make a cluster in {}", directory.display());
            }
        }
        if let Some(words) = judgement(resolved, &key.build, programs) {
            step!(out, "{words}");
        }
        let settings = resolved.settings_of(&key);
        if !settings.is_empty() {
            let settings = assignments(settings.iter().map(|(name, value)| (name, value)));
            step!(out, "let the server judge, without effect: {settings}");
        }
        for (name, tables) in &resolved.experiment.storage[&key.storage].tablespaces {
            let tables = tables.join(", ");
            step!(
                out,
                "SQL: CREATE TABLESPACE \"pgdyno_{name}\" in the directory there, for {tables}, \
                 indexes included"
            );
        }
        step!(out, "SQL: CREATE DATABASE pgdyno");
        loading(resolved, &key, treatment, Some(machine), out);
    }
    text
}

/// Writes settings as a line of the plan names them.
fn assignments<'a>(settings: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    let settings = settings.into_iter().map(|(name, value)| format!("{name} = {value}"));
    settings.collect::<Vec<_>>().join(", ")
}

fn steps(resolved: &ResolvedExperiment, machine: &Machine, out: &mut String) {
    out.push_str(&making(resolved, machine));
    let fsync = resolved.experiment.telemetry.fsync;
    if !fsync.0.is_zero() {
        line!(out, "\nBefore the first trial");
        for name in resolved.storages() {
            let path = directory(machine, name);
            step!(
                out,
                "for {fsync}, write and flush a file of pgdyno's in {}, then remove it",
                path.display()
            );
        }
    }
    stage(resolved, "Before the first trial", &resolved.experiment.probe.before, out);
    line!(out, "\nBefore each trial");
    if resolved.clusters().len() > 1 {
        step!(out, "stop the other clusters' servers, start this one's");
    }
    storages::before_each_trial(resolved, &machine.storages, out);
    step!(
        out,
        "write the treatment's settings to pgdyno.conf and reload; restart if a changed setting \
         needs it; read them back"
    );
    between(resolved, Some(machine), out);
    stage(
        resolved,
        "After the last trial, the servers stopped",
        &resolved.experiment.probe.after,
        out,
    );
    after_trim(resolved, machine, out);
    line!(out, "\nAt the end, and on any error or signal");
    for (key, _) in resolved.clusters() {
        match &machine.programs[&key.build] {
            BuildPrograms::Installed(install, _) => {
                let steps = spec(resolved, machine, &key, install).take_down_steps();
                steps.iter().for_each(|step| step!(out, "{step}"));
            }
            BuildPrograms::ToFetch(_) => step!(out, "stop the server and remove its cluster"),
        }
    }
    storages::taking_down(&machine.storages, out);
}

/// Describes the trimming of the storages after everything else, and the probe that follows it.
fn after_trim(resolved: &ResolvedExperiment, machine: &Machine, out: &mut String) {
    if !resolved.experiment.probe.after_trim {
        return;
    }
    line!(out, "\nThen");
    for name in resolved.storages() {
        step!(out, "run: fstrim {}", directory(machine, name).display());
    }
    stage(resolved, "After fstrim", &[ProbeKind::Disk], out);
}

/// Describes the probes of one stage.
fn stage(resolved: &ResolvedExperiment, when: &str, kinds: &[ProbeKind], out: &mut String) {
    let stages = &resolved.experiment.probe;
    if kinds.is_empty() {
        return;
    }
    line!(out, "\n{when}");
    for name in resolved.storages() {
        for kind in kinds {
            let file = match kind {
                ProbeKind::Fsync => String::new(),
                ProbeKind::Disk => format!(", over a file of {}", stages.size),
            };
            step!(
                out,
                "probe storage {name}: {}, {} each test{file}",
                kind.name(),
                stages.duration
            );
        }
    }
}

fn given_steps(resolved: &ResolvedExperiment, out: &mut String) {
    let schema = resolved.experiment.postgres.schema.as_deref().unwrap_or("pgdyno");
    let mut heading = None;
    let mut numbers: BTreeMap<Option<String>, u32> = BTreeMap::new();
    let mut clusters = resolved.clusters();
    clusters.sort_by(|(a, _), (b, _)| a.server.cmp(&b.server));
    for (key, treatment) in clusters {
        let number = numbers.entry(key.server.clone()).or_default();
        *number += 1;
        if heading.as_ref() != Some(&key.server) {
            let server = key.server.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
            line!(out, "\nOn the given server{server}");
            heading = Some(key.server.clone());
        }
        let name = if *number == 1 { schema.to_owned() } else { format!("{schema}_{number}") };
        step!(out, "make schema {name} unless it is there; no table outside it is touched");
        loading(resolved, &key, treatment, None, out);
    }
    if !resolved.settings_on(None).is_empty() {
        step!(
            out,
            "not checked: names and values of settings; a dry run does not connect to the server"
        );
    }
    line!(out, "\nBefore each trial");
    step!(
        out,
        "settings of the treatment are asked for by the load's own sessions; the server's stay as \
         they are"
    );
    let alter_system = resolved.experiment.postgres.alter_system;
    if alter_system {
        step!(
            out,
            "except those that only the whole server can change: SQL: ALTER SYSTEM SET …; \
             pg_reload_conf(); read them back"
        );
    }
    between(resolved, None, out);
    line!(out, "\nAt the end, and on any error or signal");
    if alter_system {
        step!(out, "SQL: ALTER SYSTEM, to what it was before the run; pg_reload_conf()");
    }
    step!(out, "drop what was made");
}

fn loading(
    resolved: &ResolvedExperiment,
    key: &ClusterKey,
    treatment: &Treatment,
    machine: Option<&Machine>,
    out: &mut String,
) {
    let data = resolved.data(treatment);
    let tables: Vec<&str> = data.tables.iter().map(|t| t.name.as_str()).collect();
    let rows = dataset::rows(data, key.scale);
    let same =
        |other: &ClusterKey| other.holds_the_data_of(key) && resolved.holds_what_others_will(other);
    let shared = machine.filter(|_| resolved.holds_what_others_will(key));
    let clusters = resolved.clusters();
    if shared.is_some()
        && let Some(first) = clusters.iter().position(|(other, _)| same(other))
        && clusters[first].0 != *key
    {
        return step!(
            out,
            "copy its data, by reflink where that can be, from cluster {}",
            first + 1
        );
    }
    let loading = &resolved.plan.loading;
    if !loading.settings.is_empty() {
        step!(out, "while rows are loaded: {}", assignments(&loading.settings));
    }
    let blanks = loading.filler_compress_percentage;
    let filler = if blanks == 100 { String::new() } else { format!(", filler {blanks}% blanks") };
    let parts = match loading.partitions {
        0 => String::new(),
        n => format!(", in {n} partitions where the workload has any"),
    };
    step!(
        out,
        "SQL: make and fill {}: {rows} rows{parts}{filler}; build keys; VACUUM (ANALYZE)",
        tables.join(", ")
    );
    if let Some(machine) = shared {
        let place = resolved.experiment.storage[&key.storage].named_directory();
        let place = place.unwrap_or(&machine.default_storage);
        step!(out, "keep a copy of its data in {}, until the end", place.join(DRAWN).display());
    }
}

fn between(resolved: &ResolvedExperiment, machine: Option<&Machine>, out: &mut String) {
    let between = &resolved.experiment.between;
    if between.vacuum {
        let mut all: Vec<&str> = Vec::new();
        for treatment in &resolved.plan.treatments {
            for sql in &resolved.workload(treatment).between {
                if !all.contains(&sql.as_str()) {
                    all.push(sql);
                }
            }
        }
        all.iter().for_each(|sql| step!(out, "SQL: {sql}"));
    }
    if !between.command.is_empty() {
        step!(out, "run: {}", between.command.join(" "));
    }
    if between.checkpoint {
        step!(out, "SQL: CHECKPOINT");
    }
    if let Some(machine) = machine {
        storages::trimming(resolved, &machine.storages, out);
    }
    if between.drop_caches {
        step!(out, "stop the server, write 3 to /proc/sys/vm/drop_caches, start the server");
    }
    if between.prewarm {
        step!(
            out,
            "SQL: CREATE EXTENSION IF NOT EXISTS pg_prewarm; pg_prewarm of the workload's tables \
             and indexes"
        );
    }
    if !between.pause.0.is_zero() {
        step!(out, "rest for {}", between.pause);
    }
}

fn closing(resolved: &ResolvedExperiment, machine: Option<&Machine>, out: &mut String) {
    let TimeEstimate { least, most, is_without_trials } = estimate::time(resolved);
    let whole = |time: Duration| Span(Duration::from_secs(time.as_secs().max(1)));
    let (least, most) = (whole(least), whole(most));
    let time =
        if least == most { format!("about {least}") } else { format!("about {least} to {most}") };
    let more =
        if is_without_trials { ", and the time that the counted transactions take" } else { "" };
    line!(out, "\nTime: {time}{more}");
    if let Some(crash) = &resolved.experiment.crash {
        let faults: Vec<&str> = crash.faults.iter().map(|fault| fault.name()).collect();
        let rounds = match crash.states {
            States::Drawn => counted(crash.rounds, "round"),
            States::Flushes | States::All => format!("states of a stretch of {}", crash.load),
        };
        line!(
            out,
            "Then crash tests of each treatment, on storages and clusters made anew: {rounds} of \
             {}, under {} with a ledger",
            faults.join(", "),
            crash.workload.description()
        );
        for treatment in &resolved.plan.treatments {
            let planted = checks::crash::planted_faults(&resolved.experiment, treatment);
            if !planted.is_empty() {
                let planted: Vec<&str> = planted.iter().map(|fault| fault.name()).collect();
                let its = match treatment.levels.0.is_empty() {
                    true => "the only treatment".to_owned(),
                    false => treatment.levels.to_string(),
                };
                line!(out, "  {its}: meant to fail {}", planted.join(", "));
            }
        }
    }
    match resolved.root_needed_for().as_slice() {
        [] => line!(out, "Privileges: none"),
        why => line!(out, "Privileges: root, for {}", why.join(" and ")),
    }
    let Some(machine) = machine else { return };
    for (name, RoomNeeded { bytes: needed, data: what }) in footprint::room(resolved) {
        let PlannedStorage { stack, available, .. } = &machine.storages[&name];
        let free = available.map_or_else(|| "unknown".to_owned(), |b| b.to_string());
        let place = match stack.is_made() {
            true => "its size".to_owned(),
            false => format!("free in {}", stack.path().display()),
        };
        line!(out, "Room on {name}: about {needed} for {what}; {free} {place}");
        if available.is_some_and(|a| a < needed) {
            line!(out, "  That is not enough: it would be refused.");
        }
    }
    for FilesRoom { directory, needed, available } in &machine.files {
        let free = available.map_or_else(|| "unknown".to_owned(), |b| b.to_string());
        line!(out, "Room in {}: {needed} for files of storages; {free} free", directory.display());
        if available.is_some_and(|a| a < *needed) {
            line!(out, "  That is not enough: trials on storages that find no room would fail.");
        }
    }
}

#[cfg(test)]
mod tests;
