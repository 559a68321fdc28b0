//! `--set load.duration=2s`: one key of the file, given on the command line.

use std::path::Path;

use pgdyno_postgres::external::server_name;
use serde::{Deserialize, Serialize};

use super::error::FileError;

/// A key and the value it shall have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
        let Some((key, value)) = split_at_equals(given).filter(|(key, _)| !key.trim().is_empty())
        else {
            let help = "write it like `--set load.duration=2s` or `--set factors.clients=[1,16]`";
            let what = "there is no `key=value` in it";
            return Err(FileError::of_override(given, what, Some(help.into())));
        };
        let path = path_of(key.trim());
        let value = toml::from_str::<toml::Table>(&format!("v = {value}"))
            .ok()
            .filter(|table| table.len() == 1)
            .and_then(|mut table| table.remove("v"))
            .unwrap_or_else(|| toml::Value::String(value.to_owned()));
        Ok(Self { given: given.to_owned(), path, value }.with_absolute_paths().without_passwords())
    }

    /// The key that it sets, with dots.
    pub fn key(&self) -> String {
        self.path.join(".")
    }

    /// Returns the override that sets `key`, a path with dots, to `value`. Messages and the store
    /// show it as `KEY=VALUE`.
    pub fn new(key: &str, value: impl Into<toml::Value>) -> Self {
        let path = key.split('.').map(str::to_owned).collect();
        Self { given: String::new(), path, value: value.into() }.with_absolute_paths().respell()
    }

    /// The override that sets `key` to the text `value`, shown as `shown`.
    pub fn text(key: &str, value: &str, shown: &str) -> Self {
        Self {
            given: shown.to_owned(),
            path: key.split('.').map(str::to_owned).collect(),
            value: toml::Value::String(value.to_owned()),
        }
        .with_absolute_paths()
        .without_passwords()
    }

    /// Returns an override for each value in `table`, however deep.
    pub(super) fn from_table(table: &toml::Table) -> Vec<Self> {
        let mut overrides = Vec::new();
        for (key, value) in table {
            let path = vec![key.clone()];
            match value {
                toml::Value::Table(inner) => {
                    overrides.extend(Self::from_table(inner).into_iter().map(|mut value| {
                        value.path.insert(0, key.clone());
                        value.respell()
                    }));
                }
                value => {
                    let value = Self { given: String::new(), path, value: value.clone() };
                    overrides.push(value.respell());
                }
            }
        }
        overrides
    }

    /// The overrides that `--dsn` stands for: the experiment's server; or, where one is named
    /// (`NAME:=DSN`) or there are several, the levels of a factor `server`. One without a name is
    /// called by its place.
    ///
    /// # Errors
    /// One is no DSN, or two have one name.
    pub fn servers(dsns: &[String]) -> Result<Vec<Self>, FileError> {
        let path = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let one = |path: Vec<String>, dsn: &str| {
            Self { given: String::new(), value: toml::Value::String(dsn.to_owned()), path }
                .respell()
        };
        if let [only] = dsns
            && named_dsn(only).0.is_none()
        {
            return Ok(vec![one(path(&["postgres", "dsn"]), only)]);
        }
        // Nothing of a DSN is quoted: a password could be in any part.
        let wrong = |what: String, help: &str| FileError::Refused {
            what: format!("--dsn: {what}"),
            help: Some(help.to_owned()),
        };
        let mut seen = Vec::new();
        let mut overrides = Vec::new();
        for given in dsns {
            let (name, dsn) = named_dsn(given);
            let Some(place) = server_name(dsn) else {
                let which = name.map_or_else(|| "one".to_owned(), |name| format!("`{name}`"));
                let help = "write it like `postgresql://user@host:5432/database` or `host=… user=… \
                            dbname=…`";
                let what = format!("{which} is neither a URI nor a list of `keyword=value`");
                return Err(wrong(what, help));
            };
            let name = name.map_or(place, str::to_owned);
            if seen.contains(&name) {
                let what = format!("two servers are called `{name}`");
                return Err(wrong(what, "name each: `--dsn base:=host=db1 --dsn head:=host=db2`"));
            }
            overrides.push(one(path(&["factors", "server", &name, "postgres.dsn"]), dsn));
            seen.push(name);
        }
        Ok(overrides)
    }

    /// Returns the override with `given` as a message and the store may have it: a DSN in it
    /// without its password.
    fn without_passwords(self) -> Self {
        let mut shown = self.value_in_place();
        if crate::redact::table(&mut shown) { self.respell() } else { self }
    }

    /// Writes `given` anew, without passwords.
    fn respell(mut self) -> Self {
        let mut shown = self.value_in_place();
        crate::redact::table(&mut shown);
        let mut value = toml::Value::Table(shown);
        for key in &self.path {
            if let Some(inner) = value.as_table_mut().and_then(|table| table.remove(key)) {
                value = inner;
            }
        }
        let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let quoted = |key: &String| toml::Value::String(key.clone()).to_string();
        let keys: Vec<String> = self
            .path
            .iter()
            .map(|key| if key.chars().all(bare) { key.clone() } else { quoted(key) })
            .collect();
        self.given = format!("{}={value}", keys.join("."));
        self
    }

    /// The value, in a table of its path.
    fn value_in_place(&self) -> toml::Table {
        let place = |inner: toml::Value, key: &String| {
            toml::Value::Table(toml::Table::from_iter([(key.clone(), inner)]))
        };
        match self.path.iter().rev().fold(self.value.clone(), place) {
            toml::Value::Table(table) => table,
            _ => toml::Table::new(),
        }
    }

    /// Paths on a command line start from the working directory, those in a file from the file's.
    fn with_absolute_paths(mut self) -> Self {
        let keys: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let is_path = matches!(
            &keys[..],
            ["storage", _, "directory"] | [.., "postgres", "bindir"] | [.., "postgres.bindir"]
        );
        let absolute = |value: &mut toml::Value| {
            if let toml::Value::String(path) = value
                && let Ok(absolute) = std::path::absolute(Path::new(path))
            {
                *path = absolute.display().to_string();
            }
        };
        match &mut self.value {
            toml::Value::Array(levels) if is_path => levels.iter_mut().for_each(absolute),
            value if is_path => absolute(value),
            _ => {}
        }
        self
    }

    /// Sets the key in `table`.
    ///
    /// # Errors
    /// A part of the key has a value that is no table.
    pub(super) fn set(&self, table: &mut toml::Table) -> Result<(), FileError> {
        let mut here = table;
        let Some((last, path)) = self.path.split_last() else { return Ok(()) };
        for key in path {
            let next =
                here.entry(key.clone()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            let Some(inner) = next.as_table_mut() else {
                let what = format!("`{key}` is not a table, it has a value of its own");
                return Err(FileError::of_override(&self.given, &what, None));
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

/// The name and the DSN of `NAME:=DSN`. A URI and a list of keywords have no `:=` behind a name.
fn named_dsn(given: &str) -> (Option<&str>, &str) {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || ['_', '-', '.'].contains(&c))
    };
    match given.split_once(":=") {
        Some((name, dsn)) if is_name(name) => (Some(name), dsn),
        _ => (None, given),
    }
}

/// The two sides of the first `=` outside of quotes.
fn split_at_equals(given: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, c) in given.char_indices() {
        match (quote, c) {
            (None, '=') => return Some((&given[..at], &given[at + 1..])),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    None
}

/// The keys of a key with dots, each of which may be quoted as in TOML.
fn path_of(key: &str) -> Vec<String> {
    let Ok(mut table) = toml::from_str::<toml::Table>(&format!("{key} = 0")) else {
        return key.split('.').map(str::to_owned).collect();
    };
    let mut path = Vec::new();
    while let Some((key, value)) = std::mem::take(&mut table).into_iter().next() {
        path.push(key);
        if let toml::Value::Table(inner) = value {
            table = inner;
        }
    }
    path
}
