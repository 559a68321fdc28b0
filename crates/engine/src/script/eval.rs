//! The value of an expression. Evaluation allocates nothing.

use super::{BinaryOp, EvalError, Expr, Function, Slot, UnaryOp, Value};
use crate::random::{self, Random};

/// What an expression sees.
pub struct Scope<'a> {
    /// The variables' values by slot; none where nothing was assigned yet.
    pub variables: &'a [Option<Value>],
    /// Where randomness comes from.
    pub random: &'a mut Random,
}

impl Scope<'_> {
    fn variable(&self, slot: Slot) -> Result<Value, EvalError> {
        self.variables.get(slot.index()).copied().flatten().ok_or(EvalError::Undefined(slot))
    }
}

impl Expr {
    /// Its value.
    ///
    /// # Errors
    /// A variable without a value; integers out of range; division by zero; a random function's bad range or
    /// parameter.
    pub fn eval(&self, scope: &mut Scope<'_>) -> Result<Value, EvalError> {
        match self {
            Self::Constant(value) => Ok(*value),
            Self::Variable(slot) => scope.variable(*slot),
            Self::Unary(UnaryOp::Plus, operand) => operand.eval(scope),
            Self::Unary(UnaryOp::Minus, operand) => match operand.eval(scope)? {
                Value::Int(n) => n.checked_neg().map(Value::Int).ok_or(EvalError::IntOverflow),
                Value::Double(x) => Ok(Value::Double(0.0 - x)),
            },
            Self::Binary(operator, operands) => {
                let [left, right] = &**operands;
                let left = left.eval(scope)?;
                let right = right.eval(scope)?;
                binary(*operator, left, right)
            }
            Self::Call(function, arguments) => call(*function, arguments, scope),
        }
    }
}

fn binary(operator: BinaryOp, left: Value, right: Value) -> Result<Value, EvalError> {
    if operator == BinaryOp::Modulo {
        return modulo(left.int()?, right.int()?);
    }
    if let (Value::Int(a), Value::Int(b)) = (left, right) {
        let result = match operator {
            BinaryOp::Add => a.checked_add(b),
            BinaryOp::Subtract => a.checked_sub(b),
            BinaryOp::Multiply => a.checked_mul(b),
            BinaryOp::Divide if b == 0 => return Err(EvalError::DivisionByZero),
            BinaryOp::Divide => a.checked_div(b),
            BinaryOp::Modulo => return modulo(a, b),
        };
        return result.map(Value::Int).ok_or(EvalError::IntOverflow);
    }
    let (a, b) = (left.double(), right.double());
    match operator {
        BinaryOp::Add => Ok(Value::Double(a + b)),
        BinaryOp::Subtract => Ok(Value::Double(a - b)),
        BinaryOp::Multiply => Ok(Value::Double(a * b)),
        BinaryOp::Divide => Ok(Value::Double(a / b)),
        BinaryOp::Modulo => modulo(left.int()?, right.int()?),
    }
}

fn modulo(a: i64, b: i64) -> Result<Value, EvalError> {
    match b {
        0 => Err(EvalError::DivisionByZero),
        // The one pair whose quotient overflows has remainder 0.
        _ => Ok(Value::Int(a.wrapping_rem(b))),
    }
}

fn call(function: Function, arguments: &[Expr], scope: &mut Scope<'_>) -> Result<Value, EvalError> {
    // The parser checked the number of arguments.
    let mut argument = |n: usize| match arguments.get(n) {
        Some(argument) => argument.eval(scope),
        None => unreachable!("a call has as many arguments as its function takes"),
    };
    let double = |x: f64| Ok(Value::Double(x));
    match function {
        Function::Abs => match argument(0)? {
            Value::Int(n) => n.checked_abs().map(Value::Int).ok_or(EvalError::IntOverflow),
            Value::Double(x) => double(x.abs()),
        },
        Function::Double => double(argument(0)?.double()),
        Function::Exp => double(argument(0)?.double().exp()),
        Function::Int => argument(0)?.int().map(Value::Int),
        Function::Ln => double(argument(0)?.double().ln()),
        Function::Mod => modulo(argument(0)?.int()?, argument(1)?.int()?),
        Function::Pi => double(std::f64::consts::PI),
        Function::Power => double(argument(0)?.double().powf(argument(1)?.double())),
        Function::Sqrt => double(argument(0)?.double().sqrt()),
        Function::Greatest | Function::Least => {
            let mut best = argument(0)?;
            for n in 1..arguments.len() {
                best = extreme(best, argument(n)?, function == Function::Greatest);
            }
            Ok(best)
        }
        Function::Random => {
            let (low, high) = random::range(argument(0)?.int()?, argument(1)?.int()?)?;
            Ok(Value::Int(scope.random.uniform(low, high)))
        }
        Function::RandomExponential => {
            let (low, high) = random::range(argument(0)?.int()?, argument(1)?.int()?)?;
            let parameter = argument(2)?.double();
            scope.random.exponential(low, high, parameter).map(Value::Int)
        }
        Function::RandomGaussian => {
            let (low, high) = random::range(argument(0)?.int()?, argument(1)?.int()?)?;
            let parameter = argument(2)?.double();
            scope.random.gaussian(low, high, parameter).map(Value::Int)
        }
        Function::RandomZipfian => {
            let (low, high) = random::range(argument(0)?.int()?, argument(1)?.int()?)?;
            let parameter = argument(2)?.double();
            scope.random.zipfian(low, high, parameter).map(Value::Int)
        }
    }
}

/// The larger or smaller of two; a double as soon as one is.
fn extreme(a: Value, b: Value, greatest: bool) -> Value {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Value::Int(if greatest { a.max(b) } else { a.min(b) }),
        _ => {
            let (a, b) = (a.double(), b.double());
            Value::Double(if greatest == (a < b) { b } else { a })
        }
    }
}
