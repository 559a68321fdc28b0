//! The experiments that are built in.

use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};

use crate::file::{FileError, Source};
use crate::nearest::nearest;

static EXPERIMENTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../experiments");

/// Every recipe as an experiment's source, by name.
#[must_use]
pub fn all() -> Vec<Source> {
    let mut recipes: Vec<Source> = EXPERIMENTS
        .files()
        .filter_map(|file| {
            let name = file.path().file_stem()?.to_str()?.to_owned();
            let text = file.contents_utf8()?.to_owned();
            Some(Source { shown: format!("recipe {name}"), name, text, base: PathBuf::from(".") })
        })
        .collect();
    recipes.sort_by(|a, b| a.name.cmp(&b.name));
    recipes
}

/// The experiment that `named` means: a file where there is one, else a recipe.
///
/// # Errors
/// Neither is there, or the file cannot be read.
pub fn source(named: &str) -> Result<Source, FileError> {
    if named.contains('/') || named.ends_with(".toml") || Path::new(named).is_file() {
        return Source::read(Path::new(named));
    }
    let recipes = all();
    match recipes.iter().find(|r| r.name == named) {
        Some(recipe) => Ok(recipe.clone()),
        None => {
            let names: Vec<&str> = recipes.iter().map(|r| r.name.as_str()).collect();
            let recipes = nearest(named, &names).into_iter().map(str::to_owned).collect();
            Err(FileError::NoSuchRecipe { name: named.to_owned(), recipes })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let experiment = crate::file::parse(&source("noise-floor").unwrap(), &[]).unwrap();
        let (plan, _) = crate::resolve::resolve(&experiment).unwrap();
        let [a, b] = plan.treatments.as_slice() else { panic!("{:?}", plan.treatments) };
        assert_ne!(a.levels, b.levels);
        assert_eq!(*a, pgdyno_model::Treatment { levels: a.levels.clone(), ..b.clone() });
    }
}
