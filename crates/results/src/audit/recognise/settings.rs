//! Settings of PostgreSQL as configuration files and commands write them.

use serde::{Deserialize, Serialize};

use super::Scan;

/// A setting that the report shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value, without quotes.
    pub value: String,
    /// Where it stands in the file, from 1.
    pub line: usize,
}

impl Setting {
    /// Whether it is a boolean's `off`, in any of PostgreSQL's spellings.
    pub(crate) fn is_off(&self) -> bool {
        matches!(self.value.to_ascii_lowercase().as_str(), "off" | "false" | "no" | "0" | "f" | "n")
    }

    /// A time in seconds; a number alone is in seconds, as for `checkpoint_timeout`.
    pub(crate) fn seconds(&self) -> Option<f64> {
        let digits = self.value.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let (number, unit) = self.value.split_at(digits);
        let each = match unit.trim() {
            "" | "s" => 1.0,
            "ms" => 0.001,
            "min" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return None,
        };
        number.parse::<f64>().ok().map(|n| n * each)
    }
}

/// Names that stand in configuration files; beginnings of them end in `_`.
const NAMES: &[&str] = &[
    "archive_",
    "autovacuum",
    "backend_flush_after",
    "bgwriter_",
    "bonjour",
    "checkpoint_",
    "client_encoding",
    "cluster_name",
    "commit_",
    "cpu_",
    "data_checksums",
    "data_directory",
    "data_sync_retry",
    "datestyle",
    "deadlock_timeout",
    "debug_",
    "default_",
    "dynamic_",
    "effective_",
    "enable_",
    "event_source",
    "fsync",
    "full_page_writes",
    "geqo",
    "hba_file",
    "hot_standby",
    "huge_page",
    "ident_file",
    "io_",
    "jit",
    "lc_",
    "listen_addresses",
    "log_",
    "logging_collector",
    "logical_",
    "maintenance_",
    "max_",
    "min_",
    "parallel_",
    "password_encryption",
    "port",
    "random_page_cost",
    "recovery_",
    "seq_page_cost",
    "shared_",
    "ssl",
    "stats_",
    "superuser_",
    "synchronous_",
    "tcp_",
    "temp_",
    "timezone",
    "track_",
    "unix_socket_",
    "update_process_title",
    "vacuum_",
    "wal_",
    "work_mem",
    "zero_damaged_pages",
];

/// What begins a command that starts a server.
const STARTERS: &[&str] = &["postgres ", "pg_ctl ", "postmaster ", "docker ", "/"];

/// Finds all that stand at the beginning of a line, or behind `-c` or `SET`. Those in prose are not believed.
pub(super) fn find(scan: &mut Scan<'_>) -> Vec<Setting> {
    let mut found = Vec::new();
    for (at, line) in scan.lines.iter().enumerate() {
        let text = line.text.trim().trim_start_matches(['-', '*', '•', '$']).trim_start();
        let before = found.len();
        if let Some((name, value)) = assignment(text) {
            found.push(Setting { name, value, line: line.number });
        } else if STARTERS.iter().any(|starter| text.starts_with(starter)) || text.contains("PGOPTIONS") {
            for part in text.split("-c ").skip(1) {
                let word = part.split_whitespace().next().unwrap_or_default();
                if let Some((name, value)) = assignment(word.trim_end_matches(['"', '\''])) {
                    found.push(Setting { name, value, line: line.number });
                }
            }
        }
        if found.len() > before {
            scan.read[at] = true;
        }
    }
    found
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
    if !known(&name) {
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

fn known(name: &str) -> bool {
    NAMES.iter().any(|known| {
        name == *known
            || known.ends_with('_') && name.starts_with(known)
            || *known == "autovacuum" && name.starts_with("autovacuum_")
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
            let document = crate::audit::document::Document::read("a.txt", text.as_bytes()).unwrap();
            let settings = super::super::recognise(&document).0.recognised.settings;
            settings.into_iter().map(|s| format!("{}={}", s.name, s.value)).collect::<Vec<_>>()
        };
        assert_eq!(
            found("postgres -D d -c fsync=off -c shared_buffers=8GB"),
            ["fsync=off", "shared_buffers=8GB"]
        );
        assert_eq!(found("PGOPTIONS='-c synchronous_commit=off' pgbench -c 8"), ["synchronous_commit=off"]);
        assert_eq!(found("With pgbench -c 8, or with -c fsync=off, tps rises."), Vec::<String>::new());
    }

    #[test]
    fn times_have_units() {
        let of = |value: &str| Setting { name: String::new(), value: value.into(), line: 1 }.seconds();
        assert_eq!(
            (of("30min"), of("300"), of("5 min"), of("1h")),
            (Some(1800.0), Some(300.0), Some(300.0), Some(3600.0))
        );
        assert_eq!(of("soon"), None);
    }
}
