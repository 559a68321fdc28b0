//! The words of a meta command.

use std::time::Duration;

use super::error::{Place, ScriptError};
use super::{Expr, Slot, Value};

/// Whether a variable's name, or an SQL name, may begin with `byte`.
pub(super) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// Bytes of the variable name at the front of `text`; 0 if none is there.
pub(super) fn name_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    if !bytes.first().copied().is_some_and(is_name_start) {
        return 0;
    }
    bytes.iter().take_while(|&&b| is_name_start(b) || b.is_ascii_digit()).count()
}

/// A token of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// An integer; 2⁶³ is one only for a minus sign before it.
    Int(u64),
    Double(f64),
    /// `:name`.
    Variable(&'a str),
    /// A function's name.
    Name(&'a str),
    /// An operator, parenthesis or comma.
    Symbol(&'a str),
    End,
}

/// The words of one meta command, and where they stand.
pub(super) struct Tokens<'a> {
    place: Place<'a>,
    command: &'a str,
    at: usize,
    end: usize,
}

impl<'a> Tokens<'a> {
    /// Those from byte `at` to byte `end`, for meta command `command`.
    pub(super) fn new(place: Place<'a>, at: usize, end: usize, command: &'a str) -> Self {
        Self { place, command, at, end }
    }

    pub(super) fn error(&self, at: usize, what: impl Into<String>) -> ScriptError {
        self.place.error(at, self.command, what)
    }

    fn rest(&self) -> &'a str {
        &self.place.text[self.at..self.end]
    }

    /// Past white space and continued lines.
    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
            self.at += rest.len() - trimmed.len();
            match trimmed.strip_prefix("\\\n").or_else(|| trimmed.strip_prefix("\\\r\n")) {
                Some(after) => self.at += trimmed.len() - after.len(),
                None => return,
            }
        }
    }

    /// The next word up to white space, and where it stands; empty at the end.
    fn word(&mut self) -> (usize, &'a str) {
        self.skip_blank();
        let rest = self.rest();
        let length = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        let at = self.at;
        self.at += length;
        (at, &rest[..length])
    }

    /// The name that `\set` assigns to.
    pub(super) fn variable_name(&mut self) -> Result<(usize, &'a str), ScriptError> {
        match self.word() {
            (at, "") => {
                Err(self.error(at, "a variable's name is missing").with_help("\\set name expression"))
            }
            found => Ok(found),
        }
    }

    /// The arguments of `\sleep`.
    pub(super) fn sleep(
        &mut self,
        slot: &mut dyn FnMut(&str) -> Slot,
    ) -> Result<(Expr, Duration), ScriptError> {
        const HELP: &str = "\\sleep number [us|ms|s]";
        let (at, word) = self.word();
        let (amount, glued) = if let Some(name) = word.strip_prefix(':') {
            if name.is_empty() || name_length(name) != name.len() {
                return Err(self.error(at, format!("`{word}` is no variable")).with_help(HELP));
            }
            (Expr::Variable(slot(name)), "")
        } else {
            let digits = word.bytes().take_while(u8::is_ascii_digit).count();
            let amount = word[..digits]
                .parse()
                .map_err(|_| self.error(at, format!("`{word}` is no number to wait for")).with_help(HELP))?;
            (Expr::Constant(Value::Int(amount)), &word[digits..])
        };
        let (unit_at, unit) =
            if glued.is_empty() { self.word() } else { (at + word.len() - glued.len(), glued) };
        let unit = match unit.to_ascii_lowercase().as_str() {
            "" | "s" => Duration::from_secs(1),
            "ms" => Duration::from_millis(1),
            "us" => Duration::from_micros(1),
            _ => {
                let what = format!("`{unit}` is no unit of time");
                return Err(self.error(unit_at, what).with_help("units are us, ms and s"));
            }
        };
        match self.word() {
            (_, "") => Ok((amount, unit)),
            (at, extra) => Err(self.error(at, format!("`{extra}` is one word too many")).with_help(HELP)),
        }
    }

    /// The next token and where it stands.
    pub(super) fn next(&mut self) -> Result<(usize, Token<'a>), ScriptError> {
        self.skip_blank();
        let at = self.at;
        let rest = self.rest();
        let Some(first) = rest.bytes().next() else { return Ok((at, Token::End)) };
        let (length, token) = match first {
            b'0'..=b'9' | b'.' => self.number(rest)?,
            b':' => match name_length(&rest[1..]) {
                0 => return Err(self.error(at, "a variable's name is missing after `:`")),
                n => (n + 1, Token::Variable(&rest[1..=n])),
            },
            b'(' | b')' | b',' | b'+' | b'-' | b'*' | b'/' | b'%' => (1, Token::Symbol(&rest[..1])),
            _ if is_name_start(first) => {
                let n = name_length(rest);
                (n, Token::Name(&rest[..n]))
            }
            _ => {
                // Longest first, so that `<=` is not read as `<`.
                let later = ["<<", ">>", "<=", ">=", "<>", "!=", "<", ">", "=", "&", "|", "#", "~", "!"];
                if let Some(operator) = later.into_iter().find(|o| rest.starts_with(o)) {
                    let what = format!("operator `{operator}` is not supported yet");
                    return Err(self.error(at, what).with_help("operators are + - * / %"));
                }
                let found = rest.chars().next().unwrap_or_default();
                return Err(self.error(at, format!("`{found}` has no place in an expression")));
            }
        };
        self.at += length;
        Ok((at, token))
    }

    fn number(&self, rest: &str) -> Result<(usize, Token<'a>), ScriptError> {
        let bytes = rest.as_bytes();
        let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
        let mut length = digits(0);
        let mut whole = true;
        if bytes.get(length) == Some(&b'.') {
            whole = false;
            length += 1 + digits(length + 1);
        }
        if matches!(bytes.get(length), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
            let exponent = digits(length + 1 + sign);
            if exponent > 0 {
                whole = false;
                length += 1 + sign + exponent;
            }
        }
        let text = &rest[..length];
        let token = if whole {
            text.parse().ok().filter(|n| *n <= 1 << 63).map(Token::Int)
        } else {
            text.parse().ok().filter(|x: &f64| x.is_finite()).map(Token::Double)
        };
        match token {
            Some(token) => Ok((length, token)),
            None => Err(self.error(self.at, format!("`{text}` is out of range"))),
        }
    }
}
