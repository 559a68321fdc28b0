//! PostgreSQL's programs for a plan: found on this machine or fetched, and asked to judge settings.

use std::collections::BTreeMap;

use pgdyno_exec::account::{Account, server_account};
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::clusters::Build;
use pgdyno_experiment::settings::refuse_twins;
use pgdyno_model::Treatment;
use pgdyno_model::progress::{Activity, Event, Notice};
use pgdyno_postgres as postgres;
use pgdyno_postgres::{FetchProgress, Install, Judgement};
use pgdyno_storage::StorageError;

use crate::BenchError;
use crate::context::Context;

/// Where the programs of a build come from.
#[derive(Clone, Debug)]
pub enum Programs {
    /// Installed on this machine.
    Here(Install),
    /// To be fetched: the major version and the exact version.
    ToFetch(u32, String),
}

/// Finds where the programs of `build` come from. Fetches nothing.
///
/// # Errors
/// The folder that the build names holds no usable server, or there is nothing to fetch.
pub fn find_programs(build: &Build) -> Result<Programs, BenchError> {
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
pub fn install_programs(
    resolved: &ResolvedExperiment,
    account: &Account,
    context: Context<'_>,
) -> Result<BTreeMap<Build, Install>, BenchError> {
    // Before anything is fetched.
    if let Some(storage) = resolved.needs_root_for_all().filter(|_| !pgdyno_exec::caches::is_root())
    {
        let storage = storage.to_owned();
        return Err(StorageError::NotRoot { storage, what: "make filesystems" }.into());
    }
    let mut installs = BTreeMap::new();
    for build in resolved.builds() {
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
                    .map_err(|error| BenchError::not_fetched(error, build.version))?
            }
        };
        judge_settings(&install, resolved, &build)?;
        installs.insert(build, install);
    }
    Ok(installs)
}

/// Lets the server program of `install` judge the settings of the treatments on `build`.
///
/// # Errors
/// The server program refuses a setting, or two treatments differ in how a value is spelled and in
/// nothing else.
pub fn judge_settings(
    install: &Install,
    resolved: &ResolvedExperiment,
    build: &Build,
) -> Result<Judgement, BenchError> {
    let judged = postgres::judge(install, &resolved.settings_on(Some(build)))?;
    let treatments = resolved.plan.treatments.iter();
    let treatments: Vec<&Treatment> = treatments.filter(|t| resolved.build(t) == *build).collect();
    // Each takes a process.
    let mut known: BTreeMap<(String, String), Option<String>> = BTreeMap::new();
    let mut read = |name: &str, value: &str| {
        let asked = known.entry((name.to_owned(), value.to_owned()));
        asked.or_insert_with(|| postgres::value_read(install, name, value)).clone()
    };
    refuse_twins(&treatments, &mut read, &format!("PostgreSQL {}", install.version))?;
    Ok(judged)
}

/// Returns `done` as a fraction of `total`, where the total is known.
fn fraction(done: u64, total: Option<u64>) -> Option<f64> {
    total.filter(|t| *t > 0).map(|total| done as f64 / total as f64)
}
