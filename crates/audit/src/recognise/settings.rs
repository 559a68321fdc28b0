//! Settings of PostgreSQL as configuration files and commands write them.

use serde::{Deserialize, Serialize};

use super::scan::Scan;
use crate::words::Words;

/// A setting that the report shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ReportSetting"))]
pub struct Setting {
    /// Name of the setting.
    pub name: String,
    /// Value without quotes.
    pub value: String,
    /// Where it stands in the file, from 1.
    pub line: usize,
    /// Whether the server showed it; else the report sets it.
    #[serde(skip)]
    pub(crate) is_shown: bool,
}

impl Setting {
    /// Whether it is a boolean's `off`, in any of PostgreSQL's spellings.
    pub(crate) fn is_off(&self) -> bool {
        matches!(self.value.to_ascii_lowercase().as_str(), "off" | "false" | "no" | "0" | "f" | "n")
    }

    /// A time in seconds; a number alone is in seconds, as for `checkpoint_timeout`.
    pub(crate) fn seconds(&self) -> Option<f64> {
        match quantity(&self.value)? {
            (seconds, "") => Some(seconds),
            (milliseconds, "time") => Some(milliseconds / 1e3),
            _ => None,
        }
    }
}

/// Reads a value in bytes, milliseconds or, without a unit, as it is; with the kind of its unit.
pub(crate) fn quantity(value: &str) -> Option<(f64, &'static str)> {
    let digits = value.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
    let (number, unit) = value.split_at(digits);
    let number: f64 = number.parse().ok()?;
    let power = |exponent| Some((number * 1024_f64.powi(exponent), "bytes"));
    match unit.trim() {
        "" => Some((number, "")),
        "ms" => Some((number, "time")),
        "s" => Some((number * 1e3, "time")),
        "min" => Some((number * 6e4, "time")),
        "h" => Some((number * 3.6e6, "time")),
        "d" => Some((number * 8.64e7, "time")),
        unit => match unit.to_ascii_lowercase().as_str() {
            "b" => power(0),
            "k" | "kb" | "kib" => power(1),
            "m" | "mb" | "mib" => power(2),
            "g" | "gb" | "gib" => power(3),
            "t" | "tb" | "tib" => power(4),
            _ => None,
        },
    }
}

/// Names that stand in configuration files; beginnings of them end in `_`.
const NAMES: Words = Words(
    "archive_|autovacuum|backend_flush_after|bgwriter_|bonjour|checkpoint_|client_encoding|\
     cluster_name|commit_|cpu_|data_checksums|data_directory|data_sync_retry|datestyle|\
     deadlock_timeout|debug_|default_|dynamic_|effective_|enable_|event_source|fsync|\
     full_page_writes|geqo|hba_file|hot_standby|huge_page|ident_file|io_|jit|lc_|\
     listen_addresses|log_|logging_collector|logical_|maintenance_|max_|min_|parallel_|\
     password_encryption|port|random_page_cost|recovery_|seq_page_cost|shared_|ssl|stats_|\
     superuser_|synchronous_|tcp_|temp_|timezone|track_|unix_socket_|update_process_title|\
     vacuum_|wal_|work_mem|zero_damaged_pages",
);

/// Settings whose names stand for other things too: a number beside them is no value.
const SWITCHES: Words = Words("fsync|full_page_writes|synchronous_commit");

/// Beginnings of lines that start a server, or hand it options.
const STARTERS: Words = Words(
    "postgres |pg_ctl |postmaster |docker |podman |command:|args:|cmd [|/|-c |\"-c\"|'-c'|[\"|\
     export pgoptions|pgoptions=",
);

/// Finds all: at the beginning of a line, behind a prompt, in lists and options of a command, in
/// what psql prints. Those in prose are not believed here.
pub(super) fn find(scan: &mut Scan<'_>) -> Vec<Setting> {
    let mut found = Vec::new();
    for at in 0..scan.lines.len() {
        let line = &scan.lines[at];
        let mut pairs: Vec<(String, String)> = Vec::new();
        let mut is_shown = !line.cells.is_empty();
        if line.cells.is_empty() {
            let text = without_prompt(bare(&line.text));
            if let Some(pair) = assignment(text).or_else(|| entry(text)) {
                pairs.push(pair);
            } else if let Some(pair) = of_psql(text) {
                pairs.push(pair);
            } else if is_command(text) {
                pairs = options(text);
            } else if let Some(value) = value_below(scan, at) {
                is_shown = true;
                pairs.push((text.to_owned(), value));
            }
        } else {
            pairs.extend(row(scan, at));
        }
        if !pairs.is_empty() {
            scan.read[at] = true;
        }
        found.extend(pairs.into_iter().map(|(name, value)| Setting {
            name,
            value,
            line: line.number,
            is_shown,
        }));
    }
    found
}

/// The line without the marks of a list, of a number in one, and of code.
fn bare(text: &str) -> &str {
    let text = text.trim();
    // `-c name=value` is an option, not an item of a list.
    let item = if text.starts_with("-c") || text.starts_with("--") {
        text
    } else {
        text.trim_start_matches(['-', '*', '•', '$'])
    };
    let item = item.trim_start();
    let digits = item.bytes().take_while(u8::is_ascii_digit).count();
    let numbered =
        (1..=3).contains(&digits).then(|| item[digits..].strip_prefix(['.', ')'])).flatten();
    numbered.unwrap_or(item).trim_start().trim_matches('`')
}

/// The line behind psql's prompt: `postgres=# `, `bench=> `.
fn without_prompt(text: &str) -> &str {
    for prompt in ["=# ", "=> ", "-# ", "-> ", "=*# "] {
        if let Some((database, rest)) = text.split_once(prompt)
            && !database.is_empty()
            && database
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '@' | '.' | ':'))
        {
            return rest.trim_start();
        }
    }
    text
}

/// `psql -c "ALTER SYSTEM SET fsync = off"`.
fn of_psql(text: &str) -> Option<(String, String)> {
    const STATEMENT: &str = "alter system set ";
    let lower = text.to_ascii_lowercase();
    let at = lower.find(STATEMENT).filter(|at| lower[..*at].contains("psql"))?;
    let statement = text[at..].split(['"', ';']).next()?;
    assignment(statement.trim_end_matches('\''))
}

/// Whether the line is a command with options of a server.
fn is_command(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    STARTERS.any_starts(&lower) || text.contains("PGOPTIONS=")
}

/// Settings behind `-c` and `--` of a command, in quotes and commas or not.
fn options(text: &str) -> Vec<(String, String)> {
    let plain: String = text
        .chars()
        .map(|c| if matches!(c, '"' | '\'' | ',' | '[' | ']' | '\\') { ' ' } else { c })
        .collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    let mut found = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let option = match word.strip_prefix("-c").or_else(|| word.strip_prefix("--")) {
            Some("") if *word == "-c" => words.get(i + 1).copied(),
            Some(joined) if joined.contains('=') => Some(joined),
            _ => None,
        };
        // `PGOPTIONS=-c name=value`
        let option =
            option.or_else(|| word.ends_with("=-c").then(|| words.get(i + 1).copied()).flatten());
        found.extend(option.and_then(|option| assignment(&option.replace('-', "_"))));
    }
    found
}

/// An entry of YAML or JSON: `fsync: "off"`, `"fsync": "off",`, `"fsync=off"`.
fn entry(text: &str) -> Option<(String, String)> {
    let text = text.trim_end_matches(',');
    let quoted = text.strip_prefix(['"', '\'']).and_then(|t| t.strip_suffix(['"', '\'']));
    if let Some(pair) = quoted.and_then(assignment) {
        return Some(pair);
    }
    let (name, value) = text.split_once(':')?;
    let name = name.trim().trim_matches(['"', '\'']).to_ascii_lowercase();
    let value = value.split(" #").next()?.trim();
    let inside = value.trim_matches(['"', '\'']);
    let switch = SWITCHES.has(name.as_str()) && inside.starts_with(|c: char| c.is_ascii_digit());
    let word =
        !switch && !inside.is_empty() && !inside.contains(char::is_whitespace) && is_value(inside);
    (is_known(&name) && word).then(|| (name, inside.to_owned()))
}

/// Whether a word may be a setting's value: a boolean, a figure with a unit, one of the names that
/// matter here.
fn is_value(word: &str) -> bool {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let figure = digits > 0 && word.len() - digits <= 3;
    let lower = word.to_ascii_lowercase();
    figure
        || ["on", "off", "true", "false", "yes", "no", "local", "minimal", "replica", "logical"]
            .contains(&lower.as_str())
        || lower.starts_with("remote_")
        || lower.ends_with("sync")
}

/// Returns the value that psql prints below a setting's name: `SHOW fsync`.
fn value_below(scan: &Scan<'_>, at: usize) -> Option<String> {
    let text = |at: usize| scan.lines.get(at).filter(|l| l.cells.is_empty()).map(|l| l.text.trim());
    let rule = text(at + 1)?;
    let value = text(at + 2)?;
    let ruled = rule.len() >= 3 && rule.bytes().all(|b| b == b'-');
    (is_known(text(at)?) && ruled && is_value(value)).then(|| value.to_owned())
}

/// A row of psql or of a table of settings: `fsync | off`.
fn row(scan: &Scan<'_>, at: usize) -> Option<(String, String)> {
    const NAMES: Words = Words("name|parameter|setting|параметр|nastavení|参数");
    const VALUES: Words = Words("setting|value|current_setting|значение|hodnota|wert|值");
    let cells = &scan.lines[at].cells;
    let [name, value, rest @ ..] = cells.as_slice() else { return None };
    let name = name.text.to_ascii_lowercase();
    let switch = SWITCHES.has(name.as_str());
    let lower = value.text.to_ascii_lowercase();
    let boolean = ["on", "off", "local"].contains(&lower.as_str()) || lower.starts_with("remote_");
    if !is_known(&name) || !is_value(&value.text) || (switch && !boolean) {
        return None;
    }
    let of_table = |i: &usize| {
        let line = &scan.lines[*i];
        !line.cells.is_empty()
            || line.text.starts_with(['-', '+'])
                && line.text.bytes().all(|b| matches!(b, b'-' | b'+' | b' '))
    };
    let head = (0..at).rev().take_while(of_table).last();
    let headed = head.is_some_and(|i| match scan.lines[i].cells.as_slice() {
        [a, b, ..] => {
            NAMES.has(a.text.to_lowercase().as_str()) && VALUES.has(b.text.to_lowercase().as_str())
        }
        _ => false,
    });
    // Without a head of its own a row of two cells says what it is by its name and value.
    (headed || rest.is_empty() && switch && head.is_none()).then(|| (name, value.text.clone()))
}

/// `name = value`, `SET name TO value`, `ALTER SYSTEM SET …`, with a comment behind it or not.
fn assignment(text: &str) -> Option<(String, String)> {
    let mut rest = text;
    let mut set = false;
    for word in ["alter system ", "set ", "session ", "local "] {
        if rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)) {
            rest = rest[word.len()..].trim_start();
            set = true;
        }
    }
    let name_end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
    let (name, rest) = rest.split_at(name_end);
    let name = name.to_ascii_lowercase();
    if !is_known(&name) {
        return None;
    }
    let rest = rest.trim_start();
    let to = rest.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("to "));
    let value = match rest.strip_prefix('=') {
        Some(value) => value,
        None if set && to => &rest[3..],
        None => return None,
    };
    let value = value.trim();
    let value = match value.strip_prefix('\'') {
        Some(quoted) => quoted.split('\'').next().unwrap_or_default(),
        None => value.split(['#', ';', '(', '（']).next().unwrap_or_default(),
    };
    let value = value.trim();
    // A sentence that begins with a setting is none.
    (!value.is_empty() && value.split_whitespace().count() <= 3).then(|| (name, value.to_owned()))
}

fn is_known(name: &str) -> bool {
    NAMES.iter().any(|known| {
        name == known
            || known.ends_with('_') && name.starts_with(known)
            || known == "autovacuum" && name.starts_with("autovacuum_")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_read_in_all_their_forms() {
        let of = |text: &str| assignment(text);
        let some = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        assert_eq!(of("shared_buffers = 8096MB     # min 128kB"), some("shared_buffers", "8096MB"));
        assert_eq!(of("log_destination = 'csvlog'  # Valid"), some("log_destination", "csvlog"));
        assert_eq!(of("fsync=off"), some("fsync", "off"));
        assert_eq!(of("SET synchronous_commit TO off;"), some("synchronous_commit", "off"));
        assert_eq!(of("ALTER SYSTEM SET full_page_writes = off;"), some("full_page_writes", "off"));
        assert_eq!(of("commit_siblings = 16 (from before)"), some("commit_siblings", "16"));
        for none in ["#fsync = on", "fsync is off", "set work = 5", "xfs = 5", "fsync", "port 80"] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn settings_of_a_command_are_read_and_a_mention_of_them_is_not() {
        let found = |text: &str| {
            let document = crate::document::Document::read("a.txt", text.as_bytes()).unwrap();
            let settings = crate::recognise::recognise(&document).0.recognised.settings;
            settings.into_iter().map(|s| format!("{}={}", s.name, s.value)).collect::<Vec<_>>()
        };
        assert_eq!(
            found("postgres -D d -c fsync=off -c shared_buffers=8GB"),
            ["fsync=off", "shared_buffers=8GB"]
        );
        assert_eq!(
            found("PGOPTIONS='-c synchronous_commit=off' pgbench -c 8"),
            ["synchronous_commit=off"]
        );
        assert_eq!(
            found("With pgbench -c 8, or with -c fsync=off, tps rises."),
            Vec::<String>::new()
        );
    }

    #[test]
    fn times_have_units() {
        let of = |value: &str| Setting { value: value.into(), ..Setting::default() }.seconds();
        assert_eq!(
            (of("30min"), of("300"), of("5 min"), of("1h")),
            (Some(1800.0), Some(300.0), Some(300.0), Some(3600.0))
        );
        assert_eq!(of("soon"), None);
    }
}
