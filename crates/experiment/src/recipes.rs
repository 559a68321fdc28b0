//! The experiments that are built in.

use std::path::{Path, PathBuf};

use pgdyno_text::nearest::nearest;

use crate::file::{FileError, Source};

macro_rules! files {
    ($before:literal, $after:literal, [$($name:literal),+ $(,)?]) => {
        &[$(($name, include_str!(concat!("../../../experiments/", $before, $name, $after)))),+]
    };
}

/// The files of `experiments/`: name and text, in alphabetical order.
static RECIPES: &[(&str, &str)] = files!(
    "",
    ".toml",
    [
        "big-table",
        "commit-loss",
        "crash-matrix",
        "filesystem-options",
        "filesystems",
        "flush-latency",
        "group-commit",
        "noise-floor",
        "quickstart",
        "ssd-acceptance",
        "zfs-xfs",
    ]
);

/// The files of `experiments/figures/`, likewise.
static FIGURES: &[(&str, &str)] =
    files!("figures/", ".txt", ["filesystems", "group-commit", "ssd-acceptance", "zfs-xfs",]);

/// Returns every recipe as an experiment's source, by name.
pub fn all() -> Vec<Source> {
    let source = |(name, text): &(&str, &str)| Source {
        shown: display_name(name),
        name: (*name).to_owned(),
        text: (*text).to_owned(),
        base: PathBuf::from("."),
    };
    RECIPES.iter().map(source).collect()
}

fn display_name(name: &str) -> String {
    format!("recipe {name}")
}

/// Returns the recipe's name, if `source` is one that is built in.
pub fn name_of(source: &Source) -> Option<&str> {
    (source.shown == display_name(&source.name)).then_some(source.name.as_str())
}

/// Returns the figures of the published report that recipe `name` asks again, as `pgdyno audit`
/// reads them: the file's name and what it holds. None where no report stands behind it, or where
/// its figures are in charts only.
pub fn figures(name: &str) -> Option<(String, &'static [u8])> {
    let (_, text) = FIGURES.iter().find(|(of, _)| *of == name)?;
    Some((format!("{name}.txt"), text.as_bytes()))
}

/// Returns the file that `named` means; none: a recipe.
pub fn file(named: &str) -> Option<&Path> {
    let is_file = named.contains('/') || named.ends_with(".toml") || Path::new(named).is_file();
    is_file.then(|| Path::new(named))
}

/// Returns the experiment that `named` means: a file where there is one, else a recipe.
///
/// # Errors
/// Neither is there, or the file cannot be read.
pub fn source(named: &str) -> Result<Source, FileError> {
    if let Some(file) = file(named) {
        return Source::read(file);
    }
    let recipes = all();
    match recipes.iter().find(|r| r.name == named) {
        Some(recipe) => Ok(recipe.clone()),
        None => {
            let names: Vec<&str> = recipes.iter().map(|r| r.name.as_str()).collect();
            let recipes = nearest(named, &names).join(", ");
            let help = format!("the recipes are {recipes}; `pgdyno recipes` tells what each asks");
            let what = format!("cannot run `{named}`: there is no file and no recipe of that name");
            Err(FileError::Refused { what, help: Some(help) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResolvedExperiment;
    use crate::host::NoDevices;

    #[test]
    fn figures_are_of_recipes() {
        let with: Vec<String> =
            all().into_iter().map(|r| r.name).filter(|name| figures(name).is_some()).collect();
        assert_eq!(with, ["filesystems", "group-commit", "ssd-acceptance", "zfs-xfs"]);
        assert_eq!(FIGURES.len(), with.len());
    }

    #[test]
    fn every_file_of_the_folder_is_built_in() {
        for (folder, built_in) in [("", RECIPES), ("figures", FIGURES)] {
            let folder =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments").join(folder);
            let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            let mut found: Vec<_> = files.filter(|path| path.is_file()).collect();
            found.sort();
            let found: Vec<_> = found.iter().map(|path| path.file_stem().unwrap()).collect();
            assert_eq!(found, built_in.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        }
    }

    #[test]
    fn every_recipe_parses_and_asks_something() {
        let recipes = all();
        assert!(recipes.iter().any(|r| r.name == "quickstart"));
        for recipe in recipes {
            let experiment = crate::file::parse(&recipe, &[]).unwrap();
            assert!(experiment.question.is_some(), "{}", recipe.name);
        }
    }

    #[test]
    fn the_noise_floor_runs_one_treatment_under_two_names() {
        let source = source("noise-floor").unwrap();
        let plan = ResolvedExperiment::with_seed(source, Vec::new(), 1, &NoDevices).unwrap().plan;
        let [a, b] = plan.treatments.as_slice() else { panic!("{:?}", plan.treatments) };
        assert_ne!(a.levels, b.levels);
        assert_eq!(*a, pgdyno_model::Treatment { levels: a.levels.clone(), ..b.clone() });
    }
}
