//! Cutting a script into commands, with psql's idea of quotes, comments and parentheses.

use super::token::is_name_start;

/// A command's bytes in the text, from its first to just past its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// With the semicolon that ends it, if one does; and the backslashes before semicolons and colons, which are not sent.
    Sql(usize, usize, Vec<usize>),
    /// Begins with the backslash.
    Meta(usize, usize),
}

/// The next command at or after `at`, which moves past it.
pub(super) fn next(text: &[u8], at: &mut usize) -> Option<Part> {
    loop {
        let begin = skip_blank(text, *at);
        match text.get(begin) {
            None => return None,
            Some(b'\\') if !matches!(text.get(begin + 1), Some(b';' | b':')) => {
                let end = meta_end(text, begin);
                *at = end;
                return Some(Part::Meta(begin, trim_end(text, begin, end)));
            }
            Some(_) => {
                let sql = sql_end(text, begin);
                *at = sql.next;
                if sql.says_something {
                    let end = if text.get(sql.end) == Some(&b';') {
                        sql.end + 1
                    } else {
                        trim_end(text, begin, sql.end)
                    };
                    return Some(Part::Sql(begin, end, sql.escapes));
                }
            }
        }
    }
}

fn trim_end(text: &[u8], begin: usize, end: usize) -> usize {
    begin + text[begin..end].trim_ascii_end().len()
}

/// Past white space and `--` comments. Comments of the other kind may carry hints: they stay.
fn skip_blank(text: &[u8], mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        if rest.starts_with(b"--") {
            at = line_end(text, at);
        } else if rest.first().is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        } else {
            return at;
        }
    }
}

fn line_end(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|&b| b == b'\n').map_or(text.len(), |n| at + n)
}

/// The end of a meta command: its newline, unless a backslash stands before it.
fn meta_end(text: &[u8], begin: usize) -> usize {
    let mut at = begin;
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
    /// Just past its last byte.
    end: usize,
    /// Where the next command begins.
    next: usize,
    /// Whether it holds more than comments.
    says_something: bool,
    /// Backslashes before semicolons and colons.
    escapes: Vec<usize>,
}

fn sql_end(text: &[u8], begin: usize) -> Sql {
    let mut at = begin;
    let mut depth = 0_u32;
    let mut says_something = false;
    let mut escapes = Vec::new();
    while let Some(&byte) = text.get(at) {
        let rest = &text[at..];
        match byte {
            b';' if depth == 0 => {
                return Sql { end: at, next: at + 1, says_something, escapes };
            }
            b'\\' => {
                if !matches!(rest.get(1), Some(b';' | b':')) {
                    return Sql { end: at, next: at, says_something, escapes };
                }
                escapes.push(at);
                at += 2;
                continue;
            }
            b'-' if rest.starts_with(b"--") => {
                at = line_end(text, at);
                continue;
            }
            b'/' if rest.starts_with(b"/*") => {
                at = comment_end(text, at);
                continue;
            }
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b'\'' => at = quoted_end(text, at, false),
            b'"' => at = quoted_end(text, at, false),
            b'$' => at = dollar_end(text, at),
            _ if is_name_start(byte) => {
                let length =
                    rest.iter().take_while(|&&b| is_name_start(b) || b.is_ascii_digit() || b == b'$').count();
                let name = &rest[..length];
                at += length;
                if name.eq_ignore_ascii_case(b"e") && text.get(at) == Some(&b'\'') {
                    at = quoted_end(text, at, true) + 1;
                }
                says_something = true;
                continue;
            }
            _ => {}
        }
        says_something |= !byte.is_ascii_whitespace();
        at += 1;
    }
    let end = at.min(text.len());
    Sql { end, next: end, says_something, escapes }
}

/// The closing quote of the string or name that opens at `at`; the text's end if there is none.
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

/// Past the comment that opens at `at`, and those within it.
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

/// The last byte of the dollar quote that opens at `at`; `at` itself if none does.
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
