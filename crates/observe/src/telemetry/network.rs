//! Traffic of all network interfaces, from `/proc/net/dev`. Load over TCP to the same host is on
//! `lo`.

use std::path::Path;

use pgdyno_model::telemetry::Kind;
use procfs::net::{DeviceStatus, dev_status};

use super::columns::growing_columns;
use super::probe::{ProbeError, ProbeResult, float};

/// Creates the probe. Interfaces without traffic have no columns.
pub(super) fn make(_: Option<&Path>) -> ProbeResult {
    Ok(growing_columns(|row| {
        let mut interfaces: Vec<DeviceStatus> =
            dev_status().map_err(ProbeError::procfs("/proc/net/dev"))?.into_values().collect();
        interfaces.sort_by(|a, b| a.name.cmp(&b.name));
        for interface in &interfaces {
            for (field, unit, value) in fields(interface) {
                row.set(&format!("{}.{field}", interface.name), unit, Kind::Counter, float(value));
            }
        }
        Ok(())
    }))
}

fn fields(d: &DeviceStatus) -> [(&'static str, &'static str, u64); 8] {
    [
        ("rx_bytes", "bytes", d.recv_bytes),
        ("rx_packets", "count", d.recv_packets),
        ("rx_errs", "count", d.recv_errs),
        ("rx_drop", "count", d.recv_drop),
        ("tx_bytes", "bytes", d.sent_bytes),
        ("tx_packets", "count", d.sent_packets),
        ("tx_errs", "count", d.sent_errs),
        ("tx_drop", "count", d.sent_drop),
    ]
}
