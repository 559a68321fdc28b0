//! Fills a workload's tables: rows made in the process, streamed by COPY, keys built after.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use pgdyno_host::postgres::control::said;
use pgdyno_model::units::Bytes;
use thiserror::Error;

use crate::workload::{ColumnSpec, DataSet, TableSpec};

/// Rows between two looks at the stop flag; also a COPY chunk, of some 100 kB.
const ROWS_PER_CHUNK: u64 = 1000;

/// A data set that could not be loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// The server refused a statement.
    #[error("cannot load data set `{data}` at scale {scale}: {doing}: {found}")]
    Sql {
        /// The data set.
        data: String,
        /// The scale.
        scale: u32,
        /// What was attempted.
        doing: String,
        /// What the server said.
        found: String,
        /// SQLSTATE, where the server answered.
        sqlstate: Option<String>,
    },
    /// Stopped by a signal.
    #[error("stopped while data set `{data}` was loaded")]
    Interrupted {
        /// The data set.
        data: String,
    },
}

impl DatasetError {
    /// What to do, where there is something.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Sql { sqlstate: Some(s), .. } if s == "53100" => Some(
                "the disk is full: free room, lower `workload.scale`, or name another `storage` directory"
                    .into(),
            ),
            Self::Sql { .. } | Self::Interrupted { .. } => None,
        }
    }
}

/// Room that the WAL takes: PostgreSQL's default `max_wal_size`.
pub(crate) const WAL_ROOM: Bytes = Bytes(1 << 30);

/// Room that `data` at `scale` takes on disk, with what a fresh cluster takes beside its WAL.
pub(crate) fn room_needed(data: &DataSet, scale: u32) -> Bytes {
    /// A fresh cluster of PostgreSQL 15 to 18 with one WAL segment.
    const CLUSTER: u64 = 60_000_000;
    Bytes(data.bytes_per_scale.saturating_mul(u64::from(scale)).saturating_add(CLUSTER))
}

/// Rows that `data` at `scale` has (count).
pub(crate) fn rows(data: &DataSet, scale: u32) -> u64 {
    data.tables.iter().map(|t| t.rows_per_scale * u64::from(scale)).sum()
}

/// Makes the tables of `data`, those of `placed` in their tablespaces, and fills them; `progress` is told rows done and rows
/// in all.
pub(crate) fn load(
    client: &mut postgres::Client,
    data: &DataSet,
    scale: u32,
    placed: &[(String, String)],
    progress: &mut dyn FnMut(u64, u64),
    stop: &AtomicBool,
) -> Result<(), DatasetError> {
    let wrong = |doing: &str, e: &postgres::Error| DatasetError::Sql {
        data: data.name.clone(),
        scale,
        doing: doing.to_owned(),
        found: said(e),
        sqlstate: e.code().map(|c| c.code().to_owned()),
    };
    let all = rows(data, scale);
    let mut done = 0;
    client.batch_execute(&data.schema).map_err(|e| wrong("making its tables", &e))?;
    for (table, tablespace) in placed {
        let moving = format!("ALTER TABLE {table} SET TABLESPACE {tablespace}");
        client.batch_execute(&moving).map_err(|e| wrong(&moving, &e))?;
    }
    for table in &data.tables {
        let doing = format!("filling {}", table.name);
        let rows = table.rows_per_scale * u64::from(scale);
        let mut transaction = client.transaction().map_err(|e| wrong(&doing, &e))?;
        // FREEZE wants a table made or emptied in the same transaction; frozen rows need no second write later.
        transaction.batch_execute(&format!("TRUNCATE {}", table.name)).map_err(|e| wrong(&doing, &e))?;
        let mut copy = transaction.copy_in(&copy_statement(table)).map_err(|e| wrong(&doing, &e))?;
        let mut chunk = Vec::with_capacity(1 << 17);
        let mut row = 1;
        while row <= rows {
            if stop.load(Ordering::Relaxed) {
                return Err(DatasetError::Interrupted { data: data.name.clone() });
            }
            chunk.clear();
            let until = (row + ROWS_PER_CHUNK).min(rows + 1);
            while row < until {
                text_row(&table.columns, row, &mut chunk);
                row += 1;
                done += 1;
            }
            if let Err(e) = copy.write_all(&chunk) {
                let cause = e.get_ref().and_then(|c| c.downcast_ref::<postgres::Error>());
                return Err(cause.map_or_else(
                    || DatasetError::Sql {
                        data: data.name.clone(),
                        scale,
                        doing: doing.clone(),
                        found: e.to_string(),
                        sqlstate: None,
                    },
                    |cause| wrong(&doing, cause),
                ));
            }
            progress(done, all);
        }
        copy.finish().map_err(|e| wrong(&doing, &e))?;
        transaction.commit().map_err(|e| wrong(&doing, &e))?;
    }
    client.batch_execute(&data.keys).map_err(|e| wrong("building its keys", &e))?;
    for (table, tablespace) in placed {
        // An index lies where PGDATA does, wherever its table is.
        let doing = format!("moving the indexes of {table} to {tablespace}");
        let asked = "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = $1::text::regclass";
        let indexes = client.query(asked, &[table]).map_err(|e| wrong(&doing, &e))?;
        for index in indexes.iter().map(|row| row.get::<_, String>(0)) {
            let moving = format!("ALTER INDEX {index} SET TABLESPACE {tablespace}");
            client.batch_execute(&moving).map_err(|e| wrong(&doing, &e))?;
        }
    }
    for table in &data.tables {
        if stop.load(Ordering::Relaxed) {
            return Err(DatasetError::Interrupted { data: data.name.clone() });
        }
        let vacuum = format!("VACUUM (ANALYZE) {}", table.name);
        client.batch_execute(&vacuum).map_err(|e| wrong(&vacuum, &e))?;
    }
    Ok(())
}

fn copy_statement(table: &TableSpec) -> String {
    let columns: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    format!("COPY {} ({}) FROM STDIN WITH (FREEZE)", table.name, columns.join(", "))
}

/// Row number `row` in COPY's text format.
fn text_row(columns: &[ColumnSpec], row: u64, out: &mut Vec<u8>) {
    for (i, column) in columns.iter().enumerate() {
        if i > 0 {
            out.push(b'\t');
        }
        // Writing to memory does not fail.
        if column.row_number {
            let _ = write!(out, "{row}");
        } else if let Some(group) = column.group_of {
            let _ = write!(out, "{}", (row - 1) / group + 1);
        } else if let Some(text) = &column.constant {
            for byte in text.bytes() {
                match byte {
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    b'\t' => out.extend_from_slice(b"\\t"),
                    b'\n' => out.extend_from_slice(b"\\n"),
                    b'\r' => out.extend_from_slice(b"\\r"),
                    other => out.push(other),
                }
            }
        }
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_what_the_folder_describes() {
        let data = crate::workload::load("tpcb-like", &[]).unwrap().data;
        let accounts = data.tables.iter().find(|t| t.name == "pgbench_accounts").unwrap();
        let mut text = Vec::new();
        for row in [1, 100_000, 100_001] {
            text_row(&accounts.columns, row, &mut text);
        }
        assert_eq!(String::from_utf8(text).unwrap(), "1\t1\t0\t\n100000\t1\t0\t\n100001\t2\t0\t\n");
        assert_eq!(rows(&data, 2), 200_022);
        assert!(
            copy_statement(accounts).starts_with("COPY pgbench_accounts (aid, bid, abalance, filler) FROM")
        );
    }

    #[test]
    fn constants_are_escaped_for_copy() {
        let column = ColumnSpec {
            name: "c".into(),
            row_number: false,
            group_of: None,
            constant: Some("a\tb\\c\n".into()),
        };
        let mut text = Vec::new();
        text_row(&[column], 1, &mut text);
        assert_eq!(text, b"a\\tb\\\\c\\n\n");
    }
}
