//! Files of a captured workload.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use pgdyno_model::json::Document;

use crate::document::Captured;
use crate::draw::Set;
use crate::error::CaptureError;
use crate::mix::MixedTransaction;

/// Largest weight of a script.
const MOST_WEIGHT: u64 = 1_000_000;

/// Statement of a script.
#[derive(Clone, Debug)]
pub(crate) struct ScriptStatement {
    /// Number in `captured.json`.
    pub(crate) number: usize,
    /// First word and first table, for the file's name.
    pub(crate) label: String,
    /// Variables that are set before it.
    pub(crate) sets: Vec<Set>,
    /// SQL, without semicolon.
    pub(crate) sql: String,
}

impl ScriptStatement {
    /// Returns the text of time `at`, from 0, of `times` in one transaction.
    ///
    /// The widest key grows from time to time, and the other keys stay: a loop over the items of an
    /// order does that. Rows are then locked in one order by all clients.
    fn text(&self, at: u32, times: u32) -> String {
        let keys = self.sets.iter().filter(|set| set.is_key);
        let widest = keys.max_by_key(|set| set.expression.range());
        let mut text = String::new();
        for set in &self.sets {
            let expression = match widest == Some(set) {
                true => set.expression.part(at, times),
                false if set.is_key && at > 0 => continue,
                false => set.expression.clone(),
            };
            let _ = writeln!(text, "\\set {} {expression}", set.variable);
        }
        let _ = writeln!(text, "{} {};", self.sql, tag(self.number));
        text
    }
}

/// Returns the comment that tells statement `number` on the server that replays it.
pub(crate) fn tag(number: usize) -> String {
    format!("/* captured {number} */")
}

/// Returns the number in the comment of `text`; none without one.
pub(crate) fn tagged(text: &str) -> Option<usize> {
    let (_, rest) = text.rsplit_once("/* captured ")?;
    rest.split(' ').next()?.parse().ok()
}

/// Script of a workload.
#[derive(Debug, PartialEq)]
pub(crate) struct ScriptFile {
    pub(crate) name: String,
    pub(crate) weight: u64,
    pub(crate) text: String,
}

/// Returns the scripts of `mixed`.
pub(crate) fn scripts(
    mixed: &[MixedTransaction],
    statements: &[ScriptStatement],
) -> Vec<ScriptFile> {
    let most = mixed.iter().map(|transaction| transaction.calls).max().unwrap_or(1).max(1);
    let scale = (MOST_WEIGHT as f64 / most as f64).min(1.0);
    let script = |(at, transaction): (usize, &MixedTransaction)| {
        let label = match &transaction.steps[..] {
            [step] => statements[step.statement].label.clone(),
            _ => "transaction".to_owned(),
        };
        ScriptFile {
            name: format!("{:02}-{label}.sql", at + 1),
            weight: ((transaction.calls as f64 * scale).round() as u64).max(1),
            text: script_text(transaction, statements),
        }
    };
    mixed.iter().enumerate().map(script).collect()
}

fn script_text(transaction: &MixedTransaction, statements: &[ScriptStatement]) -> String {
    let mut text = String::new();
    if transaction.is_block {
        text += "BEGIN;\n";
    }
    for step in &transaction.steps {
        let statement = &statements[step.statement];
        let permille = (step.chance * 1000.0).round() as u64;
        let most = step.times + u32::from(permille > 0);
        for at in 0..step.times {
            text += &statement.text(at, most);
        }
        if permille > 0 {
            let once = statement.text(step.times, most);
            let _ = write!(
                text,
                "\\set more random(1, 1000)\n\\if :more <= {permille}\n{once}\\endif\n"
            );
        }
    }
    if transaction.is_block {
        text += "END;\n";
    }
    text
}

/// Checks that `folder` is not there yet, or empty.
///
/// # Errors
/// [`CaptureError::NotEmpty`], [`CaptureError::Write`].
pub(crate) fn check(folder: &Path) -> Result<(), CaptureError> {
    match fs::read_dir(folder) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(CaptureError::NotEmpty(folder.to_owned())),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(CaptureError::Write { path: folder.to_owned(), source }),
    }
}

/// Writes `files` by name into `folder`.
///
/// # Errors
/// [`CaptureError::Write`].
pub(crate) fn write(folder: &Path, files: &[(String, String)]) -> Result<(), CaptureError> {
    let wrong = |path: &Path, source| CaptureError::Write { path: path.to_owned(), source };
    fs::create_dir_all(folder).map_err(|e| wrong(folder, e))?;
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|e| wrong(&path, e))?;
    }
    Ok(())
}

/// Reads the document of `folder`.
///
/// # Errors
/// [`CaptureError::NotCaptured`].
pub fn read(folder: &Path) -> Result<Captured, CaptureError> {
    let path = folder.join(Captured::FILE);
    let wrong = |why: String| CaptureError::NotCaptured { path: path.clone(), why };
    let text = fs::read_to_string(&path).map_err(|e| wrong(e.to_string()))?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    let schema = value.get("schema").and_then(serde_json::Value::as_str);
    if schema != Some(Captured::SCHEMA) {
        return Err(wrong(format!("its schema is not {}", Captured::SCHEMA)));
    }
    serde_json::from_value(value).map_err(|e| wrong(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Expression;
    use crate::mix::Step;

    #[test]
    fn a_transaction_repeats_its_statements_as_often_as_they_ran() {
        let statement = |number, sql: &str| ScriptStatement {
            number,
            label: "select-a".into(),
            sets: vec![
                Set {
                    variable: format!("s{number}_1"),
                    expression: Expression::Random(1, 9),
                    is_key: true,
                },
                Set {
                    variable: format!("s{number}_2"),
                    expression: Expression::Random(1, 2),
                    is_key: true,
                },
            ],
            sql: sql.into(),
        };
        let statements = [statement(1, "SELECT :s1_1"), statement(2, "SELECT 2")];
        let steps = vec![
            Step { statement: 0, times: 2, chance: 0.0 },
            Step { statement: 1, times: 0, chance: 0.25 },
        ];
        let mixed = [
            MixedTransaction { calls: 4_000_000, is_block: true, steps },
            MixedTransaction {
                calls: 2_000_000,
                is_block: false,
                steps: vec![Step { statement: 1, times: 1, chance: 0.0 }],
            },
        ];
        let found = scripts(&mixed, &statements);
        let names = found.iter().map(|script| (script.name.as_str(), script.weight));
        let expected = [("01-transaction.sql", 1_000_000), ("02-select-a.sql", 500_000)];
        assert_eq!(names.collect::<Vec<_>>(), expected);
        assert_eq!(
            found[0].text,
            "BEGIN;\n\\set s1_1 random(1, 4)\n\\set s1_2 random(1, 2)\n\
             SELECT :s1_1 /* captured 1 */;\n\
             \\set s1_1 random(5, 9)\nSELECT :s1_1 /* captured 1 */;\n\
             \\set more random(1, 1000)\n\\if :more <= 250\n\\set s2_1 random(1, 9)\n\
             \\set s2_2 random(1, 2)\nSELECT 2 /* captured 2 */;\n\\endif\nEND;\n"
        );
        assert_eq!(tagged("SELECT 2 /* captured 2 */"), Some(2));
        assert_eq!(tagged("SELECT 2"), None);
    }
}
