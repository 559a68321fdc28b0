//! Progress lines while rows are sent.

use std::io::Write;
use std::time::{Duration, Instant};

use super::filling::Filling;
use crate::request::Initialize;

/// Rows between two progress lines.
const ROWS_PER_LINE: u64 = 100_000;
/// Time between progress lines with `--quiet`.
const QUIET: Duration = Duration::from_secs(5);

/// Progress lines of one table. Only accounts have any.
pub(super) struct Lines<'a> {
    began: Instant,
    rows: u64,
    table: &'a str,
    what: &'a Initialize,
    /// The longest line so far, where each stands in the place of the one before.
    longest: usize,
    next: Duration,
}

impl<'a> Lines<'a> {
    pub(super) fn new(what: &'a Initialize, filling: &Filling) -> Self {
        let (table, rows) = (filling.table, filling.rows(what.scale));
        Self { began: Instant::now(), rows, table, what, longest: 0, next: QUIET }
    }

    /// Writes the line after row number `done`, if one is due.
    pub(super) fn write(&mut self, done: u64, err: &mut dyn Write) {
        if self.table == "pgbench_accounts"
            && let Some(line) = self.after(done)
        {
            let _ = err.write_all(line.as_bytes());
        }
    }

    /// The line to be shown after row number `done`, if one is due.
    fn after(&mut self, done: u64) -> Option<String> {
        let elapsed = self.began.elapsed();
        let due =
            if self.what.quiet { elapsed >= self.next } else { done.is_multiple_of(ROWS_PER_LINE) };
        if !due && done != self.rows {
            return None;
        }
        while self.next <= elapsed {
            self.next += QUIET;
        }
        let elapsed = elapsed.as_secs_f64();
        let remaining = elapsed * (self.rows - done) as f64 / done as f64;
        let percent = done * 100 / self.rows;
        let of_table = match self.what.dialect.names_table_in_progress() {
            true => format!(" of {}", self.table),
            false => String::new(),
        };
        let line = format!(
            "{done} of {} tuples ({percent}%){of_table} done (elapsed {elapsed:.2} s, remaining \
             {remaining:.2} s)",
            self.rows
        );
        if !self.what.on_terminal {
            return Some(line + "\n");
        }
        self.longest = self.longest.max(line.len());
        Some(format!("{line:width$}\r", width = self.longest))
    }

    /// Clears the last line on a terminal, so that another can stand in its place.
    pub(super) fn clear(&mut self, err: &mut dyn Write) {
        if self.longest > 0 {
            let _ = write!(err, "{:width$}\r", "", width = self.longest);
            self.longest = 0;
        }
    }
}
