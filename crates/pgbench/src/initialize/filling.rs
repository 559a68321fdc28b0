//! Steps `g` and `G`: rows of the tables, sent by COPY or made by the server.

use std::io::Write;
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use postgres_protocol::escape::escape_literal;

use super::Work;
use super::progress::Lines;
use crate::server_messages::failed;
use crate::tables::Names;
use crate::usage_error::{Stopped, UsageError};

/// Rows for one unit of scale.
pub(super) const ACCOUNTS: u64 = 100_000;
const TELLERS: u64 = 10;
/// Rows between two looks at the stop flag; also one write to the COPY stream.
const ROWS_PER_CHUNK: u64 = 1000;

/// The tables that rows fill. The filler of accounts is blanks: the server pads the empty string.
pub(super) const FILLED: [Filling; 3] = [
    Filling {
        table: "pgbench_branches",
        key: "bid",
        columns: "bid, bbalance",
        rows_per_scale: 1,
        values: "n, 0",
        write: |row, chunk| writeln!(chunk, "{row}\t0"),
    },
    Filling {
        table: "pgbench_tellers",
        key: "tid",
        columns: "tid, bid, tbalance",
        rows_per_scale: TELLERS,
        values: "n, (n - 1) / 10 + 1, 0",
        write: |row, chunk| writeln!(chunk, "{row}\t{}\t0", (row - 1) / TELLERS + 1),
    },
    Filling {
        table: "pgbench_accounts",
        key: "aid",
        columns: "aid, bid, abalance, filler",
        rows_per_scale: ACCOUNTS,
        values: "n, (n - 1) / 100000 + 1, 0, ''",
        write: |row, chunk| writeln!(chunk, "{row}\t{}\t0\t", (row - 1) / ACCOUNTS + 1),
    },
];

/// How a table is filled.
pub(super) struct Filling {
    pub(super) table: &'static str,
    /// The column that numbers the rows from 1 on.
    pub(super) key: &'static str,
    columns: &'static str,
    rows_per_scale: u64,
    /// The columns of row `n`, in SQL.
    values: &'static str,
    /// Writes a row in COPY's text format.
    write: fn(u64, &mut Vec<u8>) -> std::io::Result<()>,
}

impl Filling {
    /// Returns the table's rows at `scale` (count).
    pub(super) fn rows(&self, scale: u32) -> u64 {
        u64::from(scale) * self.rows_per_scale
    }

    /// Returns the COPY into the table, which SQL spells `name`.
    pub(super) fn copy_into(&self, name: &str) -> String {
        format!("copy {name} ({}) from stdin", self.columns)
    }
}

impl Work<'_> {
    pub(super) fn generate_here(&mut self) -> Result<&'static str, Stopped> {
        self.say("generating data (client-side)...");
        match self.what.batch_size {
            Some(size) => self.fill_in_batches(size)?,
            None => self.fill_at_once()?,
        }
        Ok("client-side generate")
    }

    fn fill_at_once(&mut self) -> Result<(), Stopped> {
        let names = self.begin_filling()?;
        for filling in &FILLED {
            let name = names.spelled(filling.table);
            // Frozen rows need no second write later. Partitioned tables do not take them.
            let freezes = self.server >= 140_000 && self.is_plain(&name)?;
            let freeze = if freezes { " with (freeze on)" } else { "" };
            let statement = filling.copy_into(&name) + freeze;
            let mut lines = Lines::new(self.what, filling);
            let copied =
                self.copy(filling, 1..=filling.rows(self.what.scale), &statement, &mut lines);
            lines.clear(self.err);
            copied?;
        }
        Ok(self.commit()?)
    }

    /// Everything is filled in one transaction, from empty.
    fn begin_filling(&mut self) -> Result<Names, UsageError> {
        let names = self.names()?;
        self.client.begin().map_err(|e| failed(&e, "begin"))?;
        self.execute(&format!("truncate table {}", names.all()))?;
        Ok(names)
    }

    pub(super) fn commit(&mut self) -> Result<(), UsageError> {
        self.client.commit().map_err(|e| failed(&e, "commit"))
    }

    /// Sends `rows` by the COPY `statement`.
    pub(super) fn copy(
        &mut self,
        filling: &Filling,
        rows: RangeInclusive<u64>,
        statement: &str,
        lines: &mut Lines<'_>,
    ) -> Result<(), Stopped> {
        let Filling { table, write, .. } = *filling;
        let mut copy = self.client.copy_in(statement).map_err(|e| failed(&e, statement))?;
        let mut chunk = Vec::with_capacity(1 << 16);
        let (mut row, end) = rows.into_inner();
        while row <= end {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Stopped::Interrupted);
            }
            chunk.clear();
            // Chunks end at round numbers, where progress lines are due, wherever they begin.
            let last = row.next_multiple_of(ROWS_PER_CHUNK).min(end);
            for row in row..=last {
                // Writing to a Vec cannot fail.
                let _ = write(row, &mut chunk);
            }
            row = last + 1;
            copy.write_all(&chunk)
                .map_err(|e| UsageError::new(format!("could not write rows to {table}: {e}")))?;
            lines.write(last, self.err);
        }
        copy.finish().map_err(|e| failed(&e, statement))?;
        Ok(())
    }

    /// Whether `name` is a table that is not partitioned.
    fn is_plain(&mut self, name: &str) -> Result<bool, UsageError> {
        let name = escape_literal(name);
        let query = format!(
            "select relkind::text = 'r' from pg_catalog.pg_class where oid = {name}::regclass"
        );
        let row = self.client.query_one(query.as_str(), &[]).map_err(|e| failed(&e, &query))?;
        Ok(row.get(0))
    }

    pub(super) fn generate_there(&mut self) -> Result<&'static str, UsageError> {
        self.say("generating data (server-side)...");
        let names = self.begin_filling()?;
        for filling in &FILLED {
            let Filling { table, columns, values, .. } = filling;
            self.execute(&format!(
                "insert into {} ({columns}) select {values} from pg_catalog.generate_series(1, \
                 {}) as n",
                names.spelled(table),
                filling.rows(self.what.scale)
            ))?;
        }
        self.commit()?;
        Ok("server-side generate")
    }
}
