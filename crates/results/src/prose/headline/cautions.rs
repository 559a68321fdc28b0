//! Cautions: notes in two tiers.

use crate::analysis::{Caution, Note, Tier};

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

/// Returns texts of one kind as cautions of `tier`.
pub(crate) fn plain_cautions<'a>(
    kind: &'static str,
    tier: Tier,
    texts: impl IntoIterator<Item = &'a String>,
) -> Vec<Caution> {
    texts.into_iter().map(|text| Caution { text: text.clone(), kind, tier }).collect()
}
