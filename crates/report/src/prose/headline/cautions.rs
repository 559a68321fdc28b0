//! Cautions: notes in two tiers.

use crate::headline::{Caution, Tier};
use crate::note::Note;

/// Returns the notes as cautions, first those that may change the conclusion.
pub(crate) fn cautions(notes: &[Note]) -> Vec<Caution> {
    let caution = |note: &Note| Caution {
        text: note.text.clone(),
        kind: note.kind.name(),
        tier: note.kind.tier(),
    };
    let mut all: Vec<Caution> = notes.iter().map(caution).collect();
    all.sort_by_key(|caution| caution.tier);
    all
}

/// Joins notes that say the same of several of `faults`, named by their first word.
///
/// ```text
/// power was played on …    process was played on …    →    power, process: was played on …
/// ```
pub(crate) fn joined_by_fault(notes: &[String], faults: &[&str]) -> Vec<String> {
    let mut joined: Vec<(Vec<&str>, &str)> = Vec::new();
    for note in notes {
        let parts = note.split_once(' ').filter(|(first, _)| faults.contains(first));
        let (name, rest) = parts.map_or((None, note.as_str()), |(name, rest)| (Some(name), rest));
        match joined.iter_mut().find(|(names, known)| !names.is_empty() && *known == rest) {
            Some((names, _)) => names.extend(name),
            None => joined.push((name.into_iter().collect(), rest)),
        }
    }
    let text = |(names, rest): (Vec<&str>, &str)| match names.as_slice() {
        [] => rest.to_owned(),
        [name] => format!("{name} {rest}"),
        names => format!("{}: {rest}", names.join(", ")),
    };
    joined.into_iter().map(text).collect()
}

/// Returns texts of one kind as cautions of `tier`.
pub(crate) fn plain_cautions<'a>(
    kind: &'static str,
    tier: Tier,
    texts: impl IntoIterator<Item = &'a String>,
) -> Vec<Caution> {
    texts.into_iter().map(|text| Caution { text: text.clone(), kind, tier }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_on_several_faults_is_one_note() {
        let notes = ["power was emulated", "no checkpoint", "process was emulated", "power slept"];
        let notes = notes.map(str::to_owned);
        assert_eq!(
            joined_by_fault(&notes, &["power", "process"]),
            ["power, process: was emulated", "no checkpoint", "power slept"]
        );
    }
}
