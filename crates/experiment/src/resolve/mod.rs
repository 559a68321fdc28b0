//! From an experiment to its plan: every name resolved, every trial in its place.

mod groups;
mod pauses;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;

use pgdyno_dataset::workload::{self, DataSet, Workload};
use pgdyno_model::experiment::{Experiment, Length, Order, Protocol};
use pgdyno_model::level::{Key, Level, LevelValue, Levels};
use pgdyno_model::load_rate::LoadRate;
use pgdyno_model::storage::{Backing, DeviceSettings};
use pgdyno_model::units::Span;
use pgdyno_model::{Find, Plan, PlannedTrial, Storage, Treatment};
use pgdyno_postgres::settings::RESERVED;
use pgdyno_storage::{Stack, Wipe};
use pgdyno_text::nearest::nearest;

use crate::error::ExperimentError;
use crate::file::{key_name, set_option};
use crate::host::SharedDisks;

/// Returns the plan of `experiment`, its order and load drawn by `seed`, and every workload that it
/// uses, by name.
///
/// # Errors
/// A name that means nothing, or a combination that cannot be.
pub(crate) fn resolve(
    experiment: &Experiment,
    seed: u64,
    shared_disks: &SharedDisks,
) -> Result<(Plan, BTreeMap<String, Workload>), ExperimentError> {
    let mut treatments = Vec::new();
    let mut workloads = BTreeMap::new();
    for combination in combinations(experiment) {
        let treatment = treatment(experiment, &combination, &mut workloads)?;
        check_storage(experiment, &treatment, shared_disks)?;
        let tablespaces = &experiment.storage[&treatment.storage].tablespaces;
        check_tablespaces(&treatment.storage, tablespaces, &workloads[&treatment.workload].data)?;
        treatments.push(treatment);
    }
    if treatments.is_empty() {
        return Err(ExperimentError::refused(
            "nothing is left to run: `[[exclude]]` leaves out every treatment",
            "remove an `[[exclude]]`, or add levels",
        ));
    }
    let trials = order(experiment, treatments.len(), seed);
    let crashed = match experiment.crash {
        Some(_) => Treatment::crashed_apart(&treatments),
        None => Vec::new(),
    };
    let plan = Plan {
        name: experiment.name.clone(),
        question: experiment.question.clone(),
        answer: experiment.answer.clone(),
        extended_after: Vec::new(),
        crashed,
        noise_prior: None,
        conditioning: None,
        headline: headline(&workloads)?,
        factors: experiment.factors.iter().map(|f| f.name.clone()).collect(),
        treatments,
        trials,
        warm_up: experiment.load.warm_up,
        length: experiment.load.length,
        seed,
        data_seed: Some(experiment.workload.seed),
        margin: experiment.margin,
        loading: experiment.workload.loading.clone(),
        stopping: experiment.stopping.clone(),
        find: match (&experiment.load.find, experiment.load.length) {
            (Some(slo), Length::Duration(window)) => Some(Find::new(slo.clone(), window.0)),
            _ => None,
        },
    };
    Ok((plan, workloads))
}

/// Returns the script whose transactions alone are compared, if the workloads name one.
///
/// # Errors
/// They do not all name the same.
fn headline(workloads: &BTreeMap<String, Workload>) -> Result<Option<String>, ExperimentError> {
    let mut headlines = workloads.values().map(|workload| (&workload.name, &workload.headline));
    let Some((first, headline)) = headlines.next() else { return Ok(None) };
    let Some((other, _)) = headlines.find(|(_, other)| *other != headline) else {
        return Ok(headline.clone());
    };
    Err(ExperimentError::refused(
        format!("cannot compare workloads `{first}` and `{other}`: their headline scripts differ"),
        "give both the same `headline` in `workload.toml`, or none",
    ))
}

/// Creates the error of the factor `key`, which an external server cannot vary.
fn not_ours(key: &str) -> ExperimentError {
    ExperimentError::refused(
        format!("cannot vary `{key}` on a server that pgdyno does not own (`postgres.dsn`)"),
        "leave out `postgres.dsn`: pgdyno then makes a server of its own",
    )
}

/// Returns every combination of levels that no exclusion names; the last factor varies fastest.
fn combinations(experiment: &Experiment) -> Vec<Vec<(&str, &Level)>> {
    let mut all: Vec<Vec<(&str, &Level)>> = vec![Vec::new()];
    for factor in &experiment.factors {
        all = all
            .iter()
            .flat_map(|so_far| {
                factor.levels.iter().map(move |level| {
                    let mut next = so_far.clone();
                    next.push((factor.name.as_str(), level));
                    next
                })
            })
            .collect();
    }
    all.retain(|combination| {
        !experiment.exclude.iter().any(|pairs| {
            pairs.iter().all(|(factor, label)| {
                combination.iter().any(|(f, l)| f == factor && l.label == *label)
            })
        })
    });
    all
}

/// Returns the treatment of `combination`, after adding its workload to `workloads`.
fn treatment(
    experiment: &Experiment,
    combination: &[(&str, &Level)],
    workloads: &mut BTreeMap<String, Workload>,
) -> Result<Treatment, ExperimentError> {
    let levels =
        Levels(combination.iter().map(|(f, l)| ((*f).to_owned(), l.label.clone())).collect());
    let given = experiment.postgres.is_external();
    let mut treatment = Treatment {
        levels,
        workload: experiment.workload.name.clone(),
        scale: experiment.workload.scale.get(),
        clients: experiment.load.clients.map_or(1, NonZeroU32::get),
        threads: experiment.load.threads.get(),
        protocol: experiment.load.protocol,
        options: experiment.load.options.clone(),
        postgres_version: experiment.postgres.version,
        settings: experiment
            .postgres
            .settings
            .iter()
            .map(|(name, value)| (name.clone(), value.to_string()))
            .collect(),
        ..Treatment::default()
    };
    let mut names_storage = false;
    let sets = || combination.iter().flat_map(|(_, level)| &level.sets);
    for (key, value) in sets() {
        if given && key.is_of_our_server() {
            return Err(not_ours(&key_name(key)));
        }
        names_storage |= *key == Key::Storage;
        set_level(&mut treatment, key, value);
    }
    if !workloads.contains_key(&treatment.workload) {
        let workload = workload::load(&treatment.workload, &experiment.workload.scripts)?;
        workloads.insert(treatment.workload.clone(), workload);
    }
    let keys: Vec<_> = experiment.groups.iter().chain(sets()).collect();
    let counts_clients =
        experiment.load.clients.is_some() || sets().any(|(key, _)| *key == Key::Clients);
    let workload = &workloads[&treatment.workload];
    groups::divide(&mut treatment, workload, &keys, counts_clients)?;
    for (name, value) in &workload.define {
        treatment.options.define.entry(name.clone()).or_insert_with(|| value.clone());
    }
    pauses::set(&mut treatment, workload, experiment.load.find.is_some())?;
    // As in pgbench: a thread without a client would be idle, so there are at most as many as
    // clients. Where threads are themselves a factor that would make two levels the same.
    if !experiment.factors.iter().any(|f| f.sets(&Key::Threads)) {
        treatment.threads = treatment.threads.min(treatment.clients);
    }
    if given && experiment.postgres.dsn_of(treatment.server.as_deref()).is_none() {
        return Err(ExperimentError::refused(
            format!(
                "no server for {}: other levels name a server by `postgres.dsn`",
                treatment.levels
            ),
            "give every level a `postgres.dsn`, or `[postgres] dsn` for those that have none",
        ));
    }
    let named = names_storage.then_some(treatment.storage);
    treatment.storage = choose_storage(experiment, named)?;
    check_treatment(experiment, &treatment)?;
    Ok(treatment)
}

/// Sets what `key` names in `treatment` to `value`.
fn set_level(treatment: &mut Treatment, key: &Key, value: &LevelValue) {
    let text = value.to_string();
    match key {
        Key::Clients => treatment.clients = count(value),
        Key::Threads => treatment.threads = count(value),
        Key::Scale => treatment.scale = count(value),
        Key::Protocol => treatment.protocol = Protocol::parse(&text).unwrap_or_default(),
        Key::Workload => treatment.workload = text,
        Key::PostgresVersion => treatment.postgres_version = text.parse().ok(),
        Key::PostgresBindir => treatment.postgres_bindir = Some(text.into()),
        Key::PostgresDsn => treatment.server = Some(text),
        Key::Storage => treatment.storage = text,
        Key::Rate
        | Key::Pauses
        | Key::LatencyLimit
        | Key::MaxTries
        | Key::OnError
        | Key::Reconnect
        | Key::ReconnectLost => set_option(&mut treatment.options, key, value),
        Key::DeviceScheduler => treatment.device.scheduler = Some(text),
        Key::DeviceReadAhead => treatment.device.read_ahead_kb = text.parse().ok(),
        Key::DeviceRequests => treatment.device.nr_requests = text.parse().ok(),
        Key::DeviceWriteCache => {
            treatment.device.write_cache = Some(*value == LevelValue::Bool(true));
        }
        Key::DeviceRaidCache => treatment.device.raid_cache = text.parse().ok(),
        Key::Generators => treatment.generators = Some(text),
        // Set once the workload is known.
        Key::Group(..) => {}
        Key::Setting(name) => drop(treatment.settings.insert(name.clone(), text)),
    }
}

/// Checks that the parts of `treatment` go together.
fn check_treatment(experiment: &Experiment, treatment: &Treatment) -> Result<(), ExperimentError> {
    if let Some(name) = treatment.settings.keys().find(|name| RESERVED.contains(&name.as_str())) {
        let what =
            format!("cannot set `{name}`: pgdyno sets it itself, so that its server stays private");
        return Err(ExperimentError::refused(what, "take it out of the file"));
    }
    let Treatment { threads, clients, .. } = treatment;
    let levels = treatment.levels.in_parentheses();
    if threads > clients {
        return Err(ExperimentError::refused(
            format!(
                "{threads} threads for {clients} clients{levels}: a thread would have no client"
            ),
            "exclude the combination, or give it more clients",
        ));
    }
    if treatment.options.tries_without_end()
        && matches!(experiment.load.length, Length::Transactions(_))
    {
        return Err(ExperimentError::refused(
            format!(
                "transactions could be tried for ever{levels}: `max_tries = 0` with neither a \
                 duration nor a latency limit"
            ),
            "give `load.duration` or `load.latency_limit`",
        ));
    }
    if experiment.load.find.is_some() && !treatment.groups.is_empty() {
        return Err(ExperimentError::refused(
            format!(
                "cannot look for the highest rate (`load.find`) of `{}`: its clients have groups, \
                 each with a rate of its own or none",
                treatment.workload
            ),
            "make the rate of a group a factor, `groups.NAME.rate`",
        ));
    }
    if treatment.options.rate.is_some() && experiment.load.find.is_some() {
        return Err(ExperimentError::refused(
            "cannot vary `rate` and look for the highest one (`load.find`)",
            "take the factor `rate` out, or `load.find`",
        ));
    }
    check_stages(experiment, treatment)
}

/// Checks that the window of `treatment` holds all stages of its rate.
fn check_stages(experiment: &Experiment, treatment: &Treatment) -> Result<(), ExperimentError> {
    let Some(seconds) = treatment.rates().filter_map(LoadRate::seconds).max() else {
        return Ok(());
    };
    let (stages, levels) = (Span::from_secs(seconds), treatment.levels.in_parentheses());
    let window = match experiment.load.length {
        Length::Duration(window) if window >= stages => return Ok(()),
        Length::Duration(window) => format!("the window is {window}"),
        Length::Transactions(_) => "a count of transactions ends the window".to_owned(),
    };
    Err(ExperimentError::refused(
        format!("the stages of the rate take {stages}, and {window}{levels}"),
        format!("give `load.duration = \"{stages}\"`, or shorten the stages"),
    ))
}

/// Reads a count, of which the parser has let only 1 and more through.
fn count(value: &LevelValue) -> u32 {
    value.to_string().parse().unwrap_or(1)
}

/// Returns the storages that no other one names for its WAL or tablespaces: the others are no
/// choice for PGDATA.
fn storages_for_pgdata(experiment: &Experiment) -> Vec<&str> {
    let beside: BTreeSet<&str> = experiment.storage.values().flat_map(Storage::others).collect();
    experiment.storage.keys().map(String::as_str).filter(|name| !beside.contains(name)).collect()
}

/// Returns the storage `named`, or the only choice where none is named.
fn choose_storage(
    experiment: &Experiment,
    named: Option<String>,
) -> Result<String, ExperimentError> {
    let known: Vec<&str> = experiment.storage.keys().map(String::as_str).collect();
    match (named, storages_for_pgdata(experiment).as_slice()) {
        (Some(name), _) if known.contains(&name.as_str()) => Ok(name),
        (Some(name), _) => Err(ExperimentError::refused(
            format!("cannot put PGDATA on storage `{name}`: there is no `[storage.{name}]`"),
            format!("described are {}", nearest(&name, &known).join(", ")),
        )),
        (None, [only]) => Ok((*only).to_owned()),
        (None, _) => Err(ExperimentError::refused(
            format!(
                "cannot choose a storage: {} are described, and no factor `storage` names which to \
                 use",
                known.join(", ")
            ),
            format!("add `storage = [\"{}\"]` to `[factors]`", known[0]),
        )),
    }
}

/// Checks that the treatment's storage goes together with its device settings, and with the
/// storages of its WAL and tablespaces.
fn check_storage(
    experiment: &Experiment,
    treatment: &Treatment,
    shared_disks: &SharedDisks,
) -> Result<(), ExperimentError> {
    let mut storage = experiment.storage[&treatment.storage].clone();
    if experiment.postgres.is_external() && !matches!(storage.backing, Backing::Directory(_)) {
        return Err(not_ours("storage"));
    }
    for other in storage.others() {
        if shared_disks.contains(&treatment.storage, other) {
            let what = format!(
                "storages `{}` and `{other}` are to stand together, and are made on the same \
                 device",
                treatment.storage
            );
            return Err(ExperimentError::refused(
                what,
                "give each a partition or a device of its own",
            ));
        }
    }
    if treatment.device != DeviceSettings::default() {
        storage.device = storage.device.overlaid(&treatment.device);
        let somewhere = Path::new("/var/lib/pgdyno");
        Stack::design(
            &treatment.storage,
            &storage,
            somewhere,
            "pgdyno-00000000",
            &Wipe::default(),
        )?;
    }
    Ok(())
}

/// Checks that the tables that are to lie in tablespaces are the workload's, and each in one place.
fn check_tablespaces(
    storage: &str,
    tablespaces: &BTreeMap<String, Vec<String>>,
    data: &DataSet,
) -> Result<(), ExperimentError> {
    let known = data.table_names();
    let mut seen = BTreeSet::new();
    for table in tablespaces.values().flatten() {
        let wrong = |why| {
            ExperimentError::refused(
                format!(
                    "cannot put table `{table}` where `storage.{storage}.tablespaces` says: {why}"
                ),
                format!("its tables are {}", nearest(table, &known).join(", ")),
            )
        };
        if !known.contains(&table.as_str()) {
            return Err(wrong("the workload has no such table"));
        }
        if !seen.insert(table) {
            return Err(wrong("it is named twice"));
        }
    }
    Ok(())
}

fn order(experiment: &Experiment, treatments: usize, seed: u64) -> Vec<PlannedTrial> {
    let repeats = experiment.repeats.get();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut sequence: Vec<(u32, usize)> = Vec::new();
    match experiment.order {
        Order::Sequential => {
            sequence.extend((0..treatments).flat_map(|t| (1..=repeats).map(move |r| (r, t))));
        }
        Order::Interleaved | Order::Randomized => {
            for block in 1..=repeats {
                let mut round: Vec<usize> = (0..treatments).collect();
                if experiment.order == Order::Randomized {
                    random.shuffle(&mut round);
                } else if block % 2 == 0 {
                    round.reverse();
                }
                sequence.extend(round.into_iter().map(|t| (block, t)));
            }
        }
    }
    // In every order a treatment's n-th trial belongs to the n-th block.
    (0..)
        .zip(sequence)
        .map(|(ordinal, (block, treatment))| PlannedTrial {
            ordinal,
            block,
            treatment,
            repeat: block,
        })
        .collect()
}

#[cfg(test)]
mod tests;
