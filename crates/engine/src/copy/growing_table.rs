//! Tables that scripts fill while a load runs.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::RowWriter;

/// A table that `\copyfrom` adds rows to, shared by all clients of a load.
///
/// Each COPY takes the next numbers, so that no two rows of the table have the same one. Numbers
/// that a failed COPY took are not used again.
#[derive(Debug)]
pub struct GrowingTable {
    name: String,
    statement: String,
    writer: RowWriter,
    /// Number of the last row that was taken.
    last: AtomicU64,
    /// Highest number that the columns hold.
    highest: u64,
}

impl GrowingTable {
    /// Describes table `name`, as scripts write it, whose rows have been numbered up to `last`.
    ///
    /// `statement` is its `COPY … FROM STDIN` in binary format. `writer` was made for `highest`
    /// rows.
    pub fn new(
        name: impl Into<String>,
        statement: impl Into<String>,
        writer: RowWriter,
        last: u64,
        highest: u64,
    ) -> Self {
        let (name, statement) = (name.into(), statement.into());
        Self { name, statement, writer, last: AtomicU64::new(last), highest }
    }

    /// Returns the name that scripts write.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its `COPY … FROM STDIN`.
    pub fn statement(&self) -> &str {
        &self.statement
    }

    /// Returns what writes its rows.
    pub fn writer(&self) -> &RowWriter {
        &self.writer
    }

    /// Returns the number of the last row that was taken.
    pub fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    /// Takes the next `count` numbers; none if the columns do not hold them.
    pub fn take(&self, count: u64) -> Option<Range<u64>> {
        let after = |last: u64| last.checked_add(count).filter(|end| *end <= self.highest);
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).ok()?;
        Some(last + 1..last + count + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::{ColumnKind, Generator};

    #[test]
    fn numbers_are_taken_once_and_only_while_there_are_some() {
        let columns = [("id", Generator::ROW_NUMBER, ColumnKind::Int2)];
        let writer = RowWriter::new(1, "t", 10, &columns).unwrap();
        let table = GrowingTable::new("t", "COPY t (id) FROM STDIN", writer, 3, 10);
        assert_eq!(table.take(4), Some(4..8));
        assert_eq!(table.take(0), Some(8..8));
        assert_eq!(table.take(4), None);
        assert_eq!(table.take(u64::MAX), None);
        assert_eq!(table.take(3), Some(8..11));
        assert_eq!((table.take(1), table.last()), (None, 10));
    }
}
