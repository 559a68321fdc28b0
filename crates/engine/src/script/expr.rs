//! Expressions: their tree, and a precedence-climbing parser for it.

use super::error::ScriptError;
use super::token::{Token, Tokens};
use super::{Slot, Value};

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A number.
    Constant(Value),
    /// A variable.
    Variable(Slot),
    /// An operator before its operand.
    Unary(UnaryOp, Box<Expr>),
    /// An operator between its operands.
    Binary(BinaryOp, Box<[Expr; 2]>),
    /// A function of its arguments, whose number was checked.
    Call(Function, Vec<Expr>),
}

/// An operator before its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum UnaryOp {
    Plus,
    Minus,
}

/// An operator between its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

/// How tightly an operator binds; larger is tighter. Levels 1 to 7 are those of `or`, `and`, `not`, `is`, comparisons,
/// bit operators and others, which bind less than any here.
const ADDITIVE: u8 = 8;
const MULTIPLICATIVE: u8 = 9;

impl BinaryOp {
    fn of(symbol: &str) -> Option<(Self, u8)> {
        match symbol {
            "+" => Some((Self::Add, ADDITIVE)),
            "-" => Some((Self::Subtract, ADDITIVE)),
            "*" => Some((Self::Multiply, MULTIPLICATIVE)),
            "/" => Some((Self::Divide, MULTIPLICATIVE)),
            "%" => Some((Self::Modulo, MULTIPLICATIVE)),
            _ => None,
        }
    }
}

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Function {
    Abs,
    Double,
    Exp,
    Greatest,
    Int,
    Least,
    Ln,
    Mod,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

/// What a script calls a function, the function, and the fewest and most arguments it takes.
const FUNCTIONS: &[(&str, Function, usize, usize)] = &[
    ("abs", Function::Abs, 1, 1),
    ("double", Function::Double, 1, 1),
    ("exp", Function::Exp, 1, 1),
    ("greatest", Function::Greatest, 1, usize::MAX),
    ("int", Function::Int, 1, 1),
    ("least", Function::Least, 1, usize::MAX),
    ("ln", Function::Ln, 1, 1),
    ("mod", Function::Mod, 2, 2),
    ("pi", Function::Pi, 0, 0),
    ("pow", Function::Power, 2, 2),
    ("power", Function::Power, 2, 2),
    ("random", Function::Random, 2, 2),
    ("random_exponential", Function::RandomExponential, 3, 3),
    ("random_gaussian", Function::RandomGaussian, 3, 3),
    ("random_zipfian", Function::RandomZipfian, 3, 3),
    ("sqrt", Function::Sqrt, 1, 1),
];

/// Functions of pgbench's that are not there yet.
const LATER: &[&str] = &["debug", "hash", "hash_fnv1a", "hash_murmur2", "permute"];

/// Nodes in one expression: evaluation recurses, and a stack is finite.
const MAX_NODES: u32 = 2_000;
/// Parentheses, calls and signs within each other.
const MAX_DEPTH: u32 = 100;

/// Parses all that is left of `tokens` as one expression.
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
                    .error(self.ahead.0, format!("the expression ends where {wanted} should be"));
            }
            Token::Int(n) => n.to_string(),
            Token::Double(x) => x.to_string(),
            Token::Variable(name) => format!(":{name}"),
            Token::Name(text) | Token::Symbol(text) => text.to_owned(),
        };
        self.tokens.error(self.ahead.0, format!("`{found}` stands where {wanted} should be"))
    }

    fn node(&mut self, at: usize, node: Expr) -> Result<Expr, ScriptError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(self.tokens.error(at, format!("the expression has more than {MAX_NODES} parts")));
        }
        Ok(node)
    }

    /// Operands and operators that bind at least as tightly as `least`.
    fn binary(&mut self, least: u8) -> Result<Expr, ScriptError> {
        let mut left = self.unary()?;
        while let (at, Token::Symbol(symbol)) = self.ahead
            && let Some((operator, level)) = BinaryOp::of(symbol)
            && level >= least
        {
            self.take()?;
            let right = self.binary(level + 1)?;
            left = self.node(at, Expr::Binary(operator, Box::new([left, right])))?;
        }
        Ok(left)
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
                let operand = self.unary()?;
                self.node(at, Expr::Unary(UnaryOp::Plus, Box::new(operand)))
            }
            Token::Symbol("(") => {
                self.take()?;
                let inner = self.binary(0)?;
                self.close()?;
                Ok(inner)
            }
            Token::Int(n) => {
                self.take()?;
                let n =
                    i64::try_from(n).map_err(|_| self.tokens.error(at, format!("`{n}` is out of range")))?;
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
            Token::Symbol(_) | Token::End => Err(self.unexpected("a number, a variable or a function")),
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
        let Some(&(_, function, fewest, most)) = FUNCTIONS.iter().find(|f| f.0 == lower) else {
            let names: Vec<_> = FUNCTIONS.iter().map(|f| f.0).collect();
            let what = if LATER.contains(&lower.as_str()) {
                format!("function `{name}` is not supported yet")
            } else if matches!(
                lower.as_str(),
                "case" | "null" | "true" | "false" | "not" | "and" | "or" | "is"
            ) {
                format!("`{name}` is not supported yet")
            } else {
                format!("there is no function `{name}`")
            };
            return Err(self.tokens.error(at, what).with_help(format!("functions are {}", names.join(", "))));
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
            let wanted = if most == usize::MAX { format!("at least {fewest}") } else { fewest.to_string() };
            let what = format!("function `{name}` takes {wanted} arguments, not {}", arguments.len());
            return Err(self.tokens.error(at, what));
        }
        self.node(at, Expr::Call(function, arguments))
    }
}

impl Expr {
    /// The same expression with each variable's slot replaced by what `slot` says.
    #[must_use]
    pub fn with_slots(&self, slot: &dyn Fn(Slot) -> Slot) -> Self {
        match self {
            Self::Constant(value) => Self::Constant(*value),
            Self::Variable(old) => Self::Variable(slot(*old)),
            Self::Unary(operator, operand) => Self::Unary(*operator, Box::new(operand.with_slots(slot))),
            Self::Binary(operator, operands) => {
                let [left, right] = &**operands;
                Self::Binary(*operator, Box::new([left.with_slots(slot), right.with_slots(slot)]))
            }
            Self::Call(function, arguments) => {
                Self::Call(*function, arguments.iter().map(|a| a.with_slots(slot)).collect())
            }
        }
    }
}
