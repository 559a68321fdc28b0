//! Constant folding: expressions are evaluated before the load begins, as far as possible.

use super::{Expr, Function, Scope, Slot, Value, VariableValue};
use crate::random::Random;

impl Expr {
    /// Returns the expression with its constant parts evaluated.
    ///
    /// `constants` are the values of variables that never change, by slot. A part without a value
    /// stays, so that its error comes when it is executed.
    pub(crate) fn folded(&self, constants: &[Option<VariableValue>], seed: Slot) -> Self {
        if self.is_pure() {
            let mut random = Random::new(0);
            let debug = |_: Value| {};
            let mut scope =
                Scope { variables: constants, random: &mut random, seed, debug: &debug };
            if let Ok(value) = self.eval(&mut scope) {
                return Self::Constant(value);
            }
        }
        self.with_parts(&|part| part.folded(constants, seed))
    }

    /// Returns whether evaluation draws no random number and logs nothing.
    fn is_pure(&self) -> bool {
        match self {
            Self::Constant(_) | Self::Variable(_) => true,
            Self::Unary(_, operand) => operand.is_pure(),
            Self::Binary(_, operands) => operands.iter().all(Self::is_pure),
            Self::Call(
                Function::Debug
                | Function::Random
                | Function::RandomExponential
                | Function::RandomGaussian
                | Function::RandomZipfian,
                _,
            ) => false,
            Self::Call(_, arguments) => arguments.iter().all(Self::is_pure),
            Self::Case(parts) => parts.iter().all(Self::is_pure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Op, Script};
    use super::*;

    /// `expression` folded, where `a` is the text 10 throughout and `b` is assigned.
    fn folded(expression: &str) -> Expr {
        let script = Script::parse("test.sql", &format!("\\set x {expression}"))
            .unwrap_or_else(|e| panic!("{e}"));
        let Op::Set { expression, .. } = &script.commands[0].op else { panic!("no \\set") };
        let constants: Vec<_> = script
            .variables
            .iter()
            .map(|name| (name == "a").then(|| VariableValue::from("10")))
            .collect();
        expression.folded(&constants, Slot(u32::MAX))
    }

    #[test]
    fn what_is_known_is_computed_once() {
        assert_eq!(folded("1 + :a * 2"), Expr::Constant(Value::Int(21)));
        assert_eq!(folded("case when :a > 5 then 1 else 1 / 0 end"), Expr::Constant(Value::Int(1)));
        let ten = || Expr::Constant(Value::Int(10));
        let one = || Expr::Constant(Value::Int(1));
        assert_eq!(folded("random(1, :a)"), Expr::Call(Function::Random, vec![one(), ten()]));
        let Expr::Binary(_, operands) = folded(":b + (:a - 9)") else {
            panic!("not folded in part")
        };
        assert_eq!(operands[1], one());
    }

    #[test]
    fn what_has_no_value_or_shows_something_stays() {
        for expression in
            ["1 / 0", "9223372036854775807 + 1", ":b", "debug(1)", "hash(1)", "sqrt(:b)"]
        {
            assert!(!matches!(folded(expression), Expr::Constant(_)), "{expression}");
        }
    }
}
