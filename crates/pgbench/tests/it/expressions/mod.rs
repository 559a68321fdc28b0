//! Expressions of the script language, fixed ones and random ones.

use pgdyno_engine::random::Random;

/// Expressions without parts.
const LEAVES: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "7",
    "42",
    "-1",
    "100",
    "63",
    "0.5",
    "1.5",
    "2.5e3",
    "1e-3",
    ".25",
    "1e20",
    "9223372036854775807",
    "-9223372036854775808",
    "4611686018427387904",
    "true",
    "false",
    "null",
    "TRUE",
    "Null",
    "1234567.891",
    "3.",
    "pi()",
];

/// Expressions at random.
pub(crate) struct Grammar(pub(crate) Random);

impl Grammar {
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[usize::try_from(self.0.uniform(0, from.len() as i64 - 1)).unwrap()]
    }

    pub(crate) fn expression(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.pick(LEAVES).to_owned();
        }
        let d = depth - 1;
        match self.0.uniform(0, 19) {
            0..=8 => {
                let operator = self.pick(&[
                    "+", "-", "*", "/", "%", "<", "<=", ">", ">=", "=", "<>", "!=", "and", "or",
                    "OR", "|", "&", "#", "<<", ">>", "+", "*", "-",
                ]);
                format!("{} {operator} {}", self.expression(d), self.expression(d))
            }
            9..=10 => format!("({})", self.expression(d)),
            11 => format!("{} {}", self.pick(&["-", "+", "~", "not", "NOT"]), self.expression(d)),
            12 => {
                let test = self.pick(&[
                    "is null",
                    "is not null",
                    "is true",
                    "is not true",
                    "is false",
                    "IS NOT FALSE",
                    "isnull",
                    "notnull",
                ]);
                format!("{} {test}", self.expression(d))
            }
            13 => format!(
                "case when {} then {} when {} then {} {} end",
                self.expression(d),
                self.expression(d),
                self.expression(d),
                self.expression(d),
                if self.0.uniform(0, 1) == 0 {
                    String::new()
                } else {
                    format!("else {}", self.expression(d))
                }
            ),
            _ => self.call(d),
        }
    }

    /// A function with arguments of depth `d`.
    fn call(&mut self, d: u32) -> String {
        match self.0.uniform(0, 5) {
            0..=1 => {
                let function = self.pick(&["abs", "double", "int", "sqrt", "ln", "exp", "ABS"]);
                format!("{function}({})", self.expression(d))
            }
            2 => {
                let function =
                    self.pick(&["mod", "pow", "power", "greatest", "least", "random", "permute"]);
                let third = if function == "permute" { ", 7" } else { "" };
                format!("{function}({}, {}{third})", self.expression(d), self.expression(d))
            }
            3 => {
                let function = self.pick(&["hash", "hash_fnv1a", "hash_murmur2"]);
                format!("{function}({}, {})", self.expression(d), self.expression(d))
            }
            4 => {
                let function =
                    self.pick(&["random_gaussian", "random_exponential", "random_zipfian"]);
                format!(
                    "{function}({}, {}, {})",
                    self.expression(d),
                    self.expression(d),
                    self.expression(d)
                )
            }
            _ => {
                let function = self.pick(&["least", "greatest"]);
                format!(
                    "{function}({}, {}, {})",
                    self.expression(d),
                    self.expression(d),
                    self.expression(0)
                )
            }
        }
    }
}

/// Expressions that are always compared.
pub(crate) const FIXED: &[&str] = &[
    "permute(0, 1, 3)",
    "permute(5, 10, 42)",
    "permute(123, 1000000, 7)",
    "permute(-3, 10, 1)",
    "permute(3, 2, 9)",
    "permute(9223372036854775806, 9223372036854775807, 11)",
    "permute(1, 0, 1)",
    "hash(10, 5321)",
    "hash_fnv1a(10, 5321)",
    "hash_murmur2(-1, 0)",
    "random(1, 1000000)",
    "random(-5, 5)",
    "random(5, 1)",
    "random_gaussian(1, 1000, 2.5)",
    "random_exponential(1, 1000, 3.0)",
    "random_zipfian(1, 1000, 1.3)",
    "random_zipfian(1, 1000, 1.0)",
    "random_gaussian(1, 10, 1.5)",
    "random_exponential(1, 10, 0)",
    "1 < 2 < 3",
    "1 = 2 is null",
    "not 1 = 1",
    "not null is null",
    "- not true + 2",
    "~ 1 + 2",
    "~ 1 & 3",
    "~ ~ 5",
    "1 - 2 - 3",
    "100 / 7 / 3",
    "-7 / 2",
    "-7 % 3",
    "7 % -3",
    "2 * 3 % 4",
    "1 << 2 + 1",
    "1 | 2 # 3 & 4",
    "- 5 << 1",
    "9223372036854775807 + 1",
    "-9223372036854775808 / -1",
    "-9223372036854775808 - 1",
    "9223372036854775807 * 2",
    "1 / 0",
    "1 % 0",
    "1.0 / 0",
    "0.0 / 0",
    "int(1e19)",
    "abs(-9223372036854775808)",
    "sqrt(-1)",
    "ln(-1)",
    "ln(0)",
    "1 << 64",
    "1 << -1",
    "-1 >> 1",
    "greatest()",
    "greatest(true)",
    "greatest(true, 1)",
    "true = true",
    "true + 1",
    "not 1",
    "1 and true",
    "false and 1",
    "true or 1",
    "null or 1",
    "int(true)",
    "double(false)",
    "case 1 end",
    "case when 1 then 2",
    "rnd(1)",
    "pi(1)",
    "random(1)",
    "1 $ 2",
    "99999999999999999999",
    "1e999",
    "",
    "1 2",
    "(1",
    "9223372036854775808",
    "is",
    "null()",
    "debug(null)",
    "1 is true",
    "1 is 1",
    "mod(7.5, 2)",
    "7.5 % 2",
    "int(2.5)",
    "int(3.5)",
    "int(-2.5)",
    "null + 1 is null",
    "least(null, 1)",
    "pow(0, -1)",
    "pow(-8, 0.3333)",
    "-0.0",
    "0.1 + 0.2",
    "5 = 5.0",
    "1 <> null",
    "case when null then 1 else 2 end",
    "case when 2 then 'a' end",
    "1 + - + 2",
    "1 is not null is true",
];
