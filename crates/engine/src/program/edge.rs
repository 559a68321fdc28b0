//! Statements that begin or end a transaction, by their text.

/// Effect of a statement on transaction boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionEdge {
    /// Begins one.
    Begins,
    /// Ends one, or may do so: several queries in one message are not looked into.
    Ends,
    /// Neither. Outside of a transaction block it is a transaction of its own.
    Within,
}

impl TransactionEdge {
    /// Returns the edge of the statement `text`, which `may_be_several` queries.
    pub(super) fn parse(text: &str, may_be_several: bool) -> Self {
        let text = text.trim_start();
        let word = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        let is = |words: &[&str]| words.iter().any(|known| word.eq_ignore_ascii_case(known));
        // What a comment or a variable comes before is not known.
        if may_be_several || word.is_empty() || is(&["commit", "end"]) {
            Self::Ends
        } else if is(&["begin", "start"]) {
            Self::Begins
        } else {
            Self::Within
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_told_by_their_first_word() {
        for (text, edge) in [
            ("BEGIN", TransactionEdge::Begins),
            ("start transaction isolation level serializable", TransactionEdge::Begins),
            ("end", TransactionEdge::Ends),
            ("COMMIT AND CHAIN", TransactionEdge::Ends),
            (":statement", TransactionEdge::Ends),
            ("/* of the day */ COMMIT", TransactionEdge::Ends),
            ("UPDATE t SET commit = 1", TransactionEdge::Within),
            ("endless", TransactionEdge::Within),
        ] {
            assert_eq!(TransactionEdge::parse(text, false), edge, "{text}");
        }
        assert_eq!(TransactionEdge::parse("BEGIN; COMMIT", true), TransactionEdge::Ends);
    }
}
