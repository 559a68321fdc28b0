//! Rows of tables that have the three figures of Little's law.

use super::columns::{Role, names_clients, names_mean_latency_ms, role};
use super::scan::Scan;
use super::table::Table;
use crate::figure::{Figure, read_number};

/// Clients, tps and mean latency of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RowOfLoad {
    pub(crate) clients: Figure,
    pub(crate) tps: Figure,
    pub(crate) latency_ms: Figure,
}

/// Finds the rows of all tables whose header names each of the three once.
pub(super) fn find(scan: &Scan<'_>, tables: &[Table]) -> Vec<RowOfLoad> {
    tables.iter().filter(|table| table.tps).flat_map(|table| of_table(scan, table)).collect()
}

fn of_table(scan: &Scan<'_>, table: &Table) -> Vec<RowOfLoad> {
    let only = |is: &dyn Fn(&str) -> bool| {
        let mut found = table.header.iter().enumerate().filter(|(_, name)| is(name));
        found.next().filter(|_| found.next().is_none()).map(|(column, _)| column)
    };
    let is_tps = |name: &str| {
        let lower = name.to_lowercase();
        role(name) == Role::Tps
            && (lower.contains("tps") || lower.contains("transactions"))
            && !lower.contains('k')
    };
    let (Some(clients), Some(tps), Some(latency)) =
        (only(&names_clients), only(&is_tps), only(&names_mean_latency_ms))
    else {
        return Vec::new();
    };
    let rows = table.rows.iter().filter_map(|row| {
        let line = scan.lines.iter().find(|line| line.number == row.line)?;
        let figure = |column: usize| {
            let cell = line.cells.get(column)?;
            read_number(&cell.text, scan.decimals, cell.line).number().filter(|f| f.value > 0.0)
        };
        Some(RowOfLoad {
            clients: figure(clients)?,
            tps: figure(tps)?,
            latency_ms: figure(latency)?,
        })
    });
    rows.collect()
}
