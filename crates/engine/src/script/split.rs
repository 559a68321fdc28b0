//! Cutting a script into commands, by psql's rules for quotes, comments and parentheses.

use std::ops::Range;

use super::characters::{is_name_start, is_space};

/// Bytes of an SQL command that are sent as others: a backslash before a semicolon or a colon as
/// nothing, `:{?name}` as `FALSE`. psql tells there whether a variable exists; pgbench knows none
/// of psql's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) range: Range<usize>,
    pub(super) with: &'static str,
}

/// Range of a command in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ScriptPart {
    /// An SQL command. `is_ended` says whether the last byte is the semicolon that ends it.
    Sql { begin: usize, end: usize, is_ended: bool, replacements: Vec<Replacement> },
    /// A meta command, from its backslash on. Trailing blanks may be included.
    Meta(usize, usize),
}

/// Returns the next command at or after `at`, and moves `at` past it.
///
/// A lone semicolon ends an empty command, which counts. So does a comment in `/* */`, which may
/// carry hints.
pub(super) fn next(text: &[u8], at: &mut usize) -> Option<ScriptPart> {
    loop {
        let begin = skip_blank(text, *at);
        match text.get(begin) {
            None => return None,
            Some(b'\\') if !matches!(text.get(begin + 1), Some(b';' | b':')) => {
                let end = meta_end(text, begin);
                *at = end;
                // A backslash alone on its line only ends what stands before it.
                if !text[begin + 1..end].iter().copied().all(is_space) {
                    return Some(ScriptPart::Meta(begin, end));
                }
            }
            Some(_) => {
                let Sql { end, next, is_ended, replacements } = sql_end(text, begin);
                *at = next;
                return Some(ScriptPart::Sql { begin, end, is_ended, replacements });
            }
        }
    }
}

/// Skips white space and `--` comments. Comments in `/* */` may carry hints and stay.
fn skip_blank(text: &[u8], mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        if rest.starts_with(b"--") {
            at = comment_line_end(text, at);
        } else if rest.first().copied().is_some_and(is_space) {
            at += 1;
        } else {
            return at;
        }
    }
}

fn line_end(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|&b| b == b'\n').map_or(text.len(), |n| at + n)
}

/// Returns the end of the `--` comment that begins at `at`.
fn comment_line_end(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|b| matches!(b, b'\n' | b'\r')).map_or(text.len(), |n| at + n)
}

/// Returns the end of the meta command that begins at `begin`: a newline without a backslash before
/// it.
fn meta_end(text: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    loop {
        let end = line_end(text, at);
        let line = text[at..end].strip_suffix(b"\r").unwrap_or(&text[at..end]);
        if end == text.len() || !line.ends_with(b"\\") {
            return end;
        }
        at = end + 1;
    }
}

struct Sql {
    /// End of the command, behind the semicolon that ends it if one does.
    end: usize,
    /// Beginning of the next command.
    next: usize,
    is_ended: bool,
    replacements: Vec<Replacement>,
}

/// Returns the length of the `:{?name}` that `text` begins with.
fn existence_test(text: &[u8]) -> Option<usize> {
    let name = text.strip_prefix(b":{?")?;
    let length = name.iter().take_while(|&&b| is_name_start(b) || b.is_ascii_digit()).count();
    (length > 0 && name.get(length) == Some(&b'}')).then_some(length + 4)
}

fn sql_end(text: &[u8], begin: usize) -> Sql {
    let mut at = begin;
    let mut parentheses = 0_u32;
    let mut body = FunctionBody::default();
    let mut replacements = Vec::new();
    while let Some(&byte) = text.get(at) {
        let rest = &text[at..];
        match byte {
            b';' if parentheses == 0 && body.depth == 0 => {
                return Sql { end: at + 1, next: at + 1, is_ended: true, replacements };
            }
            b'\\' => {
                if !matches!(rest.get(1), Some(b';' | b':')) {
                    break;
                }
                if rest[1] == b';' {
                    body = FunctionBody::default();
                }
                replacements.push(Replacement { range: at..at + 1, with: "" });
                at += 2;
                continue;
            }
            b':' if rest.starts_with(b"::") => at += 1,
            b':' => {
                if let Some(length) = existence_test(rest) {
                    replacements.push(Replacement { range: at..at + length, with: "FALSE" });
                    at += length;
                    continue;
                }
            }
            b'-' if rest.starts_with(b"--") => {
                at = comment_line_end(text, at);
                continue;
            }
            b'/' if rest.starts_with(b"/*") => {
                at = comment_end(text, at);
                continue;
            }
            b'(' => parentheses += 1,
            b')' => parentheses = parentheses.saturating_sub(1),
            b'\'' | b'"' => at = quoted_end(text, at, false),
            b'$' => at = dollar_end(text, at),
            _ if is_name_start(byte) => {
                let length = rest
                    .iter()
                    .take_while(|&&b| is_name_start(b) || b.is_ascii_digit() || b == b'$')
                    .count();
                let name = &rest[..length];
                at += length;
                body.pass(name);
                if name.eq_ignore_ascii_case(b"e") && text.get(at) == Some(&b'\'') {
                    at = escape_string_end(text, at) + 1;
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    let next = at.min(text.len());
    // pgbench sends all but one newline.
    let end = if text[begin..next].ends_with(b"\n") { next - 1 } else { next };
    Sql { end, next, is_ended: false, replacements }
}

/// Tracks the body of a function in standard SQL (`BEGIN ATOMIC …; END`), whose semicolons end no
/// command.
///
/// psql's rule: the first words of a command tell whether it defines a function; then every BEGIN,
/// CASE and END counts.
#[derive(Default)]
struct FunctionBody {
    /// Words of the command so far (count).
    words: usize,
    /// Whether the words so far may begin the definition of a function or procedure.
    begins: bool,
    /// Whether the command defines a function or procedure.
    is_definition: bool,
    /// Open BEGIN and CASE (count).
    depth: u32,
}

impl FunctionBody {
    /// Takes the next unquoted word of the command.
    fn pass(&mut self, word: &[u8]) {
        let is = |other: &str| word.eq_ignore_ascii_case(other.as_bytes());
        if self.is_definition {
            if is("begin") || (self.depth > 0 && is("case")) {
                self.depth += 1;
            } else if is("end") {
                self.depth = self.depth.saturating_sub(1);
            }
            return;
        }
        let is_object = is("function") || is("procedure");
        match self.words {
            0 => self.begins = is("create"),
            1 if self.begins && is_object => self.is_definition = true,
            1 => self.begins &= is("or"),
            2 => self.begins &= is("replace"),
            3 if self.begins && is_object => self.is_definition = true,
            _ => self.begins = false,
        }
        self.words += 1;
    }
}

/// Returns the closing quote of the string or name that opens at `at`, or the text's end.
fn quoted_end(text: &[u8], at: usize, backslash_escapes: bool) -> usize {
    let quote = text[at];
    let mut at = at + 1;
    while let Some(&byte) = text.get(at) {
        if byte == quote {
            return at;
        }
        at += if backslash_escapes && byte == b'\\' { 2 } else { 1 };
    }
    text.len()
}

/// Returns the closing quote of the string with backslash escapes that opens at `at`, including
/// strings that continue it on later lines.
fn escape_string_end(text: &[u8], at: usize) -> usize {
    let mut end = quoted_end(text, at, true);
    loop {
        let next = skip_blank(text, (end + 1).min(text.len()));
        let between = &text[(end + 1).min(next)..next];
        if text.get(next) != Some(&b'\'') || !between.iter().any(|b| matches!(b, b'\n' | b'\r')) {
            return end;
        }
        end = quoted_end(text, next, true);
    }
}

/// Returns the end of the comment that opens at `at`, with comments nested in it.
fn comment_end(text: &[u8], at: usize) -> usize {
    let mut depth = 0_u32;
    let mut at = at;
    while at < text.len() {
        if text[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Returns the last byte of the dollar-quoted string that opens at `at`; `at` if none does.
fn dollar_end(text: &[u8], at: usize) -> usize {
    let rest = &text[at + 1..];
    let tag = rest.iter().take_while(|&&b| is_name_start(b) || b.is_ascii_digit()).count();
    if rest.get(tag) != Some(&b'$') || rest.first().is_some_and(u8::is_ascii_digit) {
        return at;
    }
    let quote = &text[at..at + tag + 2];
    let body = at + quote.len();
    text[body..]
        .windows(quote.len())
        .position(|w| w == quote)
        .map_or(text.len(), |n| body + n + quote.len() - 1)
}
