//! PostgreSQL settings: write them to a file, check them before any load, read them back
//! afterwards.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use pgdyno_connect::control::{Client, ControlError, error_text};
use pgdyno_model::{Advice, FailureKind};
use pgdyno_text::nearest::probable;
use postgres_protocol::escape::escape_literal;
use tokio_postgres::Row;

/// Settings that pgdyno itself needs on a managed server.
pub const RESERVED: &[&str] = &[
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
    "log_destination",
    "logging_collector",
    "port",
    "unix_socket_directories",
    "unix_socket_permissions",
];

/// A setting that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingProblem {
    /// The setting's name.
    pub name: String,
    /// The wanted value.
    pub value: String,
    /// The server's message, or the value that it runs with.
    pub why: String,
    /// How to mend the setting.
    pub help: Option<String>,
}

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The server refuses the settings.
    #[error("{}", lines(.0))]
    Refused(Vec<SettingProblem>),
    /// The server runs with other values than wanted.
    #[error("the server did not take over what was asked: {}", lines(.0))]
    NotObtained(Vec<SettingProblem>),
    /// The server runs without fsync, and no setting asks for that.
    #[error(
        "the server runs with fsync off, and nobody asked for that: it would be measured \
         without durability"
    )]
    FsyncOff,
    /// The server cannot be asked.
    #[error(transparent)]
    Control(#[from] ControlError),
}

impl Advice for SettingsError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Refused(problems) | Self::NotObtained(problems) => {
                let all: Vec<&str> = problems.iter().filter_map(|p| p.help.as_deref()).collect();
                (!all.is_empty()).then(|| all.join("; "))
            }
            Self::FsyncOff => {
                Some("set `fsync = \"off\"` yourself if that is meant, or find what sets it".into())
            }
            Self::Control(e) => e.help(),
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Control(e) => e.kind(),
            _ => FailureKind::Server,
        }
    }
}

fn lines(problems: &[SettingProblem]) -> String {
    let each = |p: &SettingProblem| format!("cannot set {} to `{}`: {}", p.name, p.value, p.why);
    problems.iter().map(each).collect::<Vec<_>>().join("; ")
}

/// Adds `more` to `settings`. Names are compared without regard to case, as in PostgreSQL.
pub(crate) fn overlay(settings: &mut BTreeMap<String, String>, more: &BTreeMap<String, String>) {
    settings.extend(more.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())));
}

/// Returns the text of a settings file, and the line of each setting (from 1).
pub(crate) fn render(settings: &BTreeMap<String, String>) -> (String, BTreeMap<String, i32>) {
    let mut text = String::from("# Written by pgdyno; replaced whole with every treatment.\n");
    let mut at = BTreeMap::new();
    for ((name, value), line) in settings.iter().zip(2..) {
        let _ = writeln!(text, "{name} = {}", quote(value));
        at.insert(name.clone(), line);
    }
    (text, at)
}

/// Quotes `value` for a configuration file.
pub(crate) fn quote(value: &str) -> String {
    let mut text = String::from("'");
    for c in value.chars() {
        match c {
            '\'' => text.push_str("''"),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            c => text.push(c),
        }
    }
    text.push('\'');
    text
}

/// Whether a configuration file can hold `name`.
fn is_name(name: &str) -> bool {
    let part = |p: &str| {
        p.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && p.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
    };
    name.split('.').count() <= 2 && name.split('.').all(part)
}

/// Checks settings without a server. Refuses names that no file can hold, names that pgdyno itself
/// needs on any server, and names in `needed`, which it needs on this one.
///
/// # Errors
/// [`SettingsError::Refused`].
pub fn check_names<'a>(
    names: impl IntoIterator<Item = (&'a str, &'a str)>,
    needed: &[&str],
) -> Result<(), SettingsError> {
    let problems: Vec<SettingProblem> =
        names.into_iter().filter_map(|(name, value)| name_problem(name, value, needed)).collect();
    if problems.is_empty() { Ok(()) } else { Err(SettingsError::Refused(problems)) }
}

/// Returns the problem of a setting that can be seen without a server; none if there is none.
/// `needed` are the settings that pgdyno sets on this server, beside those that it sets on any.
pub(super) fn name_problem(name: &str, value: &str, needed: &[&str]) -> Option<SettingProblem> {
    let is_own = RESERVED.iter().chain(needed).any(|own| own.eq_ignore_ascii_case(name));
    let why = if !is_name(name) {
        "no PostgreSQL setting is named like that"
    } else if is_own {
        "pgdyno sets it itself on a server that it manages"
    } else if value.contains('\0') {
        "a value cannot hold a NUL"
    } else {
        return None;
    };
    Some(SettingProblem { name: name.into(), value: value.into(), why: why.into(), help: None })
}

/// Checks settings on the running server, without effect on it. `needed` as for [`check_names`].
///
/// # Errors
/// [`SettingsError::Refused`]: all refused settings in the server's words, with the nearest names
/// of unknown ones.
pub(crate) fn check(
    client: &mut Client,
    settings: &[(String, String)],
    needed: &[&str],
) -> Result<(), SettingsError> {
    let sql = "SELECT pg_catalog.lower(name), context FROM pg_catalog.pg_settings";
    let contexts: BTreeMap<String, String> = client
        .query(sql, &[])
        .and_then(|rows| rows.iter().map(|r| Ok((r.try_get(0)?, r.try_get(1)?))).collect())
        .map_err(|e| ControlError::query("read pg_settings", &e))?;
    let mut problems = Vec::new();
    for (name, value) in settings {
        let problem = |why: String, help| SettingProblem {
            name: name.clone(),
            value: value.clone(),
            why,
            help,
        };
        if let Some(found) = name_problem(name, value, needed) {
            problems.push(found);
            continue;
        }
        let lower = name.to_ascii_lowercase();
        match contexts.get(&lower).map(String::as_str) {
            // A loadable module's setting is unknown until the module is loaded.
            None if name.contains('.') => {}
            None => {
                let help = did_you_mean(&lower, contexts.keys());
                problems.push(problem("this server has no such setting".into(), help));
            }
            Some("internal") => {
                problems.push(problem("it is fixed when the server is built or made".into(), None));
            }
            Some(_) => {
                if let Err(e) = try_value(client, &lower, value) {
                    let db = e.as_db_error();
                    let why = db.map_or_else(|| error_text(&e), |d| d.message().to_owned());
                    let help = db.and_then(|d| d.hint().or(d.detail())).map(str::to_owned);
                    problems.push(problem(why, help));
                }
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(SettingsError::Refused(problems)) }
}

/// Checks a value with `ALTER SYSTEM SET`, which writes a file that is reset before anybody reads
/// it.
fn try_value(client: &mut Client, name: &str, value: &str) -> Result<(), tokio_postgres::Error> {
    let one = escape_literal(value);
    let set = |client: &mut Client, list: &str| {
        client.batch_execute(&format!("ALTER SYSTEM SET {name} = {list}"))
    };
    let tried = if value.contains(',') {
        // List settings take their elements one by one. The others refuse several arguments.
        let list =
            value.split(',').map(|v| escape_literal(v.trim())).collect::<Vec<_>>().join(", ");
        match set(client, &list) {
            Err(e)
                if e.as_db_error()
                    .is_some_and(|d| d.message().contains("takes only one argument")) =>
            {
                set(client, &one)
            }
            tried => tried,
        }
    } else {
        set(client, &one)
    };
    let reset = client.batch_execute(&format!("ALTER SYSTEM RESET {name}"));
    tried.and(reset)
}

/// Returns the advice to use the setting that `name` was probably meant to be.
pub(super) fn did_you_mean<'a>(
    name: &str,
    known: impl Iterator<Item = &'a String>,
) -> Option<String> {
    let known: Vec<&str> = known.map(String::as_str).collect();
    probable(name, &known).map(|near| format!("did you mean {near}?"))
}

/// The columns of `pg_settings` that matter here.
struct RunningSetting {
    setting: String,
    unit: Option<String>,
    vartype: String,
    source: String,
    from_our_line: Option<i32>,
    pending_restart: bool,
}

impl RunningSetting {
    /// Reads a row of the setting's name and the columns.
    fn from_row(row: &Row) -> Result<(String, Self), tokio_postgres::Error> {
        let setting = Self {
            setting: row.try_get(1)?,
            unit: row.try_get(2)?,
            vartype: row.try_get(3)?,
            source: row.try_get(4)?,
            from_our_line: row.try_get(5)?,
            pending_restart: row.try_get(6)?,
        };
        Ok((row.try_get(0)?, setting))
    }
}

/// Compares the values of a fresh connection with the wanted ones.
///
/// # Errors
/// [`SettingsError::NotObtained`]; [`SettingsError::FsyncOff`] if fsync is off and no setting asks
/// for that.
pub(crate) fn verify(
    client: &mut Client,
    asked: &BTreeMap<String, String>,
    file: &Path,
    lines: &BTreeMap<String, i32>,
) -> Result<(), SettingsError> {
    let failed = |e: tokio_postgres::Error| ControlError::query("read the settings back", &e);
    let file = file.to_string_lossy();
    let rows: BTreeMap<String, RunningSetting> = client
        .query(
            "SELECT pg_catalog.lower(name), setting, unit, vartype, source, \
             CASE WHEN sourcefile = $1 THEN sourceline END, pending_restart \
             FROM pg_catalog.pg_settings",
            &[&file.as_ref()],
        )
        .and_then(|rows| rows.iter().map(RunningSetting::from_row).collect())
        .map_err(failed)?;
    let errors: BTreeMap<i32, String> = client
        .query(
            "SELECT sourceline, error FROM pg_catalog.pg_file_settings \
             WHERE sourcefile = $1 AND error IS NOT NULL AND sourceline IS NOT NULL",
            &[&file.as_ref()],
        )
        .and_then(|rows| rows.iter().map(|r| Ok((r.try_get(0)?, r.try_get(1)?))).collect())
        .map_err(failed)?;
    let mut problems = Vec::new();
    for (name, value) in asked {
        let line = lines.get(name).copied();
        let error = line.and_then(|l| errors.get(&l));
        let why = match rows.get(name) {
            Some(row) => difference(value, row, line, error.map(String::as_str)),
            None => placeholder_difference(client, name, value).map_err(failed)?,
        };
        if let Some(why) = why {
            problems.push(SettingProblem {
                name: name.clone(),
                value: value.clone(),
                why,
                help: None,
            });
        }
    }
    if !problems.is_empty() {
        return Err(SettingsError::NotObtained(problems));
    }
    let off = rows.get("fsync").is_some_and(|r| r.setting == "off");
    if off && !asked.contains_key("fsync") { Err(SettingsError::FsyncOff) } else { Ok(()) }
}

/// Returns why the running value is not the wanted one. None if it is.
fn difference(
    asked: &str,
    row: &RunningSetting,
    line: Option<i32>,
    error: Option<&str>,
) -> Option<String> {
    if let Some(error) = error {
        return Some(format!("the server says of its line in the settings file: {error}"));
    }
    let runs = || {
        format!(
            "it runs with `{}`{}",
            row.setting,
            row.unit.as_deref().map_or(String::new(), unit_note)
        )
    };
    if row.pending_restart {
        return Some(format!("{}, and would change only at a restart", runs()));
    }
    let from_file = line.is_some() && row.from_our_line == line;
    match same_value(asked, &row.setting, row.unit.as_deref(), &row.vartype) {
        Some(true) => None,
        // For some settings -1 and 0 mean an automatic choice, which has another source.
        Some(false) if row.source == "override" && matches!(asked.trim(), "-1" | "0") => None,
        Some(false) => Some(format!("{} (source: {})", runs(), row.source)),
        // The value is spelt differently. The server read it from our own line and did not object.
        None if from_file => None,
        None => Some(format!("{} (source: {})", runs(), row.source)),
    }
}

fn unit_note(unit: &str) -> String {
    format!(" in units of {unit}")
}

fn placeholder_difference(
    client: &mut Client,
    name: &str,
    value: &str,
) -> Result<Option<String>, tokio_postgres::Error> {
    let row = client.query_one("SELECT pg_catalog.current_setting($1, true)", &[&name])?;
    Ok(match row.try_get::<_, Option<String>>(0)? {
        Some(runs) if runs == value => None,
        Some(runs) => Some(format!("it runs with `{runs}`")),
        None => Some("this server has no such setting".into()),
    })
}

/// Whether two texts may be one value to a server, which knows: numbers with different units, or
/// two words for yes or no.
pub fn may_be_one_value(a: &str, b: &str) -> bool {
    let unit = |text: &str| {
        let is_number = |c: char| c.is_ascii_digit() || "+-. ".contains(c);
        let unit = text.trim_start_matches(is_number);
        (unit.len() < text.len()).then(|| unit.to_owned())
    };
    let are_numbers = unit(a).zip(unit(b)).is_some_and(|(a, b)| a != b);
    a != b && (are_numbers || boolean(a).is_some_and(|a| boolean(b) == Some(a)))
}

/// Whether `asked` and `setting` are equal. None if only the server knows.
pub(super) fn same_value(
    asked: &str,
    setting: &str,
    unit: Option<&str>,
    vartype: &str,
) -> Option<bool> {
    if asked == setting {
        return Some(true);
    }
    match vartype {
        "bool" => Some(boolean(asked)? == boolean(setting)?),
        "enum" if asked.eq_ignore_ascii_case(setting) => Some(true),
        "integer" | "real" => {
            let (asked, running) = (number(asked, unit)?, setting.parse::<f64>().ok()?);
            let tolerance =
                if vartype == "integer" { 0.500_001 } else { running.abs() * 1e-5 + f64::EPSILON };
            Some((asked - running).abs() <= tolerance)
        }
        _ => None,
    }
}

fn boolean(text: &str) -> Option<bool> {
    let text = text.trim().to_ascii_lowercase();
    let begins = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    if begins("true", 1) || begins("yes", 1) || text == "on" || text == "1" {
        Some(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || text == "0" {
        Some(false)
    } else {
        None
    }
}

/// Converts `asked` to `unit`, as PostgreSQL does. None if it cannot be parsed.
fn number(asked: &str, unit: Option<&str>) -> Option<f64> {
    let asked = asked.trim();
    let split = asked
        .find(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E'))
        .unwrap_or(asked.len());
    let value: f64 = asked[..split].trim().parse().ok()?;
    let given = asked[split..].trim();
    if given.is_empty() {
        return Some(value);
    }
    let unit = unit?;
    let digits = unit.find(|c: char| !c.is_ascii_digit()).unwrap_or(unit.len());
    let multiple: f64 = if digits == 0 { 1.0 } else { unit[..digits].parse().ok()? };
    let (from, to) = (scale(given)?, scale(&unit[digits..])?);
    (from.0 == to.0).then(|| value * from.1 / (to.1 * multiple))
}

/// Returns a unit's kind, and its size in bytes or microseconds.
fn scale(unit: &str) -> Option<(char, f64)> {
    Some(match unit {
        "B" => ('b', 1.0),
        "kB" => ('b', 1024.0),
        "MB" => ('b', 1024.0 * 1024.0),
        "GB" => ('b', 1024.0 * 1024.0 * 1024.0),
        "TB" => ('b', 1024.0 * 1024.0 * 1024.0 * 1024.0),
        "us" => ('t', 1.0),
        "ms" => ('t', 1e3),
        "s" => ('t', 1e6),
        "min" => ('t', 60e6),
        "h" => ('t', 3600e6),
        "d" => ('t', 86400e6),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_spelt_so_that_the_server_reads_them_back() {
        assert_eq!(quote(r"it's a \ path"), r"'it''s a \\ path'");
        assert_eq!(quote("a\nb"), r"'a\nb'");
        let (text, lines) =
            render(&BTreeMap::from([("b".into(), "2".into()), ("a".into(), "1".into())]));
        assert_eq!(text.lines().nth(usize::try_from(lines["b"]).unwrap() - 1), Some("b = '2'"));
    }

    #[test]
    fn equal_values_are_known_in_other_spellings() {
        let same = |asked, setting, unit, vartype| same_value(asked, setting, unit, vartype);
        assert_eq!(same("1GB", "131072", Some("8kB"), "integer"), Some(true));
        assert_eq!(same("1GB", "131073", Some("8kB"), "integer"), Some(false));
        assert_eq!(same("5min", "300", Some("s"), "integer"), Some(true));
        assert_eq!(same("1.5 GB", "1536", Some("MB"), "integer"), Some(true));
        assert_eq!(same("10", "10000", Some("us"), "integer"), Some(false));
        assert_eq!(same("0.90", "0.9", None, "real"), Some(true));
        assert_eq!(same("TRUE", "on", None, "bool"), Some(true));
        assert_eq!(same("of", "on", None, "bool"), Some(false));
        assert_eq!(same("Remote_Apply", "remote_apply", None, "enum"), Some(true));
        assert_eq!(same("true", "on", None, "enum"), None);
        assert_eq!(same("5 parsecs", "5", Some("s"), "integer"), None);
    }

    #[test]
    fn only_a_server_knows_whether_numbers_with_different_units_are_one() {
        for (a, b, may) in [
            ("1GB", "1024", true),
            ("1GB", "1024MB", true),
            ("60s", "1 min", true),
            ("on", "yes", true),
            ("true", "t", true),
            ("1GB", "2GB", false),
            ("1024", "2048", false),
            ("on", "off", false),
            ("replica", "logical", false),
            ("1GB", "1GB", false),
        ] {
            assert_eq!(may_be_one_value(a, b), may, "{a} {b}");
        }
    }

    #[test]
    fn pgdynos_own_settings_and_impossible_names_are_refused_without_a_server() {
        let error = check_names(
            [("PORT", "1"), ("work_mem", "4MB"), ("a b", "1"), ("SSL", "off")],
            &["ssl"],
        )
        .unwrap_err();
        let SettingsError::Refused(problems) = error else { panic!("{error}") };
        assert_eq!(
            problems.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(),
            ["PORT", "a b", "SSL"]
        );
    }
}
