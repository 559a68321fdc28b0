//! `pgdyno recipes`: the built-in experiments.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Args, Subcommand};
use pgdyno_analysis::host_noise;
use pgdyno_experiment::estimate::{self, TimeEstimate};
use pgdyno_experiment::file::{self, Source};
use pgdyno_experiment::{ExperimentError, ResolvedExperiment, recipes};
use pgdyno_provision::ThisHost;
use pgdyno_report as report;
use pgdyno_text::format::counted;

use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print;
use crate::suggestions::Suggestions;

#[derive(Args, Debug)]
pub(crate) struct RecipesArgs {
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Print a recipe's experiment file, to copy and change
    Show {
        /// The recipe's name
        #[arg(value_parser = Suggestions(recipe_names), hide_possible_values = true)]
        name: String,
    },
}

/// Prints one recipe, or a summary of each.
pub(crate) fn run(options: &RecipesArgs) -> Result<ExitStatus, CommandError> {
    match &options.action {
        Some(Action::Show { name }) => print(&recipes::source(name)?.text),
        None => {
            for recipe in recipes::all() {
                print(&summary(&recipe)?);
            }
            print(
                "\n`pgdyno recipes show NAME` prints one to copy and change; `pgdyno run NAME \
                 --size SIZE --dry-run` tells what it would do.",
            );
        }
    }
    Ok(ExitStatus::Success)
}

/// Returns the names of all recipes.
pub(crate) fn recipe_names() -> Vec<String> {
    recipes::all().into_iter().map(|recipe| recipe.name).collect()
}

/// Returns the names of the sizes that recipes have.
pub(crate) fn size_names() -> Vec<String> {
    let sizes = recipes::all().into_iter().flat_map(|it| file::sizes(&it).unwrap_or_default());
    sizes.map(|size| size.name).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Describes an experiment in a few lines: its question, the needs of each of its sizes, its
/// changes to the host.
fn summary(source: &Source) -> Result<String, ExperimentError> {
    // With a fixed order, so that a recipe has the same lines each time.
    let prepare =
        |overrides| ResolvedExperiment::with_seed(source.clone(), overrides, 1, &ThisHost);
    let resolved = prepare(Vec::new())?;
    let question = resolved.plan.question.as_deref().unwrap_or("(no question)");
    let mut lines = vec![resolved.plan.name.clone(), format!("    {question}")];
    let sizes = file::sizes(source)?;
    if sizes.is_empty() {
        lines.push(format!("    {}", needs(&resolved)));
    }
    for size in sizes {
        let needs = needs(&prepare(size.overrides)?);
        lines.push(format!("    --size {:<7} {}: {needs}", size.name, size.about));
    }
    lines.push(match resolved.root_needed_for().as_slice() {
        [] => "    needs no root".to_owned(),
        why => format!("    needs root, for {}", why.join(" and ")),
    });
    lines.push(format!("    makes, and takes down again: {}", resolved.changes().join("; ")));
    Ok(lines.join("\n"))
}

/// Describes the treatments, time and room of a plan in a line.
fn needs(resolved: &ResolvedExperiment) -> String {
    let TimeEstimate { least, most, is_without_trials } = estimate::time(resolved);
    let (least, most) = (hours(least), hours(most));
    let time = if least == most { most } else { format!("{least} to {most}") };
    let repeats = match &resolved.plan.stopping {
        Some(s) => format!("{} to {} repeats", s.floor, s.ceiling),
        None => counted(resolved.experiment.repeats.get(), "repeat"),
    };
    let more = if is_without_trials { " and what the counted transactions take" } else { "" };
    let (room, what) = resolved.room();
    let room =
        if room.0 == 0 { String::new() } else { format!(", up to {room} of disk for {what}") };
    let found = host_noise::found_on_a_busy_host(&resolved.plan);
    format!(
        "{} x {repeats}, about {time}{more}{room}{}",
        counted(resolved.plan.treatments.len() as u64, "treatment"),
        found.map_or_else(String::new, |found| format!("; {}", report::on_a_busy_host(found)))
    )
}

/// Writes a time in minutes, or in hours where there are many.
fn hours(time: Duration) -> String {
    let minutes = time.as_secs().div_ceil(60);
    match minutes {
        0..=119 => format!("{minutes} min"),
        _ => format!("{} h", minutes.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_has_its_sizes_and_each_is_an_experiment() {
        for recipe in recipes::all() {
            let sizes = file::sizes(&recipe).unwrap();
            let names: Vec<&str> = sizes.iter().map(|size| size.name.as_str()).collect();
            match recipe.name.as_str() {
                "quickstart" | "noise-floor" => assert_eq!(names, ["quick"]),
                // No report stands behind these.
                "commit-loss" | "crash-matrix" | "flush-latency" => {
                    assert_eq!(names, ["quick", "large"]);
                }
                "ssd-acceptance" => assert_eq!(names, ["quick", "report", "verbatim", "large"]),
                "big-table" => {
                    assert_eq!(names, ["quick", "report", "buffers", "kinds", "raid0", "large"]);
                }
                "zfs-xfs" => {
                    assert_eq!(names, ["quick", "report", "barriers", "alignment", "large"]);
                }
                "group-commit" => assert_eq!(names, ["quick", "report", "sustained", "large"]),
                _ => assert_eq!(names, ["quick", "report", "large"], "{}", recipe.name),
            }
            for size in sizes {
                let resolved = ResolvedExperiment::new(recipe.clone(), size.overrides, &ThisHost);
                assert!(
                    resolved.is_ok(),
                    "{} --size {}: {}",
                    recipe.name,
                    size.name,
                    resolved.unwrap_err()
                );
            }
        }
    }

    #[test]
    fn at_their_usual_size_recipes_tell_a_fifth_on_a_busy_host() {
        for recipe in recipes::all() {
            let found = |overrides| {
                let resolved =
                    ResolvedExperiment::new(recipe.clone(), overrides, &ThisHost).unwrap();
                host_noise::found_on_a_busy_host(&resolved.plan)
            };
            let quick = found(Vec::new());
            assert_eq!(
                quick,
                found(file::size(&recipe, "quick").unwrap().overrides),
                "{}",
                recipe.name
            );
            let most = match recipe.name.as_str() {
                // So many repeats of it would be no matter of minutes.
                "filesystem-options" => 0.5,
                // Their treatments differ by more, or their question is no difference.
                "flush-latency" | "crash-matrix" => 0.85,
                _ => 0.2,
            };
            assert!(quick.unwrap() <= most, "{}: {quick:?}", recipe.name);
        }
    }

    #[test]
    fn needs_and_changes_are_told() {
        insta::assert_snapshot!(summary(&recipes::source("zfs-xfs").unwrap()).unwrap());
        insta::assert_snapshot!(summary(&recipes::source("quickstart").unwrap()).unwrap());
    }
}
