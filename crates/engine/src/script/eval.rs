//! Evaluating expressions, without allocation.

use super::{BinaryOp, EvalError, Expr, Function, Slot, UnaryOp, Value, VariableValue};
use crate::random::{self, Random};

/// A value, or why there is none. The error is boxed so that a value is returned in registers.
pub(super) type Evaluated = Result<Value, Box<EvalError>>;

/// Variables and random numbers that an expression is evaluated with.
pub struct Scope<'a> {
    /// Values of the variables by slot; none where nothing was assigned.
    pub variables: &'a [Option<VariableValue>],
    /// Generator of random numbers.
    pub random: &'a mut Random,
    /// Variable with the seed of hashes and permutations that name none.
    pub seed: Slot,
    /// Takes the arguments of `debug`.
    pub debug: &'a dyn Fn(Value),
}

impl Scope<'_> {
    fn variable(&self, slot: Slot) -> Evaluated {
        match self.variables.get(slot.index()) {
            Some(Some(content)) => content.value().ok_or_else(|| EvalError::Malformed(slot).into()),
            Some(None) | None => Err(EvalError::Undefined(slot).into()),
        }
    }
}

impl Expr {
    /// Draws if the expression is `random` with constant bounds, as in most scripts; else none.
    #[inline]
    pub(crate) fn constant_draw(&self, random: &mut Random) -> Option<i64> {
        let Self::Call(Function::Random, arguments) = self else { return None };
        let [Self::Constant(Value::Int(low)), Self::Constant(Value::Int(high))] = arguments[..]
        else {
            return None;
        };
        let (low, high) = random::range(low, high).ok()?;
        Some(random.uniform(low, high))
    }

    /// Evaluates the expression.
    ///
    /// # Errors
    /// A variable without a value; a value of the wrong type; integers out of range; division by
    /// zero; a function's bad range or parameter.
    pub fn eval(&self, scope: &mut Scope<'_>) -> Evaluated {
        match self {
            Self::Constant(value) => Ok(*value),
            Self::Variable(slot) => scope.variable(*slot),
            Self::Unary(operator, operand) => unary(*operator, operand.eval(scope)?),
            Self::Binary(BinaryOp::And, operands) => logical(operands, false, scope),
            Self::Binary(BinaryOp::Or, operands) => logical(operands, true, scope),
            Self::Binary(operator, operands) => {
                let [left, right] = &**operands;
                // pgbench swaps the operands of these two, which decides the order of draws.
                if matches!(operator, BinaryOp::Greater | BinaryOp::GreaterOrEqual) {
                    let right = right.eval(scope)?;
                    return binary(*operator, left.eval(scope)?, right);
                }
                let left = left.eval(scope)?;
                binary(*operator, left, right.eval(scope)?)
            }
            Self::Call(function, arguments) => call(*function, arguments, scope),
            Self::Case(parts) => {
                let (pairs, otherwise) = parts.as_chunks::<2>();
                for [condition, value] in pairs {
                    if condition.eval(scope)?.is_true() {
                        return value.eval(scope);
                    }
                }
                otherwise.first().map_or(Ok(Value::Null), |value| value.eval(scope))
            }
        }
    }
}

/// Evaluates AND or OR.
///
/// If the first operand is `decides` or NULL, it is the result and the second is not evaluated.
/// This is pgbench's logic, not SQL's.
fn logical(operands: &[Expr; 2], decides: bool, scope: &mut Scope<'_>) -> Evaluated {
    for operand in operands {
        match operand.eval(scope)? {
            Value::Null => return Ok(Value::Null),
            other if other.bool()? == decides => return Ok(Value::Bool(decides)),
            _ => {}
        }
    }
    Ok(Value::Bool(!decides))
}

fn unary(operator: UnaryOp, operand: Value) -> Evaluated {
    match (operator, operand) {
        (UnaryOp::Is(value), operand) => Ok(Value::Bool(value == operand)),
        (UnaryOp::IsNot(value), operand) => Ok(Value::Bool(value != operand)),
        (_, Value::Null) => Ok(Value::Null),
        (UnaryOp::Minus, operand) => binary(BinaryOp::Subtract, Value::Int(0), operand),
        (UnaryOp::Complement, operand) => Ok(Value::Int(!operand.int()?)),
        (UnaryOp::Not, operand) => Ok(Value::Bool(!operand.bool()?)),
    }
}

fn binary(operator: BinaryOp, left: Value, right: Value) -> Evaluated {
    use BinaryOp as B;
    if left == Value::Null || right == Value::Null {
        return Ok(Value::Null);
    }
    match operator {
        B::Modulo => return modulo(left.int()?, right.int()?),
        B::BitOr | B::BitXor | B::BitAnd | B::ShiftLeft | B::ShiftRight => {
            return Ok(Value::Int(bits(operator, left.int()?, right.int()?)));
        }
        _ => {}
    }
    if matches!(left, Value::Double(_)) || matches!(right, Value::Double(_)) {
        let (a, b) = (left.double()?, right.double()?);
        return Ok(match operator {
            B::Add => Value::Double(a + b),
            B::Subtract => Value::Double(a - b),
            B::Multiply => Value::Double(a * b),
            B::Divide => Value::Double(a / b),
            other => Value::Bool(compare(other, &a, &b)),
        });
    }
    let (a, b) = (left.int()?, right.int()?);
    let (result, what) = match operator {
        B::Add => (a.checked_add(b), " add"),
        B::Subtract => (a.checked_sub(b), " sub"),
        B::Multiply => (a.checked_mul(b), " mul"),
        B::Divide if b == 0 => return Err(EvalError::DivisionByZero.into()),
        B::Divide => (a.checked_div(b), " div"),
        other => return Ok(Value::Bool(compare(other, &a, &b))),
    };
    result.map(Value::Int).ok_or_else(|| EvalError::IntOverflow(what).into())
}

fn compare<T: PartialOrd>(operator: BinaryOp, a: &T, b: &T) -> bool {
    match operator {
        BinaryOp::Equal => a == b,
        BinaryOp::NotEqual => a != b,
        BinaryOp::Less => a < b,
        BinaryOp::LessOrEqual => a <= b,
        BinaryOp::Greater => a > b,
        BinaryOp::GreaterOrEqual => a >= b,
        other => unreachable!("{other:?} compares nothing"),
    }
}

fn bits(operator: BinaryOp, a: i64, b: i64) -> i64 {
    // Of a shift's width the lowest six bits count, as the processor has it.
    let width = u32::try_from(b & 63).unwrap_or(0);
    match operator {
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        BinaryOp::BitAnd => a & b,
        BinaryOp::ShiftLeft => a.wrapping_shl(width),
        BinaryOp::ShiftRight => a.wrapping_shr(width),
        other => unreachable!("{other:?} is no operator on bits"),
    }
}

fn modulo(a: i64, b: i64) -> Evaluated {
    match b {
        0 => Err(EvalError::DivisionByZero.into()),
        // The one pair whose quotient overflows has remainder 0.
        _ => Ok(Value::Int(a.wrapping_rem(b))),
    }
}

/// Arguments that a function looks at one by one; longer lists only `greatest` and `least` have.
const MAX: usize = 3;

/// Arguments of a function at most. Calls with more can be parsed, and fail when they are
/// evaluated.
const MAX_ARGUMENTS: usize = 16;

fn call(function: Function, arguments: &[Expr], scope: &mut Scope<'_>) -> Evaluated {
    if matches!(function, Function::Greatest | Function::Least) {
        return extreme(arguments, function == Function::Greatest, scope);
    }
    let mut values = [Value::Int(0); MAX];
    for (value, argument) in values.iter_mut().zip(arguments) {
        *value = argument.eval(scope)?;
    }
    let [a, b, c] = values;
    if function == Function::Debug {
        (scope.debug)(a);
        return Ok(a);
    }
    if values.contains(&Value::Null) {
        return Ok(Value::Null);
    }
    let double = |x: f64| Ok(Value::Double(x));
    match function {
        Function::Abs => match a {
            Value::Int(n) => Ok(Value::Int(n.wrapping_abs())),
            other => double(other.double()?.abs()),
        },
        Function::Double => double(a.double()?),
        Function::Exp => double(a.double()?.exp()),
        Function::Int => Ok(Value::Int(a.int()?)),
        Function::Ln => double(a.double()?.ln()),
        Function::Mod => modulo(a.int()?, b.int()?),
        Function::Pi => double(std::f64::consts::PI),
        Function::Power => double(a.double()?.powf(b.double()?)),
        Function::Sqrt => double(a.double()?.sqrt()),
        Function::HashFnv1a | Function::HashMurmur2 => {
            let seed = if arguments.len() > 1 { b } else { scope.variable(scope.seed)? };
            let (value, seed) = (a.int()?.cast_unsigned(), seed.int()?.cast_unsigned());
            let hash = match function {
                Function::HashFnv1a => random::fnv1a(value, seed),
                _ => random::murmur2(value, seed),
            };
            Ok(Value::Int(hash.cast_signed()))
        }
        Function::Permute => {
            let seed = if arguments.len() > 2 { c } else { scope.variable(scope.seed)? };
            let (value, size) = (a.int()?, b.int()?);
            if size <= 0 {
                return Err(EvalError::PermuteSize(size).into());
            }
            Ok(Value::Int(random::permute(value, size, seed.int()?)))
        }
        Function::Random => {
            let (low, high) = random::range(a.int()?, b.int()?)?;
            Ok(Value::Int(scope.random.uniform(low, high)))
        }
        Function::RandomExponential | Function::RandomGaussian | Function::RandomZipfian => {
            let (low, high) = random::range(a.int()?, b.int()?)?;
            let parameter = c.double()?;
            let drawn = match function {
                Function::RandomExponential => scope.random.exponential(low, high, parameter)?,
                Function::RandomGaussian => scope.random.gaussian(low, high, parameter)?,
                _ => scope.random.zipfian(low, high, parameter)?,
            };
            Ok(Value::Int(drawn))
        }
        Function::Debug | Function::Greatest | Function::Least => unreachable!("done above"),
    }
}

/// Returns the largest or smallest argument: NULL if one is NULL, a double if one is a double.
fn extreme(arguments: &[Expr], greatest: bool, scope: &mut Scope<'_>) -> Evaluated {
    let counted = &arguments[..arguments.len().min(MAX_ARGUMENTS)];
    let mut null = false;
    let mut wrong = None;
    let mut int: Option<i64> = None;
    let mut double: Option<f64> = None;
    for argument in counted {
        match argument.eval(scope)? {
            Value::Null => null = true,
            value @ Value::Bool(_) => wrong = Some(value),
            Value::Int(n) => {
                int = Some(int.map_or(n, |best| if greatest { best.max(n) } else { best.min(n) }));
            }
            Value::Double(x) => {
                double =
                    Some(double.map_or(x, |best| if greatest == (best < x) { x } else { best }));
            }
        }
    }
    if counted.len() < arguments.len() {
        return Err(EvalError::TooManyArguments(MAX_ARGUMENTS).into());
    }
    match (double, int) {
        _ if null => Ok(Value::Null),
        (Some(x), int) => {
            if let Some(wrong) = wrong {
                return Ok(Value::Double(wrong.double()?));
            }
            let y = match int {
                Some(n) => Value::Int(n).double()?,
                None => x,
            };
            Ok(Value::Double(if greatest == (x < y) { y } else { x }))
        }
        (None, Some(n)) => Ok(Value::Int(wrong.unwrap_or(Value::Int(n)).int()?)),
        (None, None) => Ok(Value::Int(wrong.unwrap_or(Value::Null).int()?)),
    }
}
