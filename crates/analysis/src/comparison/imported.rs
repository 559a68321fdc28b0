//! Puts a run beside figures that somebody else published. Ratios are computed within each side
//! only: the two share neither machine nor repeats.

use pgdyno_audit::{Figure, ImportedRun, Recognised, Row};
use serde::Serialize;

use crate::RunView;
use pgdyno_store::{Store, StoreError, Stored};

/// Imported figures and a run. Nothing is computed between the two: they share neither machine nor
/// repeats.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SideBySideView {
    /// The imported run's name in the store.
    pub imported: String,
    /// The report's file.
    pub source: String,
    /// The report's rows, as it names them.
    pub theirs: Vec<SideBySideRow>,
    /// The run's name.
    pub run: String,
    /// The run's treatments that have a completed trial.
    pub ours: Vec<SideBySideRow>,
}

/// Row of either side: a treatment of the run, or a row of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SideBySideRow {
    /// Name: the treatment's label, or the report's own.
    pub label: String,
    /// Repeats; none where the report does not say.
    pub repeats: Option<usize>,
    /// Connections.
    pub clients: Option<f64>,
    /// Transactions per second: the mean of the repeats.
    pub tps: f64,
    /// 95% confidence interval of `tps`; always none for imported figures.
    pub tps_ci95: Option<[f64; 2]>,
    /// tps over the highest of its side.
    pub ratio_to_best: f64,
    /// Mean latency (milliseconds).
    pub latency_ms: Option<f64>,
}

/// Finds the imported run among `a` and `b`, and the id of the other, a run; none if neither is an
/// import.
///
/// # Errors
/// [`StoreError`]: the import cannot be read, or the other one is no run.
pub fn find_import(
    store: &Store,
    a: &str,
    b: &str,
) -> Result<Option<(ImportedRun, String)>, StoreError> {
    let stored = |name: &str| store.resolve_any(name).ok();
    let (import, other) = match (stored(a), stored(b)) {
        (Some(Stored::Imported(import)), _) => (import, b),
        (_, Some(Stored::Imported(import))) => (import, a),
        _ => return Ok(None),
    };
    Ok(Some((store.import(&import)?, store.resolve(other)?)))
}

/// Puts `imported` beside `view`.
pub fn side_by_side(imported: &ImportedRun, view: &RunView) -> SideBySideView {
    let mut theirs = rows_of(&imported.recognised);
    let mut ours: Vec<SideBySideRow> = view
        .treatments
        .iter()
        .filter_map(|treatment| {
            let tps = treatment.tps.as_ref()?;
            Some(SideBySideRow {
                label: treatment.label.clone(),
                repeats: Some(treatment.trials),
                clients: view.plan.treatments.get(treatment.index).map(|t| f64::from(t.clients)),
                tps: tps.mean,
                tps_ci95: tps.ci95,
                ratio_to_best: 0.0,
                latency_ms: treatment.latency_us.as_ref().map(|latency| latency.mean / 1000.0),
            })
        })
        .collect();
    rate(&mut theirs);
    rate(&mut ours);
    SideBySideView {
        imported: imported.id.clone(),
        source: imported.source.clone(),
        theirs,
        run: view.run.id.clone(),
        ours,
    }
}

fn rate(rows: &mut [SideBySideRow]) {
    let best = rows.iter().map(|row| row.tps).fold(0.0, f64::max);
    for row in rows {
        row.ratio_to_best = if best > 0.0 { row.tps / best } else { 0.0 };
    }
}

fn rows_of(recognised: &Recognised) -> Vec<SideBySideRow> {
    let value = |figure: Option<Figure>| figure.map(|f| f.value);
    let runs = recognised.runs.iter().filter_map(|run| {
        Some(SideBySideRow {
            label: run.label.clone().unwrap_or_else(|| format!("line {}", run.line)),
            repeats: Some(1),
            clients: value(run.clients),
            tps: run.tps_connected()?.value,
            latency_ms: value(run.latency_average_ms),
            ..SideBySideRow::default()
        })
    });
    let tables = recognised.tables.iter().filter(|table| table.tps).flat_map(|table| &table.rows);
    let rows = tables.filter_map(|row| {
        Some(SideBySideRow {
            label: row.label.clone(),
            repeats: (!row.repeats.is_empty()).then_some(row.repeats.len()),
            tps: mean(row)?,
            ..SideBySideRow::default()
        })
    });
    // A table's rows are means of runs that may stand below it one by one.
    let rows: Vec<SideBySideRow> = rows.collect();
    if rows.is_empty() { runs.collect() } else { rows }
}

/// The mean of a row's repeats, computed where there are any, else as it is written.
fn mean(row: &Row) -> Option<f64> {
    if row.repeats.is_empty() {
        return row.mean.or_else(|| row.others.first().map(|(_, figure)| *figure)).map(|f| f.value);
    }
    Some(row.repeats.iter().map(|f| f.value).sum::<f64>() / row.repeats.len() as f64)
}
