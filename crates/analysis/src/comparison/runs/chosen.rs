//! One side of a comparison: a run, and which of its treatments.

use std::collections::BTreeMap;

use pgdyno_model::Levels;

use super::equal::Side;
use super::error::CompareError;
use super::view::SideView;
use crate::records::RunData;
use crate::view::RunHead;
use pgdyno_store::Store;

/// Run of a side, and its chosen treatments.
pub(super) struct Selection {
    pub(super) run: RunData,
    pub(super) treatments: Vec<usize>,
    /// Whether just one was named.
    pub(super) named: bool,
}

impl Selection {
    pub(super) fn read(store: &Store, name: &str) -> Result<Self, CompareError> {
        let (run, which) = match name.split_once(':') {
            Some((run, which)) => (run, Some(which)),
            None => (name, None),
        };
        let run = RunData::read(store, &store.resolve(run)?)?;
        let treatments = match which {
            Some(which) => chosen(&run, which)?,
            None => run.treatments.iter().map(|t| t.index).collect(),
        };
        let named = which.is_some() && treatments.len() == 1;
        Ok(Self { run, treatments, named })
    }

    pub(super) fn labels(&self) -> Vec<String> {
        self.treatments.iter().map(|t| self.run.treatments[*t].label.clone()).collect()
    }

    /// One of its treatments, as far as it must be equal to another.
    pub(super) fn treatment(&self, index: usize) -> Side<'_> {
        let treatment = &self.run.plan.treatments[index];
        Side { run: &self.run, treatment, index }
    }

    pub(super) fn side(self, unmatched: Vec<String>) -> SideView {
        let hosts = self.run.hosts();
        let RunHead { id: run, recipe, started_at, state, .. } = self.run.head;
        SideView { run, recipe, started_at, state, hosts, unmatched }
    }
}

/// The treatments of `run` that `which` names.
pub(super) fn chosen(run: &RunData, which: &str) -> Result<Vec<usize>, CompareError> {
    let unknown = |why: String| CompareError::NoSuchTreatment {
        run: run.head.id.clone(),
        given: which.to_owned(),
        why,
        known: run.treatments.iter().map(|t| format!("{}: {}", t.index + 1, t.label)).collect(),
    };
    if let Ok(number) = which.trim().parse::<usize>() {
        return match number.checked_sub(1).filter(|index| *index < run.treatments.len()) {
            Some(index) => Ok(vec![index]),
            None => Err(unknown(format!("they are numbered from 1 to {}", run.treatments.len()))),
        };
    }
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    let mut rest = Some(which);
    while let Some(text) = rest {
        let (factor, level) = match text.split_once('=') {
            Some((factor, level)) if !factor.contains(',') => (factor.trim(), level.trim_start()),
            _ => {
                let pair = text.split(',').next().unwrap_or_default();
                return Err(unknown(format!("`{pair}` is neither a number nor FACTOR=LEVEL")));
            }
        };
        if !run.plan.factors.iter().any(|f| f == factor) {
            return Err(unknown(format!("`{factor}` is none of its factors")));
        }
        let level_end = end_of_level(run, factor, level);
        wanted.push((factor, level[..level_end].trim_end()));
        rest = level[level_end..].split_once(',').map(|(_, rest)| rest);
    }
    let has = |levels: &Levels| {
        wanted
            .iter()
            .all(|(factor, level)| levels.get(factor).is_some_and(|l| l.to_string() == *level))
    };
    let found: Vec<usize> =
        run.treatments.iter().filter(|t| has(&t.factors)).map(|t| t.index).collect();
    if found.is_empty() { Err(unknown("none has these levels".to_owned())) } else { Ok(found) }
}

/// Finds the end of the level that `text` begins with: after the longest level of `factor` that
/// stands there as a whole, whatever commas it has (`ssh:gen1,gen2`); else at the first comma.
fn end_of_level(run: &RunData, factor: &str, text: &str) -> usize {
    let levels = run.treatments.iter().filter_map(|t| Some(t.factors.get(factor)?.to_string()));
    let is_whole = |level: &String| {
        let after = text.strip_prefix(level.as_str()).map(str::trim_start);
        after.is_some_and(|after| after.is_empty() || after.starts_with(','))
    };
    let longest = levels.filter(is_whole).map(|level| level.len()).max();
    longest.or_else(|| text.find(',')).unwrap_or(text.len())
}

/// Returns the labels of all factors except `by`, whatever the files' order and spelling (`"on"`,
/// `true`).
pub(super) fn others(levels: &Levels, by: &[String]) -> BTreeMap<String, String> {
    let others = levels.0.iter().filter(|(name, _)| !by.contains(name));
    others.map(|(name, level)| (name.clone(), level.to_string())).collect()
}
