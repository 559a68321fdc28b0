//! Expressions as a tree.

use super::slot::Slot;
use super::value::Value;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A number, a boolean or NULL.
    Constant(Value),
    /// A variable.
    Variable(Slot),
    /// An operator before or after its operand.
    Unary(UnaryOp, Box<Expr>),
    /// An operator between its operands.
    Binary(BinaryOp, Box<[Expr; 2]>),
    /// A function with its arguments, whose number was checked.
    Call(Function, Vec<Expr>),
    /// `CASE`: conditions and values in turn, and at last the value of ELSE.
    Case(Vec<Expr>),
}

/// An operator before or after its operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UnaryOp {
    /// `-`.
    Minus,
    /// `~`: all bits inverted.
    Complement,
    /// `NOT`.
    Not,
    /// `IS` this constant; a number is neither true nor false.
    Is(Value),
    /// `IS NOT` this constant.
    IsNot(Value),
}

/// An operator between its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    BitOr,
    BitXor,
    BitAnd,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Function {
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Mod,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

impl Expr {
    /// Returns the expression with each variable's slot mapped by `slot`.
    pub fn with_slots(&self, slot: &dyn Fn(Slot) -> Slot) -> Self {
        match self {
            Self::Variable(old) => Self::Variable(slot(*old)),
            other => other.with_parts(&|part| part.with_slots(slot)),
        }
    }

    /// Returns the expression with each of its direct parts mapped by `of`.
    pub(super) fn with_parts(&self, of: &dyn Fn(&Self) -> Self) -> Self {
        match self {
            Self::Constant(_) | Self::Variable(_) => self.clone(),
            Self::Unary(operator, operand) => Self::Unary(*operator, Box::new(of(operand))),
            Self::Binary(operator, operands) => {
                Self::Binary(*operator, Box::new(operands.each_ref().map(of)))
            }
            Self::Call(function, arguments) => {
                Self::Call(*function, arguments.iter().map(of).collect())
            }
            Self::Case(parts) => Self::Case(parts.iter().map(of).collect()),
        }
    }
}
