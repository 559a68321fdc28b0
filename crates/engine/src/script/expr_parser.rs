//! Parsing expressions, by precedence climbing.

use super::error::ScriptError;
use super::expr::{BinaryOp, Expr, Function, UnaryOp};
use super::slot::Slot;
use super::token::{Token, Tokens};
use super::value::Value;

/// Precedence of operators; larger binds tighter.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARISON: u8 = 5;
const BITS: u8 = 6;
const ADDITIVE: u8 = 7;
const MULTIPLICATIVE: u8 = 8;

/// Returns the binary operator that `token` is, and its precedence.
fn binary_operator(token: Token<'_>) -> Option<(BinaryOp, u8)> {
    use BinaryOp as B;
    Some(match token {
        Token::Symbol("=") => (B::Equal, COMPARISON),
        Token::Symbol("<>" | "!=") => (B::NotEqual, COMPARISON),
        Token::Symbol("<") => (B::Less, COMPARISON),
        Token::Symbol("<=") => (B::LessOrEqual, COMPARISON),
        Token::Symbol(">") => (B::Greater, COMPARISON),
        Token::Symbol(">=") => (B::GreaterOrEqual, COMPARISON),
        Token::Symbol("|") => (B::BitOr, BITS),
        Token::Symbol("#") => (B::BitXor, BITS),
        Token::Symbol("&") => (B::BitAnd, BITS),
        Token::Symbol("<<") => (B::ShiftLeft, BITS),
        Token::Symbol(">>") => (B::ShiftRight, BITS),
        Token::Symbol("+") => (B::Add, ADDITIVE),
        Token::Symbol("-") => (B::Subtract, ADDITIVE),
        Token::Symbol("*") => (B::Multiply, MULTIPLICATIVE),
        Token::Symbol("/") => (B::Divide, MULTIPLICATIVE),
        Token::Symbol("%") => (B::Modulo, MULTIPLICATIVE),
        Token::Name(word) if word.eq_ignore_ascii_case("or") => (B::Or, OR),
        Token::Name(word) if word.eq_ignore_ascii_case("and") => (B::And, AND),
        _ => return None,
    })
}

/// Words that cannot be names of functions.
const KEYWORDS: [&str; 13] = [
    "and", "or", "not", "is", "isnull", "notnull", "case", "when", "then", "else", "end", "true",
    "false",
];

/// Functions by name, with the fewest and most arguments.
const FUNCTIONS: &[(&str, Function, usize, usize)] = &[
    ("abs", Function::Abs, 1, 1),
    ("debug", Function::Debug, 1, 1),
    ("double", Function::Double, 1, 1),
    ("exp", Function::Exp, 1, 1),
    ("greatest", Function::Greatest, 1, usize::MAX),
    ("hash", Function::HashMurmur2, 1, 2),
    ("hash_fnv1a", Function::HashFnv1a, 1, 2),
    ("hash_murmur2", Function::HashMurmur2, 1, 2),
    ("int", Function::Int, 1, 1),
    ("least", Function::Least, 1, usize::MAX),
    ("ln", Function::Ln, 1, 1),
    ("mod", Function::Mod, 2, 2),
    ("permute", Function::Permute, 2, 3),
    ("pi", Function::Pi, 0, 0),
    ("pow", Function::Power, 2, 2),
    ("power", Function::Power, 2, 2),
    ("random", Function::Random, 2, 2),
    ("random_exponential", Function::RandomExponential, 3, 3),
    ("random_gaussian", Function::RandomGaussian, 3, 3),
    ("random_zipfian", Function::RandomZipfian, 3, 3),
    ("sqrt", Function::Sqrt, 1, 1),
];

/// Nodes of an expression at most: evaluation recurses, and a stack is finite.
const MAX_NODES: u32 = 2_000;
/// Nesting of parentheses, calls and signs at most.
const MAX_DEPTH: u32 = 100;

/// Parses the rest of `tokens` as one expression.
pub(super) fn parse(
    tokens: &mut Tokens<'_>,
    slot: &mut dyn FnMut(&str) -> Slot,
) -> Result<Expr, ScriptError> {
    let ahead = tokens.next()?;
    let mut parser = Parser { tokens, slot, ahead, nodes: 0, depth: 0 };
    let expression = parser.binary(0)?;
    match parser.ahead {
        (_, Token::End) => Ok(expression),
        _ => Err(parser.unexpected("an operator or the end of the line")),
    }
}

struct Parser<'p, 'a> {
    tokens: &'p mut Tokens<'a>,
    slot: &'p mut dyn FnMut(&str) -> Slot,
    ahead: (usize, Token<'a>),
    nodes: u32,
    depth: u32,
}

impl<'a> Parser<'_, 'a> {
    fn take(&mut self) -> Result<(usize, Token<'a>), ScriptError> {
        let next = self.tokens.next()?;
        Ok(std::mem::replace(&mut self.ahead, next))
    }

    fn unexpected(&self, wanted: &str) -> ScriptError {
        let found = match self.ahead.1 {
            Token::End => {
                return self
                    .tokens
                    .error(self.ahead.0, format!("the expression ends where {wanted} should be"))
                    .phrased("syntax error");
            }
            Token::Int(n) => n.to_string(),
            Token::Double(x) => x.to_string(),
            Token::Variable(name) => format!(":{name}"),
            Token::Name(text) | Token::Symbol(text) => text.to_owned(),
        };
        self.tokens
            .error(self.ahead.0, format!("`{found}` stands where {wanted} should be"))
            .phrased("syntax error")
    }

    fn node(&mut self, at: usize, node: Expr) -> Result<Expr, ScriptError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(self
                .tokens
                .error(at, format!("the expression has more than {MAX_NODES} parts")));
        }
        Ok(node)
    }

    /// Returns whether `word` comes next.
    fn is_word(&self, word: &str) -> bool {
        matches!(self.ahead.1, Token::Name(name) if name.eq_ignore_ascii_case(word))
    }

    /// Takes `word` if it comes next; returns whether it did.
    fn word(&mut self, word: &str) -> Result<bool, ScriptError> {
        let is = self.is_word(word);
        if is {
            self.take()?;
        }
        Ok(is)
    }

    /// Parses operands and operators of precedence `least` and above.
    fn binary(&mut self, least: u8) -> Result<Expr, ScriptError> {
        let mut left = self.unary()?;
        let mut compared = false;
        loop {
            let at = self.ahead.0;
            if IS >= least
                && let Some(operator) = self.is()?
            {
                left = self.node(at, Expr::Unary(operator, Box::new(left)))?;
                compared = false;
                continue;
            }
            let Some((operator, level)) =
                binary_operator(self.ahead.1).filter(|(_, level)| *level >= least)
            else {
                return Ok(left);
            };
            if level == COMPARISON && compared {
                return Err(self.unexpected("an operator that is no comparison"));
            }
            compared = level == COMPARISON;
            self.take()?;
            let right = self.binary(level + 1)?;
            left = self.node(at, Expr::Binary(operator, Box::new([left, right])))?;
        }
    }

    /// Parses an operator that follows its operand, if one comes next.
    fn is(&mut self) -> Result<Option<UnaryOp>, ScriptError> {
        if self.word("isnull")? {
            return Ok(Some(UnaryOp::Is(Value::Null)));
        }
        if self.word("notnull")? {
            return Ok(Some(UnaryOp::IsNot(Value::Null)));
        }
        if !self.word("is")? {
            return Ok(None);
        }
        let not = self.word("not")?;
        let value = if self.word("null")? {
            Value::Null
        } else if self.word("true")? {
            Value::Bool(true)
        } else if self.word("false")? {
            Value::Bool(false)
        } else {
            return Err(self.unexpected("NULL, TRUE or FALSE"));
        };
        Ok(Some(if not { UnaryOp::IsNot(value) } else { UnaryOp::Is(value) }))
    }

    fn unary(&mut self) -> Result<Expr, ScriptError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let what = format!("the expression is nested more than {MAX_DEPTH} deep");
            return Err(self.tokens.error(self.ahead.0, what));
        }
        let result = self.operand();
        self.depth -= 1;
        result
    }

    fn operand(&mut self) -> Result<Expr, ScriptError> {
        let at = self.ahead.0;
        match self.ahead.1 {
            Token::Symbol("-") => {
                self.take()?;
                if let Token::Int(n) = self.ahead.1
                    && n == 1 << 63
                {
                    self.take()?;
                    return self.node(at, Expr::Constant(Value::Int(i64::MIN)));
                }
                let operand = self.unary()?;
                self.node(at, Expr::Unary(UnaryOp::Minus, Box::new(operand)))
            }
            Token::Symbol("+") => {
                self.take()?;
                self.unary()
            }
            Token::Symbol("~") => {
                self.take()?;
                let operand = self.binary(BITS + 1)?;
                self.node(at, Expr::Unary(UnaryOp::Complement, Box::new(operand)))
            }
            Token::Symbol("(") => {
                self.take()?;
                let inner = self.binary(0)?;
                self.close()?;
                Ok(inner)
            }
            Token::Int(n) => {
                self.take()?;
                let n = i64::try_from(n).map_err(|_| {
                    let what = format!("`{n}` is out of range but after a minus sign");
                    self.tokens.error(at, what).phrased("syntax error")
                })?;
                self.node(at, Expr::Constant(Value::Int(n)))
            }
            Token::Double(x) => {
                self.take()?;
                self.node(at, Expr::Constant(Value::Double(x)))
            }
            Token::Variable(name) => {
                self.take()?;
                let slot = (self.slot)(name);
                self.node(at, Expr::Variable(slot))
            }
            Token::Name(name) => {
                self.take()?;
                self.call(at, name)
            }
            Token::Symbol(_) | Token::End => {
                Err(self.unexpected("a number, a variable or a function"))
            }
        }
    }

    fn close(&mut self) -> Result<(), ScriptError> {
        match self.ahead.1 {
            Token::Symbol(")") => self.take().map(|_| ()),
            _ => Err(self.unexpected("`)`")),
        }
    }

    fn call(&mut self, at: usize, name: &str) -> Result<Expr, ScriptError> {
        let lower = name.to_ascii_lowercase();
        match lower.as_str() {
            "null" => return self.node(at, Expr::Constant(Value::Null)),
            "true" | "false" => return self.node(at, Expr::Constant(Value::Bool(lower == "true"))),
            "not" => {
                let operand = self.binary(NOT)?;
                return self.node(at, Expr::Unary(UnaryOp::Not, Box::new(operand)));
            }
            "case" => return self.case(at),
            _ => {}
        }
        if KEYWORDS.contains(&lower.as_str()) {
            let what =
                format!("`{name}` stands where a number, a variable or a function should be");
            return Err(self.tokens.error(at, what).phrased("syntax error"));
        }
        let Some(&(_, function, fewest, most)) = FUNCTIONS.iter().find(|f| f.0 == lower) else {
            let names: Vec<_> = FUNCTIONS.iter().map(|f| f.0).collect();
            return Err(self
                .tokens
                .error(at, "there is no such function")
                .phrased(format!("unexpected function name ({name})"))
                .with_help(format!("functions are {}", names.join(", "))));
        };
        if self.ahead.1 != Token::Symbol("(") {
            return Err(self.unexpected("`(`"));
        }
        self.take()?;
        let mut arguments = Vec::new();
        if self.ahead.1 != Token::Symbol(")") {
            loop {
                arguments.push(self.binary(0)?);
                if self.ahead.1 != Token::Symbol(",") {
                    break;
                }
                self.take()?;
            }
        }
        self.close()?;
        if arguments.len() < fewest || arguments.len() > most {
            let (wanted, phrase) = match most {
                usize::MAX => (format!("at least {fewest}"), "at least one argument expected"),
                _ if most > fewest => {
                    (format!("{fewest} or {most}"), "unexpected number of arguments")
                }
                _ => (fewest.to_string(), "unexpected number of arguments"),
            };
            let what = format!("it takes {wanted}, not {}", arguments.len());
            return Err(self.tokens.error(at, what).phrased(format!("{phrase} ({name})")));
        }
        self.node(at, Expr::Call(function, arguments))
    }

    /// Parses the rest of a `CASE`.
    fn case(&mut self, at: usize) -> Result<Expr, ScriptError> {
        let mut parts = Vec::new();
        if !self.is_word("when") {
            return Err(self.unexpected("WHEN"));
        }
        while self.word("when")? {
            parts.push(self.binary(0)?);
            if !self.word("then")? {
                return Err(self.unexpected("THEN"));
            }
            parts.push(self.binary(0)?);
        }
        parts.push(if self.word("else")? { self.binary(0)? } else { Expr::Constant(Value::Null) });
        if !self.word("end")? {
            return Err(self.unexpected("END"));
        }
        self.node(at, Expr::Case(parts))
    }
}
