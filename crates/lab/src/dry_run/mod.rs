//! `--dry-run`: the whole plan in words, every trial in order, every step that would touch the
//! host. Touches nothing.

#[macro_use]
mod lines;
mod head;
mod storages;

use std::collections::BTreeMap;
use std::path::PathBuf;

use head::head;
use pgdyno_dataset as dataset;
use pgdyno_exec::account::{Account, server_account};
use pgdyno_exec::paths;
use pgdyno_model::crash::States;
use pgdyno_model::experiment::ProbeKind;
use pgdyno_model::format::counted;
use pgdyno_model::units::Span;
use pgdyno_postgres::{ClusterSpec, Judgement};
use storages::Planned;

use crate::crash::log_room::describe_log_rooms;
use crate::prepare::{Build, ClusterKey, Prepared};
use crate::programs::{Programs, base_settings, find_programs, judge_settings};
use crate::provisioner::RoomNeeded;
use crate::{LabError, estimate};

/// Stands for what is drawn at random when a cluster is really made.
const DRAWN: &str = "pgdyno-XXXXXXXX";

/// The part of the machine that a plan's text names. A test gives its own.
struct Surroundings {
    account: Account,
    socket_base: PathBuf,
    programs: BTreeMap<Build, Programs>,
    /// The judgement of each installed server program on the settings of its treatments.
    judged: BTreeMap<Build, Judgement>,
    storages: BTreeMap<String, Planned>,
}

/// The plan of `prepared` on this machine, in words.
///
/// # Errors
/// The server's account or its programs are not to be had, or a program refuses a setting.
pub fn dry_run(prepared: &Prepared) -> Result<String, LabError> {
    if prepared.experiment.postgres.is_external() {
        return Ok(describe(prepared, None));
    }
    Ok(describe(prepared, Some(&surroundings(prepared)?)))
}

/// The part of it that makes storages and clusters, and loads them.
pub(crate) fn making(prepared: &Prepared) -> Result<String, LabError> {
    let mut out = String::new();
    makings(prepared, &surroundings(prepared)?, &mut out);
    Ok(out)
}

fn surroundings(prepared: &Prepared) -> Result<Surroundings, LabError> {
    let default_storage = paths::default_storage_dir();
    let mut programs_by_build = BTreeMap::new();
    let mut judged = BTreeMap::new();
    for build in prepared.builds() {
        let found = find_programs(&build)?;
        if let Programs::Here(install) = &found {
            judged.insert(build.clone(), judge_settings(install, prepared, &build)?);
        }
        programs_by_build.insert(build, found);
    }
    let account = server_account()?;
    let storages = storages::on_this_machine(prepared, &default_storage, &account)?;
    let socket_base = paths::socket_base();
    Ok(Surroundings { account, socket_base, programs: programs_by_build, judged, storages })
}

fn describe(prepared: &Prepared, surroundings: Option<&Surroundings>) -> String {
    let mut out = String::new();
    head(prepared, &mut out);
    trials(prepared, &mut out);
    match surroundings {
        Some(here) => steps(prepared, here, &mut out),
        None => given_steps(prepared, &mut out),
    }
    closing(prepared, surroundings, &mut out);
    out
}

fn trials(prepared: &Prepared, out: &mut String) {
    line!(out, "\nTrials, in order");
    line!(out, "    #  block  repeat  treatment");
    let certain = prepared.plan.stopping.as_ref().map_or(u32::MAX, |s| s.floor);
    for trial in prepared.plan.trials.iter().filter(|t| t.block <= certain) {
        let levels = &prepared.plan.treatments[trial.treatment].levels;
        line!(
            out,
            "  {:>3}  {:>5}  {:>6}  {:>3}  {levels}",
            trial.ordinal + 1,
            trial.block,
            trial.repeat,
            trial.treatment + 1
        );
    }
    if let Some(stopping) = prepared.plan.stopping.as_ref().filter(|s| s.ceiling > s.floor) {
        line!(
            out,
            "  then up to {} blocks more, each of the treatments whose comparisons are open",
            stopping.ceiling - stopping.floor
        );
    }
}

/// The specification of the cluster of `key`, if its programs are here.
fn spec(prepared: &Prepared, here: &Surroundings, key: &ClusterKey) -> Option<ClusterSpec> {
    let Some(Programs::Here(install)) = here.programs.get(&key.build) else { return None };
    let asked = &prepared.experiment.storage[&key.storage];
    Some(ClusterSpec {
        install: install.clone(),
        directory: directory(here, &key.storage).join(DRAWN),
        wal: asked.wal.as_deref().map(|name| directory(here, name).join(DRAWN)),
        tablespaces: asked
            .tablespaces
            .keys()
            .map(|name| directory(here, name).join(DRAWN))
            .collect(),
        initdb: prepared.experiment.postgres.initdb.clone(),
        settings: base_settings(prepared),
        connect: prepared.experiment.postgres.connect,
        listen: prepared.experiment.postgres.listen,
        account: here.account.clone(),
        socket_base: here.socket_base.clone(),
        is_clone: false,
    })
}

fn directory(here: &Surroundings, storage: &str) -> PathBuf {
    here.storages[storage].stack.path()
}

/// Whether the settings for a server of `build` were checked; nothing where there are none.
fn judgement(prepared: &Prepared, here: &Surroundings, build: &Build) -> Option<String> {
    let settings = prepared.settings_on(Some(build));
    let (Some(first), n) = (settings.first(), settings.len()) else { return None };
    let what = if n == 1 { format!("the setting {}", first.0) } else { format!("{n} settings") };
    Some(match here.judged.get(build) {
        Some(Judgement::Taken) => format!("checked: this build takes {what}, by name and value"),
        Some(Judgement::NotAsked(why)) => format!("not checked: {what}; {why}"),
        None => format!("not checked: {what}; this build is not here to be asked"),
    })
}

/// Describes how storages and clusters are made and loaded.
fn makings(prepared: &Prepared, here: &Surroundings, out: &mut String) {
    storages::making(prepared, &here.storages, out);
    for (number, (key, treatment)) in (1..).zip(prepared.clusters()) {
        line!(
            out,
            "\nCluster {number}: storage {}, {} at scale {}",
            key.storage,
            key.data,
            key.scale
        );
        let spec = spec(prepared, here, &key);
        match (&spec, here.programs.get(&key.build)) {
            (Some(spec), _) => {
                line!(
                    out,
                    "  PostgreSQL {} in {}",
                    spec.install.version,
                    spec.install.bindir.display()
                );
                spec.steps().iter().for_each(|step| step!(out, "{step}"));
            }
            (None, Some(Programs::ToFetch(_, exact))) => {
                step!(
                    out,
                    "fetch PostgreSQL {exact} from Maven Central and unpack it into the cache"
                );
                step!(
                    out,
                    "make a cluster in {}",
                    directory(here, &key.storage).join(DRAWN).display()
                );
            }
            (None, _) => {}
        }
        if let Some(words) = judgement(prepared, here, &key.build) {
            step!(out, "{words}");
        }
        let settings = prepared.settings_of(&key);
        if !settings.is_empty() {
            let settings = assignments(settings.iter().map(|(name, value)| (name, value)));
            step!(out, "let the server judge, without effect: {settings}");
        }
        for (name, tables) in &prepared.experiment.storage[&key.storage].tablespaces {
            let tables = tables.join(", ");
            step!(
                out,
                "SQL: CREATE TABLESPACE \"pgdyno_{name}\" in the directory there, for {tables}, indexes included"
            );
        }
        step!(out, "SQL: CREATE DATABASE pgdyno");
        loading(prepared, &key, treatment, out);
    }
}

/// Settings as a line of the plan names them.
fn assignments<'a>(settings: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    let settings = settings.into_iter().map(|(name, value)| format!("{name} = {value}"));
    settings.collect::<Vec<_>>().join(", ")
}

fn steps(prepared: &Prepared, here: &Surroundings, out: &mut String) {
    makings(prepared, here, out);
    let fsync = prepared.experiment.telemetry.fsync;
    if !fsync.0.is_zero() {
        line!(out, "\nBefore the first trial");
        for name in prepared.storages() {
            let path = directory(here, name);
            step!(
                out,
                "for {fsync}, write and flush a file of pgdyno's in {}, then remove it",
                path.display()
            );
        }
    }
    stage(prepared, "Before the first trial", &prepared.experiment.probe.before, out);
    line!(out, "\nBefore each trial");
    if prepared.clusters().len() > 1 {
        step!(out, "stop the other clusters' servers, start this one's");
    }
    storages::before_each_trial(prepared, &here.storages, out);
    step!(
        out,
        "write the treatment's settings to pgdyno.conf and reload; restart if a changed setting needs it; read them back"
    );
    between(prepared, Some(here), out);
    stage(
        prepared,
        "After the last trial, the servers stopped",
        &prepared.experiment.probe.after,
        out,
    );
    after_trim(prepared, here, out);
    line!(out, "\nAt the end, and on any error or signal");
    for (key, _) in prepared.clusters() {
        if let Some(spec) = spec(prepared, here, &key) {
            spec.take_down_steps().iter().for_each(|step| step!(out, "{step}"));
        } else {
            step!(out, "stop the server and remove its cluster");
        }
    }
    storages::taking_down(&here.storages, out);
}

/// The trimming of the storages after everything else, and the probe that follows it.
fn after_trim(prepared: &Prepared, here: &Surroundings, out: &mut String) {
    if !prepared.experiment.probe.after_trim {
        return;
    }
    line!(out, "\nThen");
    for name in prepared.storages() {
        step!(out, "run: fstrim {}", directory(here, name).display());
    }
    stage(prepared, "After fstrim", &[ProbeKind::Disk], out);
}

/// The probes of one stage.
fn stage(prepared: &Prepared, when: &str, kinds: &[ProbeKind], out: &mut String) {
    let stages = &prepared.experiment.probe;
    if kinds.is_empty() {
        return;
    }
    line!(out, "\n{when}");
    for name in prepared.storages() {
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

fn given_steps(prepared: &Prepared, out: &mut String) {
    let schema = prepared.experiment.postgres.schema.as_deref().unwrap_or("pgdyno");
    let mut heading = None;
    let mut numbers: BTreeMap<Option<String>, u32> = BTreeMap::new();
    let mut clusters = prepared.clusters();
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
        loading(prepared, &key, treatment, out);
    }
    if !prepared.settings_on(None).is_empty() {
        step!(
            out,
            "not checked: names and values of settings; a dry run does not connect to the server"
        );
    }
    line!(out, "\nBefore each trial");
    step!(
        out,
        "settings of the treatment are asked for by the load's own sessions; the server's stay as they are"
    );
    let alter_system = prepared.experiment.postgres.alter_system;
    if alter_system {
        step!(
            out,
            "except those that only the whole server can change: SQL: ALTER SYSTEM SET …; pg_reload_conf(); read them back"
        );
    }
    between(prepared, None, out);
    line!(out, "\nAt the end, and on any error or signal");
    if alter_system {
        step!(out, "SQL: ALTER SYSTEM, to what it was before the run; pg_reload_conf()");
    }
    step!(out, "drop what was made");
}

fn loading(
    prepared: &Prepared,
    key: &ClusterKey,
    treatment: &pgdyno_model::Treatment,
    out: &mut String,
) {
    let data = prepared.data(treatment);
    let tables: Vec<&str> = data.tables.iter().map(|t| t.name.as_str()).collect();
    let rows = dataset::rows(data, key.scale);
    let same =
        |other: &ClusterKey| other.holds_the_data_of(key) && prepared.holds_what_others_will(other);
    let shared =
        !prepared.experiment.postgres.is_external() && prepared.holds_what_others_will(key);
    let clusters = prepared.clusters();
    if shared
        && let Some(first) = clusters.iter().position(|(other, _)| same(other))
        && clusters[first].0 != *key
    {
        return step!(
            out,
            "copy its data, by reflink where that can be, from cluster {}",
            first + 1
        );
    }
    let loading = &prepared.plan.loading;
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
    if shared {
        let place = prepared.experiment.storage[&key.storage].named_directory();
        let place = place.map_or_else(paths::default_storage_dir, std::path::Path::to_owned);
        step!(out, "keep a copy of its data in {}, until the end", place.join(DRAWN).display());
    }
}

fn between(prepared: &Prepared, here: Option<&Surroundings>, out: &mut String) {
    let between = &prepared.experiment.between;
    if between.vacuum {
        let mut all: Vec<&str> = Vec::new();
        for treatment in &prepared.plan.treatments {
            for sql in &prepared.workload(treatment).between {
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
    if let Some(here) = here {
        storages::trimming(prepared, &here.storages, out);
    }
    if between.drop_caches {
        step!(out, "stop the server, write 3 to /proc/sys/vm/drop_caches, start the server");
    }
    if between.prewarm {
        step!(
            out,
            "SQL: CREATE EXTENSION IF NOT EXISTS pg_prewarm; pg_prewarm of the workload's tables and indexes"
        );
    }
    if !between.pause.0.is_zero() {
        step!(out, "rest for {}", between.pause);
    }
}

fn closing(prepared: &Prepared, surroundings: Option<&Surroundings>, out: &mut String) {
    let (least, most, by_count) = estimate::time(prepared);
    let whole =
        |time: std::time::Duration| Span(std::time::Duration::from_secs(time.as_secs().max(1)));
    let (least, most) = (whole(least), whole(most));
    let time =
        if least == most { format!("about {least}") } else { format!("about {least} to {most}") };
    let more = if by_count { ", and the time that the counted transactions take" } else { "" };
    line!(out, "\nTime: {time}{more}");
    if let Some(crash) = &prepared.experiment.crash {
        let faults: Vec<&str> = crash.faults.iter().map(|fault| fault.name()).collect();
        let rounds = match crash.states {
            States::Drawn => counted(crash.rounds, "round"),
            States::Flushes | States::All => format!("states of a stretch of {}", crash.load),
        };
        line!(
            out,
            "Then crash tests of each treatment, on storages and clusters made anew: {rounds} of {}, \
             under {} with a ledger",
            faults.join(", "),
            crash.workload.description()
        );
        for treatment in &prepared.plan.treatments {
            let planted = crate::crash::feasibility::planted(&prepared.experiment, treatment);
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
    match prepared.root_needed_for().as_slice() {
        [] => line!(out, "Privileges: none"),
        why => line!(out, "Privileges: root, for {}", why.join(" and ")),
    }
    if let Some(here) = surroundings {
        for (name, RoomNeeded { bytes: needed, data: what }) in estimate::room(prepared) {
            let Planned { stack, available, .. } = &here.storages[&name];
            let free = available.map_or_else(|| "unknown".to_owned(), |b| b.to_string());
            let where_it_is = if stack.is_made() {
                "its size"
            } else {
                &format!("free in {}", stack.path().display())
            };
            line!(out, "Room on {name}: about {needed} for {what}; {free} {where_it_is}");
            if available.is_some_and(|a| a < needed) {
                line!(out, "  That is not enough: it would be refused.");
            }
        }
        out.push_str(&describe_log_rooms(prepared));
    }
}

#[cfg(test)]
mod tests;
