//! Names of new records in the store.

use pgdyno_model::units::Epoch;

/// Returns a name for a record that was begun at `started_at`, such as
/// `group-commit-20261121-064813-wxyz`.
pub fn new_record_id(stem: &str, started_at: Epoch) -> String {
    // 2026-11-21T06:48:13Z becomes 20261121-064813; four letters tell records of one second apart.
    let stamp: String = started_at.to_string().chars().filter(char::is_ascii_digit).collect();
    let (date, time) = stamp.split_at(stamp.len().min(8));
    let letters: String = std::iter::repeat_with(fastrand::lowercase).take(4).collect();
    format!("{stem}-{date}-{time}-{letters}")
}

/// Returns an experiment's name as the stem of a record's name: without characters that file names
/// and shells dislike.
pub fn stem(name: &str) -> String {
    let stem: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '-' })
        .collect();
    let stem = stem.trim_matches(['-', '.']);
    if stem.is_empty() { "run".to_owned() } else { stem.chars().take(60).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_can_be_file_names() {
        assert_eq!(stem("group-commit"), "group-commit");
        assert_eq!(stem("../what about: \"this\"?"), "what-about---this");
        assert_eq!(stem("…"), "run");
    }
}
