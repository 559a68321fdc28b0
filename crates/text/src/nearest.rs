//! The allowed words nearest to one that is not.

/// `allowed`, those most like `word` first.
pub fn nearest<'a>(word: &str, allowed: &[&'a str]) -> Vec<&'a str> {
    let mut all: Vec<&str> = allowed.to_vec();
    all.sort_by_cached_key(|candidate| {
        let distance = strsim::damerau_levenshtein(word, candidate);
        // `dur` means `duration`, although much is missing.
        let is_begun = candidate.starts_with(word) || word.starts_with(candidate);
        (if is_begun { distance.min(1) } else { distance }, !is_begun)
    });
    all
}

/// The allowed word that `word` was probably meant to be: at most a third of it differs.
pub fn probable<'a>(word: &str, allowed: &[&'a str]) -> Option<&'a str> {
    let first = *nearest(word, allowed).first()?;
    let distance = strsim::damerau_levenshtein(word, first);
    (distance > 0 && distance <= (word.len() / 3).max(1)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_a_stranger_finds_none() {
        let allowed = ["clients", "threads", "duration", "warm_up"];
        assert_eq!(probable("client", &allowed), Some("clients"));
        assert_eq!(probable("warmup", &allowed), Some("warm_up"));
        assert_eq!(probable("shared_buffers", &allowed), None);
        assert_eq!(nearest("dur", &allowed)[0], "duration");
        assert_eq!(nearest("of", &["on", "off"])[0], "off");
    }
}
