//! Settings of the servers of a plan.

use std::collections::BTreeMap;

use pgdyno_model::Treatment;
use pgdyno_postgres::settings::may_be_one_value;

use crate::error::ExperimentError;
use crate::resolved_experiment::ResolvedExperiment;

/// Returns the settings that hold while data is loaded, and under every treatment that does not
/// override them.
///
/// `max_connections` allows for the treatment with the most clients, unless the file sets it.
pub fn base_settings(resolved: &ResolvedExperiment) -> BTreeMap<String, String> {
    let settings = &resolved.experiment.postgres.settings;
    let mut settings: BTreeMap<String, String> =
        settings.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
    let treatments = &resolved.plan.treatments;
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
pub fn replace_setting(
    settings: &mut BTreeMap<String, String>,
    name: &str,
    value: impl Into<String>,
) {
    settings.retain(|known, _| !known.eq_ignore_ascii_case(name));
    settings.insert(name.to_owned(), value.into());
}

/// Returns the `max_connections` that `clients` clients need; none if PostgreSQL's default does.
pub fn max_connections(clients: u32) -> Option<u32> {
    /// Control connections, telemetry, and PostgreSQL's own reserve.
    const OTHERS: u32 = 20;
    /// PostgreSQL's default.
    const DEFAULT: u32 = 100;
    Some(clients.saturating_add(OTHERS)).filter(|connections| *connections > DEFAULT)
}

/// Refuses two of `treatments` that differ in how a value is spelled and in nothing else. `read`
/// returns what `server` makes of the value of a setting.
///
/// # Errors
/// There are two such treatments.
pub fn refuse_twins(
    treatments: &[&Treatment],
    mut read: impl FnMut(&str, &str) -> Option<String>,
    server: &str,
) -> Result<(), ExperimentError> {
    for (at, one) in treatments.iter().enumerate() {
        for other in &treatments[at + 1..] {
            if let Some(what) = spelled_twice(one, other, &mut read) {
                return Err(ExperimentError::refused(
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
