//! Computes how tables and indexes grew in a trial, and by how many bytes for each transaction.

use pgdyno_model::Measurement;
use pgdyno_model::telemetry::Table;

use super::view::RelationSize;

/// Returns the relations that were watched in a trial, those that grew most first.
pub(crate) fn relations(tables: &[Table], measured: Option<&Measurement>) -> Vec<RelationSize> {
    let Some(table) = tables.iter().find(|table| table.probe == "sizes") else { return Vec::new() };
    let begin = table.samples.first().map_or(0.0, |sample| sample.t_s);
    let transactions = measured.map_or(0.0, |m| since(m, begin));
    let mut sizes: Vec<RelationSize> = table
        .columns
        .iter()
        .enumerate()
        .filter(|(_, column)| !matches!(column.name.as_str(), "database" | "pg_wal"))
        .filter_map(|(i, column)| {
            let mut values = table.samples.iter().filter_map(|sample| *sample.values.get(i)?);
            let before_bytes = values.next()?;
            let after_bytes = values.next_back()?;
            let grown = after_bytes - before_bytes;
            let bytes_per_transaction =
                (grown > 0.0 && transactions > 0.0).then(|| grown / transactions);
            Some(RelationSize {
                name: column.name.clone(),
                before_bytes,
                after_bytes,
                bytes_per_transaction,
            })
        })
        .collect();
    sizes.sort_by(|a, b| {
        (b.after_bytes - b.before_bytes).total_cmp(&(a.after_bytes - a.before_bytes))
    });
    sizes
}

/// Counts the transactions from `begin` on (seconds from the window's opening, at most 0). Sizes
/// are sampled seldom, so that a part of the warm-up, or all of it, may lie between two samples.
fn since(measured: &Measurement, begin: f64) -> f64 {
    let warm_up = match measured.warm_up_s > 0.0 {
        true => (-begin / measured.warm_up_s).clamp(0.0, 1.0),
        false => 0.0,
    };
    measured.transactions as f64 + measured.counters.warm_up_transactions as f64 * warm_up
}

#[cfg(test)]
mod tests {
    use pgdyno_model::telemetry::{Column, Kind, Sample};

    use super::*;

    #[test]
    fn what_grew_most_stands_first_and_is_spread_over_transactions() {
        let column =
            |name: &str| Column { name: name.into(), unit: "bytes".into(), kind: Kind::Gauge };
        let sample = |t_s, values: [Option<f64>; 4]| Sample { t_s, values: values.to_vec() };
        let table = Table {
            probe: "sizes".into(),
            columns: ["database", "still", "log", "shrunk"].map(column).to_vec(),
            samples: vec![
                sample(-1.0, [Some(9.0), Some(8192.0), None, Some(16384.0)]),
                sample(1.0, [Some(9.0), Some(8192.0), Some(8192.0), Some(16384.0)]),
                sample(2.0, [Some(9.0), Some(8192.0), Some(57344.0), Some(8192.0)]),
            ],
            unavailable: None,
        };
        let mut measured =
            Measurement { transactions: 900, warm_up_s: 2.0, ..Measurement::default() };
        measured.counters.warm_up_transactions = 200;
        let sizes = relations(&[table], Some(&measured));
        assert_eq!(
            sizes.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(),
            ["log", "still", "shrunk"]
        );
        assert_eq!(sizes[0].bytes_per_transaction, Some(49.152));
        assert_eq!((sizes[1].bytes_per_transaction, sizes[2].bytes_per_transaction), (None, None));
    }
}
