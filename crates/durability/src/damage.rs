//! Signs of damage: SQLSTATEs that a server answers with, and lines of its log.
//!
//! Anything outside these lists is no finding: an error that pgdyno does not know leaves the round
//! *unknown*.

/// SQLSTATEs with which a server refuses data that was durable before the fault, each with the
/// reason.
///
/// The codes are PostgreSQL's (documentation, Appendix A, "PostgreSQL Error Codes"). Where the
/// server derives a code from an errno, by `errcode_for_file_access()`
/// (src/backend/utils/error/elog.c), the reason names the errno.
const DAMAGE: &[(&str, &str)] = &[
    ("58030", "io_error: the system gave EIO for a file"),
    ("58P01", "undefined_file: the system gave ENOENT for a file that the catalogs name"),
    // A superuser is refused no object. What is left is the system's EACCES, EPERM or EROFS for a
    // file.
    ("42501", "insufficient_privilege: the system forbids a file to the server itself"),
    // Database, role and tables were made before the baseline was made durable, and nothing drops
    // them.
    ("3D000", "invalid_catalog_name: the database is gone"),
    ("28000", "invalid_authorization_specification: the superuser, or what lets it in, is gone"),
    ("42P01", "undefined_table: a table is gone"),
];

/// SQLSTATEs with which a server that is otherwise well refuses to write.
const NO_WRITES: &[(&str, &str)] = &[
    ("25006", "read_only_sql_transaction: transactions are read-only, or recovery never ended"),
    ("55000", "object_not_in_prerequisite_state: as assigning a transaction id in recovery"),
    ("54000", "program_limit_exceeded: as in refusing transaction ids for fear of wraparound"),
];

/// Whether an error with `sqlstate` shows that durable data is damaged or gone. All of class XX
/// does: *data_corrupted*, *index_corrupted*, and *internal_error*, which stands for states that
/// must never occur.
pub fn is_damage(sqlstate: &str) -> bool {
    sqlstate.starts_with("XX") || DAMAGE.iter().any(|(code, _)| *code == sqlstate)
}

/// Whether a write that failed with `sqlstate` shows that the server takes no writes.
pub fn refuses_writes(sqlstate: &str) -> bool {
    is_damage(sqlstate) || NO_WRITES.iter().any(|(code, _)| *code == sqlstate)
}

/// Words of a log line that show damage at any severity.
const SIGNS: &[&str] = &[
    "PANIC:",
    "invalid page in block",
    "page verification failed",
    "could not read",
    "could not access status of transaction",
    // "page N of relation R is uninitialized", from a redo that found zeros.
    "is uninitialized",
    // "xlog flush request X is not satisfied": a page is newer than all WAL, which was lost.
    "is not satisfied",
    "missing chunk number",
];

/// Words that show damage in a line of a [`GRAVE`] severity. In other lines good servers use them
/// too: `LOG:  could not open statistics file`.
const GRAVE_SIGNS: &[&str] =
    &["could not open file", "could not access file", "could not fsync file"];

/// Severities of lines in which the server gives something up.
const GRAVE: &[&str] = &["ERROR:", "FATAL:"];

/// Returns the lines of a server's log, in English, that show damage.
pub fn damage_in(log: &str) -> Vec<String> {
    log.lines().filter(|line| tells_of_damage(line)).map(|line| line.trim().to_owned()).collect()
}

fn tells_of_damage(line: &str) -> bool {
    let has = |signs: &[&str]| signs.iter().any(|sign| line.contains(sign));
    // A failed assertion is written past the log's own format.
    has(SIGNS) || line.starts_with("TRAP:") || (has(GRAVE) && has(GRAVE_SIGNS)) || is_crash(line)
}

/// Whether the line reports a process of the server that a signal ended, other than signal 9.
/// pgdyno sends that one, and so does the kernel when memory runs out.
fn is_crash(line: &str) -> bool {
    let signal = line.split_once("was terminated by signal ").map(|(_, rest)| rest);
    signal.is_some_and(|rest| rest.split(|c: char| !c.is_ascii_digit()).next() != Some("9"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_a_list_and_everything_else_is_not_on_it() {
        for code in
            ["XX000", "XX001", "XX002", "58030", "58P01", "42501", "3D000", "28000", "42P01"]
        {
            assert!(is_damage(code) && refuses_writes(code), "{code}");
        }
        // A cancelled query, a lock that was not to be had, no room, no memory, a lost connection,
        // too many of them, a function that this version lacks, a deadlock, a division by zero.
        for code in [
            "57014", "55P03", "53100", "53200", "08006", "53300", "57P01", "57P03", "42883",
            "40P01", "22012",
        ] {
            assert!(!is_damage(code) && !refuses_writes(code), "{code}");
        }
        for code in ["25006", "55000", "54000"] {
            assert!(!is_damage(code) && refuses_writes(code), "{code}");
        }
    }

    #[test]
    fn lines_of_damage_are_told_from_those_of_every_recovery() {
        let bad = [
            "2026-11-22 10:00:00 UTC [7] PANIC:  could not locate a valid checkpoint record",
            "2026-11-22 10:00:00 UTC [7] LOG:  server process (PID 9) was terminated by signal 11: \
             Segmentation fault",
            "2026-11-22 10:00:00 UTC [7] LOG:  startup process (PID 9) was terminated by \
             signal 6: Aborted",
            "TRAP: failed Assert(\"false\"), File: \"xlog.c\", Line: 1",
            "2026-11-22 10:00:00 UTC [7] ERROR:  xlog flush request 0/5 is not satisfied --- \
             flushed only to 0/3",
            "2026-11-22 10:00:00 UTC [7] WARNING:  page 5 of relation base/5/16384 \
             is uninitialized",
            "2026-11-22 10:00:00 UTC [7] ERROR:  invalid page in block 7 of relation base/5/16384",
            "2026-11-22 10:00:00 UTC [7] ERROR:  could not open file \"base/5/16384\": No such \
             file or directory",
            "2026-11-22 10:00:00 UTC [7] ERROR:  could not read block 3 in file \"base/5/1\": \
             Input/output error",
        ];
        let good = [
            "2026-11-22 10:00:00 UTC [7] LOG:  database system was not properly shut down; \
             automatic recovery in progress",
            "2026-11-22 10:00:00 UTC [7] LOG:  invalid record length at 0/19E3C48: \
             wanted 24, got 0",
            "2026-11-22 10:00:00 UTC [7] LOG:  redo done at 0/19E3C10 system usage: \
             CPU: user: 0.00 s",
            "2026-11-22 10:00:00 UTC [7] LOG:  server process (PID 9) was terminated by \
             signal 9: Killed",
            "2026-11-22 10:00:00 UTC [7] LOG:  could not open file \"pg_stat/x\": No such \
             file or directory",
            "2026-11-22 10:00:00 UTC [7] LOG:  could not receive data from client: \
             Connection reset by peer",
            "2026-11-22 10:00:00 UTC [7] FATAL:  the database system is starting up",
        ];
        assert_eq!(damage_in(&bad.join("\n")).len(), bad.len());
        assert_eq!(damage_in(&good.join("\n")), Vec::<String>::new());
    }
}
