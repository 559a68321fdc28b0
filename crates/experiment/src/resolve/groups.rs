//! Groups of a treatment's clients: those of its workload, as the experiment sets them.

use std::num::NonZeroU32;

use pgdyno_dataset::workload::Workload;
use pgdyno_model::Treatment;
use pgdyno_model::level::{Key, LevelValue};
use pgdyno_text::nearest::nearest;

use crate::error::ExperimentError;
use crate::file::{key_name, set_of_group};

/// Gives `treatment` the groups of `workload` with the values of `keys`, and all their clients.
/// `counts_clients`: the experiment gives a number of clients.
///
/// # Errors
/// A key names no group, or keys exclude each other.
pub(super) fn divide(
    treatment: &mut Treatment,
    workload: &Workload,
    keys: &[&(Key, LevelValue)],
    counts_clients: bool,
) -> Result<(), ExperimentError> {
    let mut groups = workload.groups.clone();
    for (key, value) in keys {
        let Key::Group(name, of_group) = key else { continue };
        let Some(group) = groups.iter_mut().find(|group| group.name == *name) else {
            return Err(no_such(workload, key, name));
        };
        set_of_group(group, *of_group, value);
    }
    if groups.is_empty() {
        return Ok(());
    }
    let refused = |found: &str, key: &str| {
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        ExperimentError::refused(
            format!("`{}` has groups of clients, each with {found} of its own", workload.name),
            format!("set `groups.NAME.{key}` instead; the groups are {}", names.join(", ")),
        )
    };
    if counts_clients {
        return Err(refused("a number", "clients"));
    }
    if treatment.options.rate.is_some() {
        return Err(refused("a rate", "rate"));
    }
    if let Some(group) = groups.iter().find(|g| g.rate.is_some() && !g.think_time.0.is_zero()) {
        let what = format!(
            "group `{}` has a rate and a think time: its transactions would be due at two times",
            group.name
        );
        let help = format!("give it one; `groups.{}.think_time = \"0s\"` is none", group.name);
        return Err(ExperimentError::refused(what, help));
    }
    let clients = groups.iter().map(|group| group.clients);
    let all = clients.reduce(|all, more| all.saturating_add(more.get()));
    treatment.clients = all.map_or(0, NonZeroU32::get);
    treatment.groups = groups;
    Ok(())
}

/// Creates the error of `key`, whose group `name` the workload does not have.
fn no_such(workload: &Workload, key: &Key, name: &str) -> ExperimentError {
    let known: Vec<&str> = workload.groups.iter().map(|group| group.name.as_str()).collect();
    let help = match nearest(name, &known).as_slice() {
        [] => "all its clients run all its scripts: `load.clients` and `load.rate` are theirs; a \
               folder of your own can divide them by `[[group]]`"
            .to_owned(),
        all => format!("its groups are {}", all.join(", ")),
    };
    let what = format!(
        "cannot set `{}`: workload `{}` has no group `{name}`",
        key_name(key),
        workload.name
    );
    ExperimentError::refused(what, help)
}
