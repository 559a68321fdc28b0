//! The words of a meta command.

use std::time::Duration;

use super::characters::{
    continuation, is_name_start, is_space, is_variable_name, leading_integer, name_length,
};
use super::error::{ScriptError, SourceText};
use super::expr::Expr;
use super::slot::Slot;
use super::value::Value;

/// A token of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// An integer; 2⁶³ is allowed only behind a minus sign.
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

/// Words and tokens of one meta command.
pub(super) struct Tokens<'a> {
    place: SourceText<'a>,
    /// Command's name, for errors.
    pub(super) command: &'a str,
    at: usize,
    end: usize,
}

impl<'a> Tokens<'a> {
    /// Creates a reader of bytes `at` to `end`, before the command's name was read.
    pub(super) fn new(place: SourceText<'a>, at: usize, end: usize) -> Self {
        Self { place, command: "", at, end }
    }

    /// Creates an error at byte `at`.
    pub(super) fn error(&self, at: usize, what: impl Into<String>) -> ScriptError {
        self.place.error(at, self.command, what)
    }

    fn rest(&self) -> &'a str {
        &self.place.text[self.at..self.end]
    }

    /// Skips white space and continued lines.
    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest().as_bytes();
            match rest.first() {
                Some(byte) if is_space(*byte) => self.at += 1,
                Some(_) => match continuation(rest) {
                    Some(length) => self.at += length,
                    None => return,
                },
                None => return,
            }
        }
    }

    /// Returns the next word and its offset; an empty word at the end.
    pub(super) fn word(&mut self) -> (usize, &'a str) {
        self.skip_blank();
        let rest = self.rest();
        let ends = |at: &usize| {
            is_space(rest.as_bytes()[*at]) || continuation(&rest.as_bytes()[*at..]).is_some()
        };
        let length = (0..rest.len()).find(ends).unwrap_or(rest.len());
        let at = self.at;
        self.at += length;
        (at, &rest[..length])
    }

    /// Returns the next word, which must exist; `help` is the command's syntax.
    pub(super) fn argument(&mut self, help: &str) -> Result<(usize, &'a str), ScriptError> {
        match self.word() {
            (at, "") => Err(self.error(at, "").phrased("missing argument").with_help(help)),
            found => Ok(found),
        }
    }

    /// Fails if there are further words.
    pub(super) fn end(&mut self, phrase: &str) -> Result<(), ScriptError> {
        match self.word() {
            (_, "") => Ok(()),
            (at, extra) => {
                Err(self.error(at, format!("`{extra}` is one word too many")).phrased(phrase))
            }
        }
    }

    /// Parses a number or a variable.
    pub(super) fn operand(
        &mut self,
        (at, word): (usize, &'a str),
        slot: &mut dyn FnMut(&str) -> Slot,
    ) -> Result<Expr, ScriptError> {
        if let Some(name) = word.strip_prefix(':') {
            if !is_variable_name(name) {
                return Err(self.error(at, format!("`{word}` is no variable")));
            }
            return Ok(Expr::Variable(slot(name)));
        }
        let whole = word.parse().ok().map(Value::Int);
        let number =
            whole.or_else(|| word.parse().ok().filter(|x: &f64| x.is_finite()).map(Value::Double));
        let wrong = || self.error(at, format!("`{word}` is neither a number nor a variable"));
        number.map(Expr::Constant).ok_or_else(wrong)
    }

    /// Parses the arguments of `\sleep`: amount and unit.
    pub(super) fn sleep(
        &mut self,
        slot: &mut dyn FnMut(&str) -> Slot,
    ) -> Result<(Expr, Duration), ScriptError> {
        const HELP: &str = "\\sleep number [us|ms|s]";
        let (at, word) = self.argument(HELP)?;
        let (mut unit_at, mut unit) = self.word();
        self.end("too many arguments")?;
        let amount = if let Some(name) = word.strip_prefix(':') {
            Expr::Variable(slot(name))
        } else {
            let sign = usize::from(word.starts_with(['-', '+']));
            let digits = sign + word[sign..].bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = word.split_at(digits);
            if digits == sign || !(rest.is_empty() || unit.is_empty()) {
                return Err(self
                    .error(at, "")
                    .phrased(format!("invalid sleep time, must be an integer ({word})"))
                    .with_help(HELP));
            }
            if !rest.is_empty() {
                (unit_at, unit) = (at + digits, rest);
            }
            Expr::Constant(Value::Int(leading_integer(number.as_bytes())))
        };
        let unit = match unit.to_ascii_lowercase().as_str() {
            "" | "s" => Duration::from_secs(1),
            "ms" => Duration::from_millis(1),
            "us" => Duration::from_micros(1),
            _ => {
                let phrase = format!("unrecognized time unit, must be us, ms or s ({unit})");
                return Err(self.error(unit_at, "").phrased(phrase));
            }
        };
        Ok((amount, unit))
    }

    /// Returns the next token and its offset.
    pub(super) fn next(&mut self) -> Result<(usize, Token<'a>), ScriptError> {
        self.skip_blank();
        let at = self.at;
        let rest = self.rest();
        let Some(first) = rest.bytes().next() else { return Ok((at, Token::End)) };
        let (length, token) = match first {
            b'0'..=b'9' | b'.' => self.number(rest)?,
            b':' => {
                match rest
                    .bytes()
                    .skip(1)
                    .take_while(|&b| is_name_start(b) || b.is_ascii_digit())
                    .count()
                {
                    0 => {
                        return Err(self
                            .error(at, "a variable's name is missing after `:`")
                            .phrased("unexpected character (:)"));
                    }
                    n => (n + 1, Token::Variable(&rest[1..=n])),
                }
            }
            _ if is_name_start(first) => {
                let n = name_length(rest);
                (n, Token::Name(&rest[..n]))
            }
            _ => {
                // Longest first, so that `<=` is not read as `<`.
                const SYMBOLS: [&str; 20] = [
                    "<<", ">>", "<=", ">=", "<>", "!=", "<", ">", "=", "|", "&", "#", "~", "(",
                    ")", ",", "+", "-", "*", "/",
                ];
                if let Some(symbol) = SYMBOLS.into_iter().chain(["%"]).find(|o| rest.starts_with(o))
                {
                    (symbol.len(), Token::Symbol(&rest[..symbol.len()]))
                } else {
                    let found = rest.chars().next().unwrap_or_default();
                    return Err(self
                        .error(at, format!("`{found}` has no place in an expression"))
                        .phrased(format!("unexpected character ({found})")));
                }
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
            // A value below the smallest normal double would lose digits.
            let is_zero = |text: &str| {
                !text
                    .split(['e', 'E'])
                    .next()
                    .unwrap_or_default()
                    .contains(|c| ('1'..='9').contains(&c))
            };
            let fits = |x: &f64| x.is_normal() || (*x == 0.0 && is_zero(text));
            text.parse().ok().filter(fits).map(Token::Double)
        };
        match token {
            Some(token) => Ok((length, token)),
            None => Err(self.error(self.at, "").phrased(format!(
                "{} constant overflow ({text})",
                if whole { "bigint" } else { "double" }
            ))),
        }
    }
}
