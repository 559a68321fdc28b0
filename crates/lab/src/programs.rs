//! PostgreSQL's programs for a plan: found on this machine or fetched, and asked to judge settings.

use std::collections::BTreeMap;

use pgdyno_exec::account::{Account, server_account};
use pgdyno_model::Treatment;
use pgdyno_model::progress::{Activity, Event, Notice};
use pgdyno_postgres as postgres;
use pgdyno_postgres::settings::may_be_one_value;
use pgdyno_postgres::{FetchProgress, Install, Judgement};

use crate::LabError;
use crate::context::Context;
use crate::prepare::{Build, Prepared};

/// Where the programs of a build come from.
#[derive(Clone, Debug)]
pub(crate) enum Programs {
    /// Installed on this machine.
    Here(Install),
    /// To be fetched: the major version and the exact version.
    ToFetch(u32, String),
}

/// Finds where the programs of `build` come from. Fetches nothing.
///
/// # Errors
/// The folder that the build names holds no usable server, or there is nothing to fetch.
pub(crate) fn find_programs(build: &Build) -> Result<Programs, LabError> {
    if let Some(found) = postgres::find(build.bindir.as_deref(), build.version)? {
        return Ok(Programs::Here(found));
    }
    let here = postgres::fetch::Fetcher::here();
    let major = build.version.unwrap_or_else(|| here.newest_major());
    if let Some(cached) = here.cached(major, &server_account()?) {
        return Ok(Programs::Here(cached));
    }
    let version = here.artifact(major)?.version;
    Ok(Programs::ToFetch(major, version.to_owned()))
}

/// Provides the programs of every build that the plan uses and fetches those that are missing.
///
/// Each build's server judges the settings that it will be given, before any storage is made. A
/// server program that cannot be asked is passed over: the running server judges them again.
///
/// # Errors
/// Every storage takes root and there is none, programs cannot be found or fetched, or a server
/// refuses a setting.
pub(crate) fn install_programs(
    prepared: &Prepared,
    account: &Account,
    context: Context<'_>,
) -> Result<BTreeMap<Build, Install>, LabError> {
    prepared.check_root()?;
    let mut installs = BTreeMap::new();
    for build in prepared.builds() {
        let install = match find_programs(&build)? {
            Programs::Here(install) => install,
            Programs::ToFetch(major, exact) => {
                context.note(Notice::FetchingPrograms {
                    wanted: build.version,
                    version: exact.clone(),
                });
                let report = |fetched: FetchProgress| {
                    let version = exact.clone();
                    let (activity, share) = match fetched {
                        FetchProgress::Downloading { done, total } => {
                            (Activity::FetchingPostgres { version }, fraction(done, total))
                        }
                        FetchProgress::Unpacking => (Activity::UnpackingPostgres { version }, None),
                    };
                    context.event(&Event::Working { activity, share });
                };
                postgres::fetch(major, account, context.stop, &report)
                    .map_err(|error| LabError::not_fetched(error, build.version))?
            }
        };
        judge_settings(&install, prepared, &build)?;
        installs.insert(build, install);
    }
    Ok(installs)
}

/// Lets the server program of `install` judge the settings of the treatments on `build`.
///
/// # Errors
/// The server program refuses a setting, or two treatments differ in how a value is spelled and in
/// nothing else.
pub(crate) fn judge_settings(
    install: &Install,
    prepared: &Prepared,
    build: &Build,
) -> Result<Judgement, LabError> {
    let judged = postgres::judge(install, &prepared.settings_on(Some(build)))?;
    let treatments = prepared.plan.treatments.iter();
    let treatments: Vec<&Treatment> = treatments.filter(|t| prepared.build(t) == *build).collect();
    // Each takes a process.
    let mut known: BTreeMap<(String, String), Option<String>> = BTreeMap::new();
    let mut read = |name: &str, value: &str| {
        let asked = known.entry((name.to_owned(), value.to_owned()));
        asked.or_insert_with(|| postgres::value_read(install, name, value)).clone()
    };
    refuse_twins(&treatments, &mut read, &format!("PostgreSQL {}", install.version))?;
    Ok(judged)
}

/// Refuses two of `treatments` that differ in how a value is spelled and in nothing else. `read`
/// returns what `server` makes of the value of a setting.
///
/// # Errors
/// There are two such treatments.
pub(crate) fn refuse_twins(
    treatments: &[&Treatment],
    mut read: impl FnMut(&str, &str) -> Option<String>,
    server: &str,
) -> Result<(), LabError> {
    for (at, one) in treatments.iter().enumerate() {
        for other in &treatments[at + 1..] {
            if let Some(what) = spelled_twice(one, other, &mut read) {
                return Err(LabError::refused(
                    format!("{what} to {server}"),
                    "leave one of the two out: a treatment would be compared with itself",
                ));
            }
        }
    }
    Ok(())
}

/// Says how the settings of two treatments come to the same values, if nothing else tells the
/// treatments apart.
fn spelled_twice(
    one: &Treatment,
    other: &Treatment,
    read: &mut impl FnMut(&str, &str) -> Option<String>,
) -> Option<String> {
    let differ = |(name, a): (&String, &String)| {
        let b = other.settings.get(name)?;
        (a != b).then(|| (name.clone(), a.clone(), b.clone()))
    };
    let differing: Vec<_> = one.settings.iter().filter_map(differ).collect();
    let (name, a, b) = differing.first()?;
    let are_names_alike = one.settings.keys().eq(other.settings.keys());
    if !are_names_alike || !differing.iter().all(|(_, a, b)| may_be_one_value(a, b)) {
        return None;
    }
    let settings_apart =
        Treatment { levels: one.levels.clone(), settings: one.settings.clone(), ..other.clone() };
    let mut is_one = |(name, a, b): &(String, String, String)| {
        read(name, a).is_some_and(|value| read(name, b) == Some(value))
    };
    if settings_apart != *one || !differing.iter().all(&mut is_one) {
        return None;
    }
    let value = read(name, a)?;
    Some(format!("two levels are one: {name} = {a} and {name} = {b} are both {value}"))
}

/// Returns `done` as a fraction of `total`, where the total is known.
#[allow(clippy::cast_precision_loss)]
fn fraction(done: u64, total: Option<u64>) -> Option<f64> {
    total.filter(|t| *t > 0).map(|total| done as f64 / total as f64)
}

/// Returns the settings that hold while data is loaded, and under every treatment that does not
/// override them.
///
/// `max_connections` allows for the treatment with the most clients, unless the file sets it.
pub(crate) fn base_settings(prepared: &Prepared) -> BTreeMap<String, String> {
    let settings = &prepared.experiment.postgres.settings;
    let mut settings: BTreeMap<String, String> =
        settings.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
    let treatments = &prepared.plan.treatments;
    let clients = treatments.iter().map(|t| t.clients).max().unwrap_or(0);
    let is_set = |name: &String| name.eq_ignore_ascii_case("max_connections");
    if let Some(connections) = max_connections(clients)
        && !treatments.iter().any(|t| t.settings.keys().any(is_set))
    {
        settings.insert("max_connections".into(), connections.to_string());
    }
    settings
}

/// Gives the setting `name` a value, however its name is spelled in `settings`.
pub(crate) fn replace_setting(
    settings: &mut BTreeMap<String, String>,
    name: &str,
    value: impl Into<String>,
) {
    settings.retain(|known, _| !known.eq_ignore_ascii_case(name));
    settings.insert(name.to_owned(), value.into());
}

/// Returns the `max_connections` that `clients` clients need; none if PostgreSQL's default does.
pub(crate) fn max_connections(clients: u32) -> Option<u32> {
    /// Control connections, telemetry, and PostgreSQL's own reserve.
    const OTHERS: u32 = 20;
    /// PostgreSQL's default.
    const DEFAULT: u32 = 100;
    Some(clients.saturating_add(OTHERS)).filter(|connections| *connections > DEFAULT)
}
