//! `--dry-run`: the whole plan in words, every trial in order, every step that would touch the host. Touches nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use pgdyno_host::postgres::ClusterSpec;
use pgdyno_host::{Account, paths, server_account};
use pgdyno_model::experiment::{Length, Order};
use pgdyno_model::units::{Bytes, Span};

use crate::LabError;
use crate::dataset;
use crate::estimate;
use crate::prepare::{ClusterKey, Prepared};
use crate::run::{Programs, base_settings, programs};

/// Stands for what is drawn at random when a cluster is really made.
const DRAWN: &str = "pgdyno-XXXXXXXX";

/// What the plan's text takes from the machine; a test gives its own.
struct Surroundings {
    account: Account,
    socket_base: PathBuf,
    default_storage: PathBuf,
    programs: BTreeMap<Option<u32>, Programs>,
    available: BTreeMap<String, Option<Bytes>>,
}

/// The plan of `prepared` on this machine, in words.
///
/// # Errors
/// The server's account or its programs are not to be had.
pub fn dry_run(prepared: &Prepared) -> Result<String, LabError> {
    if prepared.experiment.postgres.dsn.is_some() {
        return Ok(describe(prepared, None));
    }
    let default_storage = paths::default_storage_dir();
    let mut programs_by_version = BTreeMap::new();
    for version in prepared.versions() {
        programs_by_version.insert(version, programs(prepared, version)?);
    }
    let available = prepared
        .storages()
        .into_iter()
        .map(|name| {
            let directory = prepared.experiment.storage[name].directory.as_ref().unwrap_or(&default_storage);
            // A default that is not made yet has the room of the folder above it.
            let there = directory.ancestors().find(|d| d.exists());
            (name.to_owned(), there.and_then(|d| pgdyno_host::room(d).ok()))
        })
        .collect();
    let surroundings = Surroundings {
        account: server_account()?,
        socket_base: paths::socket_base(),
        default_storage,
        programs: programs_by_version,
        available,
    };
    Ok(describe(prepared, Some(&surroundings)))
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

fn head(prepared: &Prepared, out: &mut String) {
    let (plan, experiment) = (&prepared.plan, &prepared.experiment);
    let order = match experiment.order {
        Order::Interleaved => "interleaved",
        Order::Randomized => "randomized",
        Order::Sequential => "sequential",
    };
    let _ = writeln!(out, "{} (nothing is done: this is the plan)", plan.name);
    if let Some(question) = &plan.question {
        let _ = writeln!(out, "{question}");
    }
    let _ = writeln!(
        out,
        "{} treatments x {} repeats = {} trials, {order}, seed {}",
        plan.treatments.len(),
        experiment.repeats,
        plan.trials.len(),
        plan.seed
    );
    let length = match plan.length {
        Length::Duration(span) => format!("{span} measured"),
        Length::Transactions(n) => format!("{n} transactions by each client measured"),
    };
    let _ = writeln!(out, "each trial: {} warm-up, {length}", plan.warm_up);
    let _ = writeln!(out, "\nTreatments");
    for (number, treatment) in (1..).zip(&plan.treatments) {
        let levels = match treatment.levels.to_string() {
            none if none.is_empty() => "(no factors)".to_owned(),
            levels => levels,
        };
        let _ = write!(
            out,
            "  {number:>3}  {levels}\n       {} at scale {}, {} on {}, {} protocol, storage {}",
            treatment.workload,
            treatment.scale,
            counted(treatment.clients, "client"),
            counted(treatment.threads, "thread"),
            treatment.protocol.name(),
            treatment.storage,
        );
        if let Some(version) = treatment.postgres_version {
            let _ = write!(out, ", PostgreSQL {version}");
        }
        for (name, value) in &treatment.settings {
            let _ = write!(out, ", {name} = {value}");
        }
        out.push('\n');
    }
}

fn counted(n: u32, noun: &str) -> String {
    if n == 1 { format!("{n} {noun}") } else { format!("{n} {noun}s") }
}

fn trials(prepared: &Prepared, out: &mut String) {
    let _ = writeln!(out, "\nTrials, in order");
    let _ = writeln!(out, "    #  block  repeat  treatment");
    for trial in &prepared.plan.trials {
        let levels = &prepared.plan.treatments[trial.treatment].levels;
        let _ = writeln!(
            out,
            "  {:>3}  {:>5}  {:>6}  {:>3}  {levels}",
            trial.ordinal + 1,
            trial.block,
            trial.repeat,
            trial.treatment + 1
        );
    }
}

/// The specification of the cluster of `key`, if its programs are here.
fn spec(prepared: &Prepared, here: &Surroundings, key: &ClusterKey) -> Option<ClusterSpec> {
    let Some(Programs::Here(install)) = here.programs.get(&key.version) else { return None };
    Some(ClusterSpec {
        install: install.clone(),
        directory: directory(prepared, here, &key.storage).join(DRAWN),
        initdb: prepared.experiment.postgres.initdb.clone(),
        settings: base_settings(prepared),
        connect: prepared.experiment.postgres.connect,
        account: here.account.clone(),
        socket_base: here.socket_base.clone(),
    })
}

fn directory(prepared: &Prepared, here: &Surroundings, storage: &str) -> PathBuf {
    prepared.experiment.storage[storage].directory.clone().unwrap_or_else(|| here.default_storage.clone())
}

fn steps(prepared: &Prepared, here: &Surroundings, out: &mut String) {
    for (number, (key, treatment)) in (1..).zip(prepared.clusters()) {
        let _ =
            writeln!(out, "\nCluster {number}: storage {}, {} at scale {}", key.storage, key.data, key.scale);
        let spec = spec(prepared, here, &key);
        match (&spec, here.programs.get(&key.version)) {
            (Some(spec), _) => {
                let _ = writeln!(
                    out,
                    "  PostgreSQL {} in {}",
                    spec.install.version,
                    spec.install.bindir.display()
                );
                spec.steps().iter().for_each(|step| indented(&step.to_string(), out));
            }
            (None, Some(Programs::ToFetch(_, exact))) => {
                indented(
                    &format!("fetch PostgreSQL {exact} from Maven Central and unpack it into the cache"),
                    out,
                );
                indented(
                    &format!(
                        "make a cluster in {}",
                        directory(prepared, here, &key.storage).join(DRAWN).display()
                    ),
                    out,
                );
            }
            (None, _) => {}
        }
        let settings: Vec<String> =
            prepared.settings_of(&key).iter().map(|(name, value)| format!("{name} = {value}")).collect();
        if !settings.is_empty() {
            indented(&format!("let the server judge, without effect: {}", settings.join(", ")), out);
        }
        indented("SQL: CREATE DATABASE pgdyno", out);
        loading(prepared, &key, treatment, out);
    }
    let fsync = prepared.experiment.telemetry.fsync;
    if !fsync.0.is_zero() {
        let _ = writeln!(out, "\nBefore the first trial");
        for name in prepared.storages() {
            let path = directory(prepared, here, name);
            indented(
                &format!(
                    "for {fsync}, write and flush a file of pgdyno's in {}, then remove it",
                    path.display()
                ),
                out,
            );
        }
    }
    let _ = writeln!(out, "\nBefore each trial");
    if prepared.clusters().len() > 1 {
        indented("stop the other clusters' servers, start this one's", out);
    }
    indented(
        "write the treatment's settings to pgdyno.conf and reload; restart if a changed setting needs it; read them back",
        out,
    );
    between(prepared, out);
    let _ = writeln!(out, "\nAt the end, and on any error or signal");
    for (key, _) in prepared.clusters() {
        if let Some(spec) = spec(prepared, here, &key) {
            spec.take_down_steps().iter().for_each(|step| indented(&step.to_string(), out));
        } else {
            indented("stop the server and remove its cluster", out);
        }
    }
}

fn given_steps(prepared: &Prepared, out: &mut String) {
    let schema = prepared.experiment.postgres.schema.as_deref().unwrap_or("pgdyno");
    let _ = writeln!(out, "\nOn the given server");
    for (number, (key, treatment)) in (1..).zip(prepared.clusters()) {
        let name = if number == 1 { schema.to_owned() } else { format!("{schema}_{number}") };
        indented(&format!("make schema {name} unless it is there; no table outside it is touched"), out);
        loading(prepared, &key, treatment, out);
    }
    let _ = writeln!(out, "\nBefore each trial");
    indented(
        "settings of the treatment are asked for by the load's own sessions; the server's stay as they are",
        out,
    );
    between(prepared, out);
    let _ = writeln!(out, "\nAt the end, and on any error or signal");
    indented("drop what was made", out);
}

fn loading(prepared: &Prepared, key: &ClusterKey, treatment: &pgdyno_model::Treatment, out: &mut String) {
    let data = prepared.data(treatment);
    let tables: Vec<&str> = data.tables.iter().map(|t| t.name.as_str()).collect();
    let rows = dataset::rows(data, key.scale);
    indented(
        &format!("SQL: make and fill {}: {rows} rows; build keys; VACUUM (ANALYZE)", tables.join(", ")),
        out,
    );
}

fn between(prepared: &Prepared, out: &mut String) {
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
        all.iter().for_each(|sql| indented(&format!("SQL: {sql}"), out));
    }
    if !between.command.is_empty() {
        indented(&format!("run: {}", between.command.join(" ")), out);
    }
    if between.checkpoint {
        indented("SQL: CHECKPOINT", out);
    }
    if between.drop_caches {
        indented("stop the server, write 3 to /proc/sys/vm/drop_caches, start the server", out);
    }
    if !between.pause.0.is_zero() {
        indented(&format!("rest for {}", between.pause), out);
    }
}

/// A step: its first line with a dash, the others below it.
fn indented(step: &str, out: &mut String) {
    for (i, line) in step.lines().enumerate() {
        let _ = writeln!(out, "  {} {line}", if i == 0 { "-" } else { " " });
    }
}

fn closing(prepared: &Prepared, surroundings: Option<&Surroundings>, out: &mut String) {
    let (time, by_count) = estimate::time(prepared);
    let time = Span(std::time::Duration::from_secs(time.as_secs().max(1)));
    let more = if by_count { ", and the time that the counted transactions take" } else { "" };
    let _ = writeln!(out, "\nTime: about {time}{more}");
    if let Some(here) = surroundings {
        for (name, (needed, what)) in estimate::room(prepared) {
            let available = here.available.get(&name).copied().flatten();
            let free = available.map_or_else(|| "unknown".to_owned(), |b| b.to_string());
            let place = directory(prepared, here, &name);
            let _ = writeln!(
                out,
                "Room on {name}: about {needed} for {what}; {free} free in {}",
                place.display()
            );
            if available.is_some_and(|a| a < needed) {
                let _ = writeln!(out, "  That is not enough: it would be refused.");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_host::postgres::Install;
    use pgdyno_model::facts::BuildSource;

    use super::*;
    use crate::recipes;

    fn surroundings() -> Surroundings {
        let bindir = PathBuf::from("/opt/postgresql/17/bin");
        let source = BuildSource::Found { bindir: bindir.display().to_string(), how: "PATH".into() };
        let install = Install { bindir, version: "17.4".into(), major: 17, source };
        Surroundings {
            account: Account { name: "postgres".into(), uid: 70, gid: 70 },
            socket_base: PathBuf::from("/run"),
            default_storage: PathBuf::from("/var/lib/pgdyno"),
            programs: [(None, Programs::Here(install)), (Some(16), Programs::ToFetch(16, "16.0".into()))]
                .into(),
            available: [("disk".to_owned(), Some(Bytes(50_000_000_000)))].into(),
        }
    }

    #[test]
    fn the_quickstarts_plan_is_told_whole() {
        let prepared = Prepared::new(recipes::source("quickstart").unwrap(), Vec::new()).unwrap();
        insta::assert_snapshot!(describe(&prepared, Some(&surroundings())));
    }

    #[test]
    fn a_build_to_be_fetched_and_a_lack_of_room_are_told() {
        let mut source = recipes::source("quickstart").unwrap();
        source.text = source.text.replace("[factors]", "[factors]\npostgres.version = [16]");
        let mut here = surroundings();
        here.available.insert("disk".into(), Some(Bytes(1_000)));
        let told = describe(&Prepared::new(source, Vec::new()).unwrap(), Some(&here));
        assert!(told.contains("fetch PostgreSQL 16.0 from Maven Central"), "{told}");
        assert!(told.contains("That is not enough"), "{told}");
    }

    #[test]
    fn a_given_servers_plan_names_no_password() {
        let mut source = recipes::source("quickstart").unwrap();
        source.text.push_str("\n[postgres]\ndsn = \"postgresql://anna:hunter2@localhost/test\"\n");
        let told = describe(&Prepared::new(source, Vec::new()).unwrap(), None);
        assert!(told.contains("make schema pgdyno") && !told.contains("hunter2"), "{told}");
    }
}
