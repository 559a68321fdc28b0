//! Flushes of the write-ahead log, as the server counts them.

use pgdyno_model::telemetry::Table;

use super::rates::growth;

/// Flushes of the write-ahead log over a trial's telemetry, and its length (seconds):
/// `pg_stat_wal.wal_sync`, from PostgreSQL 18 on the `fsyncs` of `pg_stat_io` on WAL. None where
/// neither was read. With a `wal_sync_method` that opens the file for synchronous writing nothing
/// is counted.
pub(super) fn wal_flushes(tables: &[Table]) -> Option<(f64, f64)> {
    let of = |probe: &str, wanted: &dyn Fn(&str) -> bool| {
        let table = tables.iter().find(|t| t.probe == probe)?;
        let seconds = table.samples.last()?.t_s - table.samples.first()?.t_s;
        let columns = (0..table.columns.len()).filter(|i| wanted(&table.columns[*i].name));
        let flushes = columns.filter_map(|i| growth(table, i)).reduce(|a, b| a + b)?;
        (seconds > 0.0 && flushes > 0.0).then_some((flushes, seconds))
    };
    of("pg_stat_wal", &|name| name == "wal_sync")
        .or_else(|| of("pg_stat_io", &|name| name.contains(".wal.") && name.ends_with(".fsyncs")))
}
