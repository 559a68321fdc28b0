//! Facts about SQL that a replay needs, from its words alone.

/// Facts about a text of SQL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SqlFacts {
    /// Highest number of a parameter (`$2` is 2).
    pub(crate) parameters: u16,
    /// Whether a command awaits COPY data of the client's.
    pub(crate) reads_copy_data: bool,
    /// Whether a command may remove prepared statements: DEALLOCATE, DISCARD.
    pub(crate) removes_prepared: bool,
    /// Whether a command sets another `client_encoding` than that of a replay, UTF8.
    pub(crate) changes_encoding: bool,
}

impl SqlFacts {
    /// Reads the facts about `sql`.
    pub(crate) fn read(sql: &str) -> Self {
        let mut facts = Self::default();
        let (mut first, mut is_after_from) = (None, false);
        let mut sets_encoding = false;
        for token in (Tokens { rest: sql }) {
            match token {
                Token::Semicolon => (first, is_after_from) = (None, false),
                Token::Parameter(number) => facts.parameters = facts.parameters.max(number),
                Token::Word(word) => {
                    let first = *first.get_or_insert(word);
                    let is = |name: &str| first.eq_ignore_ascii_case(name);
                    facts.removes_prepared |= is("DEALLOCATE") || is("DISCARD");
                    let names_encoding = ["CLIENT_ENCODING", "NAMES"];
                    sets_encoding |= is("SET")
                        && names_encoding.iter().any(|name| word.eq_ignore_ascii_case(name));
                    let is_stdin = is_after_from && word.eq_ignore_ascii_case("STDIN");
                    facts.reads_copy_data |= is_stdin && is("COPY");
                    is_after_from = word.eq_ignore_ascii_case("FROM");
                }
                Token::Other => is_after_from = false,
            }
        }
        if sets_encoding {
            // Their names are written in many ways.
            let sql = sql.to_ascii_uppercase();
            facts.changes_encoding =
                !["UTF8", "UTF-8", "UNICODE", "DEFAULT"].iter().any(|name| sql.contains(name));
        }
        facts
    }
}

/// Part of a text that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A keyword or a name without quotes.
    Word(&'a str),
    /// A parameter with its number.
    Parameter(u16),
    Semicolon,
    /// A literal, a quoted name, an operator.
    Other,
}

/// Iterates over the tokens of SQL; comments and blanks are left out.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    /// Takes `length` bytes, or all if there are fewer.
    fn take(&mut self, length: usize) -> &'a str {
        let (token, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        token
    }

    /// Takes all up to the end of `terminator`, which lies `from` bytes ahead or later.
    fn take_through(&mut self, from: usize, terminator: &str) {
        let end = self.rest.get(from..).and_then(|text| text.find(terminator));
        self.take(end.map_or(self.rest.len(), |at| from + at + terminator.len()));
    }

    /// Takes a string; with `escapes`, a backslash takes the next character along.
    fn take_string(&mut self, escapes: bool) {
        let bytes = self.rest.as_bytes();
        let mut at = 1;
        while at < bytes.len() {
            match bytes[at] {
                b'\\' if escapes => at += 2,
                b'\'' => {
                    at += 1;
                    break;
                }
                _ => at += 1,
            }
        }
        // A doubled quote begins another string right behind, which comes to the same.
        while at < bytes.len() && !self.rest.is_char_boundary(at) {
            at += 1;
        }
        self.take(at.min(bytes.len()));
    }

    /// Takes a comment, in which others may be nested.
    fn take_comment(&mut self) {
        let (mut depth, mut at) = (0_usize, 0);
        let bytes = self.rest.as_bytes();
        while at < bytes.len() {
            match &bytes[at..] {
                [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
                [b'*', b'/', ..] => (depth, at) = (depth.saturating_sub(1), at + 2),
                _ => at += 1,
            }
            if depth == 0 {
                break;
            }
        }
        self.take(at);
    }

    fn take_word(&mut self) -> &'a str {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        self.take(end)
    }

    /// Takes a parameter, a dollar-quoted string, or the sign alone.
    fn take_dollar(&mut self) -> Token<'a> {
        let digits = self.rest[1..].bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            let token = self.take(1 + digits);
            return Token::Parameter(token[1..].parse().unwrap_or(u16::MAX));
        }
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let end = self.rest[1..].find(|c| !is_part(c)).map_or(self.rest.len(), |at| 1 + at);
        if self.rest[end..].starts_with('$') {
            let tag = &self.rest[..=end];
            self.take_through(tag.len(), tag);
        } else {
            self.take(end);
        }
        Token::Other
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            self.rest = self.rest.trim_start();
            if self.rest.starts_with("--") {
                self.take_through(0, "\n");
            } else if self.rest.starts_with("/*") {
                self.take_comment();
            } else {
                break;
            }
        }
        Some(match self.rest.chars().next()? {
            '\'' => {
                self.take_string(false);
                Token::Other
            }
            'e' | 'E' if self.rest[1..].starts_with('\'') => {
                self.take(1);
                self.take_string(true);
                Token::Other
            }
            '"' => {
                self.take_through(1, "\"");
                Token::Other
            }
            '$' => self.take_dollar(),
            ';' => {
                self.take(1);
                Token::Semicolon
            }
            c if c.is_alphabetic() || c == '_' => Token::Word(self.take_word()),
            // So that the `$1` of `a1$1`, a name, is none.
            c if c.is_ascii_digit() => {
                self.take_word();
                Token::Other
            }
            c => {
                self.take(c.len_utf8());
                Token::Other
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_count_outside_of_literals_names_and_comments() {
        let count = |sql| SqlFacts::read(sql).parameters;
        assert_eq!(count("SELECT $1, $12 + $2"), 12);
        assert_eq!(
            count("SELECT '$1', \"$2\", $$ $3 $$, $a$ $4 $$ $a$, E'\\'$5', e'\\\\', a$6"),
            0
        );
        assert_eq!(count("SELECT 1 -- $1\n/* $2 /* $3 */ $4 */ + $5"), 5);
        assert_eq!(count("SELECT 'it''s $1', '日本$2', $日本$ $3 $日本$"), 0);
    }

    #[test]
    fn copy_awaits_data_only_from_stdin() {
        let reads = |sql| SqlFacts::read(sql).reads_copy_data;
        assert!(reads("COPY t FROM STDIN"));
        assert!(reads("begin; /* x */ copy public.\"T\" (a, b) from stdin with (format csv)"));
        assert!(!reads("COPY t TO STDOUT"));
        assert!(!reads("COPY t FROM '/tmp/stdin'"));
        assert!(!reads("SELECT 'copy t from stdin'; SELECT * FROM stdin"));
    }

    #[test]
    fn commands_that_remove_prepared_statements_are_seen() {
        assert!(SqlFacts::read("discard all").removes_prepared);
        assert!(SqlFacts::read("SELECT 1; DEALLOCATE x").removes_prepared);
        assert!(!SqlFacts::read("SELECT 'DISCARD ALL'").removes_prepared);
    }

    #[test]
    fn another_encoding_than_utf8_is_seen() {
        let changes = |sql| SqlFacts::read(sql).changes_encoding;
        assert!(changes("SET client_encoding TO 'LATIN1'"));
        assert!(changes("begin; set session names 'win1252'"));
        assert!(!changes("SET client_encoding = 'utf-8'"));
        assert!(!changes("SELECT names FROM client_encoding"));
    }

    #[test]
    fn texts_that_end_in_the_middle_are_read_to_their_end() {
        for sql in ["'", "E'\\", "\"", "$", "$a", "$a$", "/*", "/* /*", "--", "E'é\\é", "$$é"] {
            assert_eq!(SqlFacts::read(sql), SqlFacts::default(), "{sql}");
        }
    }
}
