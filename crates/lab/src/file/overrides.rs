//! `--set load.duration=2s`: one key of the file, given on the command line.

use std::path::Path;

use pgdyno_model::Experiment;

use super::raw::File;
use super::{FileError, Source};

/// A key and the value it shall have.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// As given, for messages and for the store.
    pub given: String,
    path: Vec<String>,
    value: toml::Value,
}

impl Override {
    /// Reads `key=value`; the value is TOML where it parses as TOML, else text.
    ///
    /// # Errors
    /// There is no `=`, or no key before it.
    pub fn parse(given: &str) -> Result<Self, FileError> {
        let Some((key, value)) = given.split_once('=').filter(|(key, _)| !key.trim().is_empty()) else {
            return Err(FileError::InOverride {
                given: given.to_owned(),
                what: "there is no `key=value` in it".into(),
                help: Some("write it like `--set load.duration=2s` or `--set factors.clients=[1,16]`".into()),
            });
        };
        let path: Vec<String> = key.trim().split('.').map(str::to_owned).collect();
        let value = toml::from_str::<toml::Table>(&format!("v = {value}"))
            .ok()
            .filter(|table| table.len() == 1)
            .and_then(|mut table| table.remove("v"))
            .unwrap_or_else(|| toml::Value::String(value.to_owned()));
        Ok(Self { given: given.to_owned(), path, value }.with_absolute_paths())
    }

    /// The override that sets `key` to the text `value`, shown as `shown`.
    #[must_use]
    pub fn text(key: &str, value: &str, shown: &str) -> Self {
        Self {
            given: shown.to_owned(),
            path: key.split('.').map(str::to_owned).collect(),
            value: toml::Value::String(value.to_owned()),
        }
        .with_absolute_paths()
    }

    /// Paths on a command line start from the working directory, those in a file from the file's.
    fn with_absolute_paths(mut self) -> Self {
        let keys: Vec<&str> = self.path.iter().map(String::as_str).collect();
        if let (["storage", _, "directory"] | ["postgres", "bindir"], toml::Value::String(path)) =
            (&keys[..], &self.value)
            && let Ok(absolute) = std::path::absolute(Path::new(path))
        {
            self.value = toml::Value::String(absolute.display().to_string());
        }
        self
    }

    fn set(&self, table: &mut toml::Table) -> Result<(), FileError> {
        let mut here = table;
        let Some((last, path)) = self.path.split_last() else { return Ok(()) };
        for key in path {
            let next = here.entry(key.clone()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            let Some(inner) = next.as_table_mut() else {
                return Err(FileError::InOverride {
                    given: self.given.clone(),
                    what: format!("`{key}` is not a table, it has a value of its own"),
                    help: None,
                });
            };
            here = inner;
        }
        // A trial ends by time or by count: the newer word counts.
        if path == ["load"] {
            match last.as_str() {
                "duration" => drop(here.remove("transactions")),
                "transactions" => drop(here.remove("duration")),
                _ => {}
            }
        }
        here.insert(last.clone(), self.value.clone());
        Ok(())
    }
}

/// `table` as text. Factors are written in one line, since tables would move behind lists, and the last factor varies fastest.
fn rendered(table: &toml::Table) -> Result<String, toml::ser::Error> {
    let mut rest = table.clone();
    let factors = rest.remove("factors").map(|factors| format!("factors = {factors}\n")).unwrap_or_default();
    Ok(factors + &toml::to_string(&rest)?)
}

/// The experiment with `overrides` applied one after another, so that an error names the one at fault: the first that no later one
/// makes good, since some keys only go together.
pub(super) fn apply(source: &Source, raw: File, overrides: &[Override]) -> Result<Experiment, FileError> {
    let mut outcome = raw.into_experiment(source);
    let mut table: toml::Table = match overrides {
        [] => toml::Table::new(),
        _ => toml::from_str(&source.text).map_err(|e| FileError::in_file(source, &e))?,
    };
    let mut blamed = None;
    for one in overrides {
        one.set(&mut table)?;
        // Through text, because only text has the spans that `File` asks for.
        let text = rendered(&table).map_err(|e| FileError::in_override(&one.given, &e.to_string()))?;
        let raw: File = toml::from_str(&text).map_err(|e| FileError::in_override(&one.given, e.message()))?;
        let next = raw.into_experiment(source);
        if let (Ok(_), Err(complaint)) = (&outcome, &next) {
            let (what, help) = (complaint.what.clone(), complaint.help.clone());
            blamed = Some(FileError::InOverride { given: one.given.clone(), what, help });
        }
        outcome = next;
    }
    if let (Err(_), Some(blamed)) = (&outcome, blamed) {
        return Err(blamed);
    }
    outcome.map_err(|mut complaint| {
        // Overrides move what stands behind a place, so then the words alone have to name it.
        complaint.span = complaint.span.filter(|_| overrides.is_empty());
        FileError::complaint(source, complaint)
    })
}
