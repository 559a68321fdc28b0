//! Room that content and records take in a store.

use std::collections::BTreeMap;

use rusqlite::params;

use super::tables::{THE_STORES_OWN, named, of_records};
use super::{Store, StoreError, Stored};

/// Room that a store takes, by content and by record.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct StoreSize {
    /// File of the store.
    pub store: String,
    /// Size of the file (bytes).
    pub bytes: u64,
    /// Room by kind of content, the largest first. They add up to `bytes`.
    pub contents: Vec<ContentSize>,
    /// Records, the largest first.
    pub records: Vec<RecordSize>,
    /// Records that `pgdyno rm` removed (count).
    pub removed: u64,
}

/// One kind of content.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ContentSize {
    /// `telemetry`, `histograms`, …; `free` for room inside the file that later rows will use.
    pub content: &'static str,
    /// Whole pages of the file, indexes among them (bytes).
    pub bytes: u64,
}

/// One run, or a probe, crash test or import by itself.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RecordSize {
    /// Id of the record.
    pub id: String,
    /// Kind of record: `run`, `probe`, `crash test` or `import`.
    pub kind: &'static str,
    /// Values of the record as they are stored, without the file's overhead (bytes).
    pub bytes: u64,
    /// The part of `bytes` that `pgdyno store thin` would reduce: telemetry and the latencies of
    /// each second.
    pub thinnable_bytes: u64,
}

impl Store {
    /// Measures the room that the store takes.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn size(&self) -> Result<StoreSize, StoreError> {
        let number = |sql: &str| self.value::<u64>("measure", sql, []);
        let page = number("PRAGMA page_size")?;
        let bytes = page * number("PRAGMA page_count")?;
        let mut sums: BTreeMap<&'static str, u64> = BTreeMap::new();
        let trees: Vec<(String, u64)> = self.rows(
            "measure",
            "SELECT coalesce(s.tbl_name, d.name), d.pgsize
             FROM dbstat d LEFT JOIN sqlite_schema s ON s.name = d.name WHERE d.aggregate = TRUE",
            params![],
            |row| row.try_into(),
        )?;
        for (table, size) in trees {
            *sums.entry(content(&table)).or_default() += size;
        }
        // Pages that no table has: free ones, and those of SQLite's own bookkeeping.
        let used: u64 = sums.values().sum();
        sums.insert("free", bytes.saturating_sub(used));
        let mut contents: Vec<ContentSize> =
            sums.into_iter().map(|(content, bytes)| ContentSize { content, bytes }).collect();
        contents.sort_by_key(|found| std::cmp::Reverse(found.bytes));
        let records = self.all_records()?;
        let records = records.iter().map(|record| self.record_size(record));
        let mut records = records.collect::<Result<Vec<_>, _>>()?;
        records.sort_by_key(|record| std::cmp::Reverse(record.bytes));
        Ok(StoreSize {
            store: self.path.display().to_string(),
            bytes,
            contents,
            records,
            removed: number("SELECT count(*) FROM removal")?,
        })
    }

    /// Measures one record.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn record_size(&self, record: &Stored) -> Result<RecordSize, StoreError> {
        let (mut all, mut thinnable) = (0, 0);
        for table in of_records() {
            let columns = table.columns(&self.connection).map_err(self.failed("measure"))?;
            let bytes = columns.iter().map(|name| format!("coalesce(octet_length({name}), 0)"));
            let bytes = bytes.collect::<Vec<_>>().join(" + ");
            let (name, rows) = (table.name, table.of_record());
            let sql = format!("SELECT coalesce(sum({bytes}), 0) FROM {name} WHERE {rows}");
            let found: u64 = self.value("measure", &sql, [record.id()])?;
            all += found;
            if matches!(table.name, "sample" | "second_histogram") {
                thinnable += found;
            }
        }
        Ok(RecordSize {
            id: record.id().to_owned(),
            kind: record.kind(),
            bytes: all,
            thinnable_bytes: thinnable,
        })
    }
}

fn content(table: &str) -> &'static str {
    match table {
        "seal" | "unsealed" => "checksums",
        "sqlite_schema" | "sqlite_sequence" => THE_STORES_OWN,
        name => named(name).map_or("others", |table| table.content),
    }
}
