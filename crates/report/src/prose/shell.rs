//! Command lines that a reader may copy into a shell.
//!
//! Names of runs and settings come from a store, which may be somebody else's: each word is quoted.

use pgdyno_text::printable::is_hazard;

/// Joins `words` to a command line for a POSIX shell.
///
/// Returns none if a word holds a line break or another control character: no quoting makes these
/// fit to be pasted.
pub(crate) fn command_line(words: &[&str]) -> Option<String> {
    let words: Option<Vec<String>> = words.iter().map(|word| quoted(word)).collect();
    Some(words?.join(" "))
}

fn quoted(word: &str) -> Option<String> {
    if word.chars().any(|c| matches!(c, '\n' | '\t') || is_hazard(c)) {
        return None;
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Some(word.to_owned());
    }
    Some(format!("'{}'", word.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_more_into_them() {
        let line = command_line(&["pgdyno", "run", "--set", "factors.clients=[1,16]", "a'$(x)"]);
        let expected = r"pgdyno run --set 'factors.clients=[1,16]' 'a'\''$(x)'";
        assert_eq!(line.as_deref(), Some(expected));
        assert_eq!(command_line(&["pgdyno", "show", "a\nrm"]), None);
    }
}
