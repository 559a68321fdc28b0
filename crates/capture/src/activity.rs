//! Activity of a database in a stretch of time: the difference between two looks at its statistics.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counts of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatementCounts {
    /// Calls (count).
    pub calls: u64,
    /// Rows that all calls returned or changed (count).
    pub rows: u64,
    /// Execution time of all calls (ms).
    pub time_ms: f64,
    /// Blocks that were found in shared buffers (count).
    pub blocks_hit: u64,
    /// Blocks that were read (count).
    pub blocks_read: u64,
    /// WAL (bytes).
    pub wal_bytes: u64,
}

impl StatementCounts {
    /// Returns the counts since `earlier`. Counts that were reset meanwhile begin at 0.
    pub(crate) fn since(self, earlier: Self) -> Self {
        if self.calls < earlier.calls {
            return self;
        }
        Self {
            calls: self.calls - earlier.calls,
            rows: self.rows.saturating_sub(earlier.rows),
            time_ms: (self.time_ms - earlier.time_ms).max(0.0),
            blocks_hit: self.blocks_hit.saturating_sub(earlier.blocks_hit),
            blocks_read: self.blocks_read.saturating_sub(earlier.blocks_read),
            wal_bytes: self.wal_bytes.saturating_sub(earlier.wal_bytes),
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            rows: self.rows + other.rows,
            time_ms: self.time_ms + other.time_ms,
            blocks_hit: self.blocks_hit + other.blocks_hit,
            blocks_read: self.blocks_read + other.blocks_read,
            wal_bytes: self.wal_bytes + other.wal_bytes,
        }
    }

    /// Returns the rows of a call; 0 without calls.
    pub fn rows_per_call(&self) -> f64 {
        self.rows as f64 / (self.calls as f64).max(1.0)
    }
}

/// Counts of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatabaseCounts {
    /// Transactions that were committed (count).
    pub commits: u64,
    /// Transactions that were rolled back (count).
    pub rollbacks: u64,
    /// Rows that were updated in the schema's tables (count).
    pub updates: u64,
    /// Of those, rows whose indexes needed no new entry (HOT; count).
    pub hot_updates: u64,
}

impl DatabaseCounts {
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            commits: self.commits.saturating_sub(earlier.commits),
            rollbacks: self.rollbacks.saturating_sub(earlier.rollbacks),
            updates: self.updates.saturating_sub(earlier.updates),
            hot_updates: self.hot_updates.saturating_sub(earlier.hot_updates),
        }
    }

    /// Returns the share of updated rows that were HOT (0 to 1); none without updates.
    pub fn hot_share(&self) -> Option<f64> {
        (self.updates > 0).then(|| self.hot_updates as f64 / self.updates as f64)
    }
}

/// Sessions of the database, as they were seen at work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sessions {
    /// Looks (count).
    pub looks: u64,
    /// Sessions that were connected, on average (count).
    pub connected: f64,
    /// Active sessions by what they waited for, on average (count): `Lock:transactionid`, or
    /// `running`.
    pub waits: BTreeMap<String, f64>,
}

/// Counts that one look at a server's statistics found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// Statements by `queryid`, with their text; none where the role may not see it.
    pub(crate) statements: BTreeMap<String, (Option<String>, StatementCounts)>,
    pub(crate) database: DatabaseCounts,
    /// Statements that the server forgot to make room (count of times).
    pub(crate) forgotten: u64,
    /// Time since the statistics of statements were reset (s).
    pub(crate) age_s: Option<f64>,
}

/// Statement that ran in the stretch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ActiveStatement {
    pub(crate) text: Option<String>,
    pub(crate) counts: StatementCounts,
}

/// Activity of a database.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    /// Length of the stretch (s).
    pub(crate) seconds: f64,
    /// Statements that ran, those with the most time first.
    pub(crate) statements: Vec<ActiveStatement>,
    pub(crate) database: DatabaseCounts,
    pub(crate) sessions: Sessions,
    /// Times that the server forgot statements (count).
    pub(crate) forgotten: u64,
}

impl Activity {
    /// Returns the activity of `seconds` between two looks.
    pub(crate) fn between(
        earlier: &Snapshot,
        later: Snapshot,
        seconds: f64,
        sessions: Sessions,
    ) -> Self {
        let mut statements: Vec<ActiveStatement> = Vec::new();
        for (id, (text, counts)) in later.statements {
            let before = earlier.statements.get(&id).map(|(_, counts)| *counts);
            let counts = counts.since(before.unwrap_or_default());
            if counts.calls > 0 {
                statements.push(ActiveStatement { text, counts });
            }
        }
        statements.sort_by(|a, b| b.counts.time_ms.total_cmp(&a.counts.time_ms));
        Self {
            seconds,
            statements,
            database: later.database.since(earlier.database),
            sessions,
            forgotten: later.forgotten.saturating_sub(earlier.forgotten),
        }
    }

    /// Returns the counts of all statements together.
    pub(crate) fn total(&self) -> StatementCounts {
        let all = self.statements.iter().map(|statement| statement.counts);
        all.fold(StatementCounts::default(), StatementCounts::plus)
    }

    /// Returns how many transaction blocks were committed, as statements tell it (count).
    pub(crate) fn blocks(&self) -> u64 {
        let is_end = |text: &str| {
            let word = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
            let is_prepared = text.to_ascii_lowercase().contains("prepared");
            (word.eq_ignore_ascii_case("commit") || word.eq_ignore_ascii_case("end"))
                && !is_prepared
        };
        let ends = self.statements.iter().filter(|s| s.text.as_deref().is_some_and(is_end));
        ends.map(|statement| statement.counts.calls).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(entries: &[(&str, &str, u64)]) -> Snapshot {
        let counts = |calls| StatementCounts { calls, time_ms: calls as f64, ..Default::default() };
        let entries = entries.iter().map(|(id, text, calls)| {
            ((*id).to_owned(), (Some((*text).to_owned()), counts(*calls)))
        });
        Snapshot { statements: entries.collect(), ..Snapshot::default() }
    }

    #[test]
    fn only_what_ran_between_two_looks_counts() {
        let earlier = snapshot(&[("1", "SELECT 1", 10), ("2", "SELECT 2", 5), ("3", "END", 9)]);
        let later = snapshot(&[
            ("1", "SELECT 1", 10),
            // Reset meanwhile.
            ("2", "SELECT 2", 3),
            ("3", "END", 10),
            ("4", "commit prepared 'a'", 7),
        ]);
        let activity = Activity::between(&earlier, later, 1.0, Sessions::default());
        let found =
            activity.statements.iter().map(|s| (s.text.as_deref().unwrap(), s.counts.calls));
        let expected = [("commit prepared 'a'", 7), ("SELECT 2", 3), ("END", 1)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!((activity.blocks(), activity.total().calls), (1, 11));
    }
}
