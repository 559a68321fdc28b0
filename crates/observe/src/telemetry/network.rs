//! Traffic of all network interfaces, from `/proc/net/dev`. Load over TCP to the same host is on
//! `lo`.

use pgdyno_model::telemetry::{Column, Kind};
use procfs::net::{DeviceStatus, dev_status};

use super::columns::Columns;
use super::context::TelemetryContext;
use super::probe::{Probe, ProbeError, float};

#[derive(Default)]
struct Network {
    columns: Columns,
}

/// Creates the probe. Interfaces without traffic have no columns.
pub(super) fn make(_: &TelemetryContext) -> Result<Option<Box<dyn Probe>>, ProbeError> {
    Ok(Some(Box::new(Network::default())))
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

impl Probe for Network {
    fn name(&self) -> &'static str {
        "network"
    }

    fn columns(&self) -> &[Column] {
        self.columns.all()
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        let mut interfaces: Vec<DeviceStatus> = dev_status()
            .map_err(|e| format!("cannot read /proc/net/dev: {e}"))?
            .into_values()
            .collect();
        interfaces.sort_by(|a, b| a.name.cmp(&b.name));
        let mut row = self.columns.row();
        for interface in &interfaces {
            for (field, unit, value) in fields(interface) {
                row.set(&format!("{}.{field}", interface.name), unit, Kind::Counter, float(value));
            }
        }
        Ok(row.values())
    }
}
