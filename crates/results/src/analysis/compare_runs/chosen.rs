//! One side of a comparison: a run, and which of its treatments.

use std::collections::BTreeMap;

use pgdyno_model::Levels;

use super::super::run::read;
use super::super::treatment::TreatmentSamples;
use super::super::view::{RunHead, RunView};
use super::equal::Side;
use super::error::CompareError;
use super::view::SideView;
use crate::store::Store;

/// A side's run, and the treatments of it that are meant.
pub(super) struct Selection {
    pub(super) view: RunView,
    pub(super) sums: Vec<TreatmentSamples>,
    pub(super) treatments: Vec<usize>,
    /// Whether just one was named.
    pub(super) named: bool,
}

impl Selection {
    pub(super) fn of(store: &Store, name: &str) -> Result<Self, CompareError> {
        let (run, which) = match name.split_once(':') {
            Some((run, which)) => (run, Some(which)),
            None => (name, None),
        };
        let (view, sums) = read(store, &store.resolve(run)?)?;
        let treatments = match which {
            Some(which) => chosen(&view, which)?,
            None => view.treatments.iter().map(|t| t.index).collect(),
        };
        let named = which.is_some() && treatments.len() == 1;
        Ok(Self { view, sums, treatments, named })
    }

    pub(super) fn labels(&self) -> Vec<String> {
        self.treatments.iter().map(|t| self.view.treatments[*t].label.clone()).collect()
    }

    /// One of its treatments, as far as it must be equal to another.
    pub(super) fn treatment(&self, index: usize) -> Side<'_> {
        let treatment = &self.view.plan.treatments[index];
        Side { view: &self.view, sums: &self.sums[index], treatment, index }
    }

    pub(super) fn side(self, unmatched: Vec<String>) -> SideView {
        let RunHead { id: run, recipe, started_at, state, .. } = self.view.run;
        SideView { run, recipe, started_at, state, unmatched }
    }
}

/// The treatments of `view` that `which` names.
pub(super) fn chosen(view: &RunView, which: &str) -> Result<Vec<usize>, CompareError> {
    let unknown = |why: String| CompareError::NoSuchTreatment {
        run: view.run.id.clone(),
        given: which.to_owned(),
        why,
        known: view.treatments.iter().map(|t| format!("{}: {}", t.index + 1, t.label)).collect(),
    };
    if let Ok(number) = which.trim().parse::<usize>() {
        return match number.checked_sub(1).filter(|index| *index < view.treatments.len()) {
            Some(index) => Ok(vec![index]),
            None => Err(unknown(format!("they are numbered from 1 to {}", view.treatments.len()))),
        };
    }
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    for pair in which.split(',') {
        let Some((factor, level)) = pair.split_once('=') else {
            return Err(unknown(format!("`{pair}` is neither a number nor FACTOR=LEVEL")));
        };
        if !view.plan.factors.iter().any(|f| f == factor.trim()) {
            return Err(unknown(format!("`{}` is none of its factors", factor.trim())));
        }
        wanted.push((factor.trim(), level.trim()));
    }
    let has = |levels: &Levels| {
        wanted
            .iter()
            .all(|(factor, level)| levels.get(factor).is_some_and(|l| l.to_string() == *level))
    };
    let found: Vec<usize> =
        view.treatments.iter().filter(|t| has(&t.factors)).map(|t| t.index).collect();
    if found.is_empty() { Err(unknown("none has these levels".to_owned())) } else { Ok(found) }
}

/// The labels of all factors but those of `by`, whatever the files' order and spelling (`"on"`,
/// `true`).
pub(super) fn others(levels: &Levels, by: &[String]) -> BTreeMap<String, String> {
    let others = levels.0.iter().filter(|(name, _)| !by.contains(name));
    others.map(|(name, level)| (name.clone(), level.to_string())).collect()
}
