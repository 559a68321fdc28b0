//! Whether the disk was under test at all.

use pgdyno_audit::MachineUse;
use pgdyno_model::telemetry::Table;

use crate::rates::{column, growth, intervals};

/// Trials in which processors may have been the limit while the device had time left.
#[derive(Clone, Debug, Default)]
pub struct IdleDevice {
    /// Trials whose telemetry tells of processors and devices (count).
    pub judged: usize,
    /// Trials in which the device was idle (count).
    pub idle: usize,
    /// Use of processors and device in the first such trial.
    pub first: Option<MachineUse>,
}

impl IdleDevice {
    /// Judges one trial by its telemetry.
    pub(crate) fn add(&mut self, telemetry: &[Table]) {
        let of = |probe: &str| telemetry.iter().find(|table| table.probe == probe);
        let (Some(cpu), Some(disks)) = (of("cpu").and_then(at_work), of("diskstats")) else {
            return;
        };
        let Some((device, utilised)) = busiest(disks) else { return };
        let device = device.to_owned();
        let found = MachineUse { device, utilised_percent: utilised, cpu_percent: cpu };
        self.judged += 1;
        if found.is_device_idle() {
            self.idle += 1;
            self.first.get_or_insert(found);
        }
    }
}

/// Returns the share of CPU time that is neither idle nor waits for the disk (percent).
fn at_work(table: &Table) -> Option<f64> {
    let of = |name: &str| growth(table, column(table, name)?);
    let work: f64 = ["user", "nice", "system"].into_iter().filter_map(of).sum();
    // guest and guest_nice are counted in user and nice already (proc_stat(5)).
    let rest: f64 = ["idle", "iowait", "irq", "softirq", "steal"].into_iter().filter_map(of).sum();
    (work + rest > 0.0).then(|| 100.0 * work / (work + rest))
}

/// Returns the device that had requests under way for the longest, and its utilisation (percent).
fn busiest(table: &Table) -> Option<(&str, f64)> {
    let seconds: f64 = intervals(table).map(|(a, b)| b.t_s - a.t_s).sum();
    let devices = table.columns.iter().enumerate().filter_map(|(index, column)| {
        let device = column.name.strip_suffix("io_ticks")?.trim_end_matches('.');
        // Milliseconds.
        Some((device, growth(table, index)? / 10.0 / seconds))
    });
    devices.filter(|(_, share)| share.is_finite()).max_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use pgdyno_model::telemetry::{Column, Kind, Sample};

    use super::*;

    /// A table of counters over ten seconds.
    fn table(probe: &str, grown: &[(&str, f64)]) -> Table {
        let columns = grown
            .iter()
            .map(|(name, _)| Column {
                name: (*name).into(),
                unit: String::new(),
                kind: Kind::Counter,
            })
            .collect();
        let sample = |t_s, share: f64| Sample {
            t_s,
            values: grown.iter().map(|(_, by)| Some(1.0 + by * share)).collect(),
        };
        let samples = vec![sample(0.0, 0.0), sample(4.0, 0.4), sample(10.0, 1.0)];
        Table { probe: probe.into(), columns, samples, unavailable: None }
    }

    /// The report of 2013: 60.64% user, 13.89% system, 2.42% iowait, 45.2% utilised.
    fn report(user: f64, sdc: f64) -> [Table; 2] {
        let idle = 100.0 - 13.89 - 2.42 - user;
        [
            table("cpu", &[("user", user), ("system", 13.89), ("iowait", 2.42), ("idle", idle)]),
            table(
                "diskstats",
                &[("sda.io_ticks", 10.0), ("sdc.io_ticks", sdc), ("sdc.wr_ios", 1e9)],
            ),
        ]
    }

    #[test]
    fn a_busy_machine_beside_a_device_with_time_left_is_counted() {
        let mut seen = IdleDevice::default();
        seen.add(&report(60.64, 9_900.0));
        seen.add(&report(10.0, 4_520.0));
        seen.add(&[]);
        assert_eq!((seen.judged, seen.idle), (2, 0));
        seen.add(&report(60.64, 4_520.0));
        assert_eq!((seen.judged, seen.idle), (3, 1));
        let first = seen.first.unwrap();
        assert_eq!(first.device, "sdc");
        assert!((first.utilised_percent - 45.2).abs() < 0.05, "{first:?}");
        assert!((first.cpu_percent - 74.5).abs() < 0.05, "{first:?}");
    }
}
