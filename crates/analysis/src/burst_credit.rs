//! Detects a device that slows down under an unchanged load.
//!
//! A used-up burst credit and a throttle look alike from outside: fewer operations, each slower,
//! with as many requests in flight as before. Telemetry cannot tell who limits the device.

use pgdyno_model::telemetry::Table;

use super::devices::own_device;
use super::rates::{column, differences, even, intervals};
use super::view::Cause;

/// Minimum duration of the slower level (seconds). Slowdowns by checkpoints and write-back are
/// shorter.
const LASTING_S: f64 = 20.0;
/// Factor by which operations must become fewer, and each of them slower.
const TIMES: f64 = 1.5;
/// Minimum ratio of the requests in flight after the change to those before. With fewer, the server
/// asked for less.
const AS_MUCH: f64 = 0.8;
/// Minimum share of time with a request in flight after the change. Below it the device is not at
/// its limit.
const BUSY: f64 = 0.9;

/// Counters of one block device, by interval of its telemetry.
pub(super) struct Device {
    name: String,
    intervals: Vec<Interval>,
}

#[derive(Clone, Copy, Default)]
struct Interval {
    begin: f64,
    end: f64,
    operations: f64,
    /// Sum of the operations' latencies (milliseconds).
    ticks: f64,
    /// Time with a request in flight (milliseconds).
    busy: f64,
}

impl Device {
    /// Reads the storage's own device from `tables`; none if a counter was not watched.
    pub(super) fn watched(tables: &[Table], devices: &[&str]) -> Option<Self> {
        let table = even(tables.iter().find(|t| t.probe == "diskstats")?);
        let name = own_device(&table, devices)?.to_owned();
        let counted = |field: &str| {
            let field = if name.is_empty() { field.to_owned() } else { format!("{name}.{field}") };
            Some(differences(&table, column(&table, &field)?))
        };
        let both = |a: &str, b: &str| {
            let (a, b) = (counted(a)?, counted(b)?);
            Some(a.into_iter().zip(b).map(|(a, b)| Some(a? + b?)).collect::<Vec<Option<f64>>>())
        };
        let (operations, ticks) = (both("rd_ios", "wr_ios")?, both("rd_ticks", "wr_ticks")?);
        let busy = counted("io_ticks")?;
        let all = intervals(&table).zip(operations).zip(ticks).zip(busy);
        let intervals = all
            .filter_map(|((((a, b), operations), ticks), busy)| {
                let (begin, end) = (a.t_s, b.t_s);
                Some(Interval { begin, end, operations: operations?, ticks: ticks?, busy: busy? })
            })
            .collect();
        Some(Self { name, intervals })
    }

    /// Returns the slowdown at `at`; none if the device did not slow down.
    ///
    /// The level before it counts from `from`, the level after it up to `to` (seconds from the
    /// window's opening).
    pub(super) fn gave_less(&self, from: f64, at: f64, to: f64) -> Option<Cause> {
        let (before, after) = (self.level(from, at)?, self.level(at, to)?);
        let lasts = to - at >= LASTING_S;
        let fewer = after.operations * TIMES <= before.operations;
        let slower = after.latency_ms >= TIMES * before.latency_ms;
        let asked = after.queue >= AS_MUCH * before.queue;
        // Two devices that are idle half of the time differ in what is asked of them.
        (lasts && fewer && slower && asked && after.busy >= BUSY).then(|| Cause::DeviceGaveLess {
            device: self.name.clone(),
            operations: [before.operations, after.operations],
            latency_ms: [before.latency_ms, after.latency_ms],
        })
    }

    /// Averages the whole intervals from `from` to `to`; none without an operation.
    fn level(&self, from: f64, to: f64) -> Option<Level> {
        // The interval in which the change lies belongs to neither side.
        let within =
            || self.intervals.iter().filter(|i| i.begin >= from - 0.5 && i.end <= to + 0.5);
        let sum = |of: fn(&Interval) -> f64| within().map(of).sum::<f64>();
        let (seconds, operations) = (sum(|i| i.end - i.begin), sum(|i| i.operations));
        (seconds > 0.0 && operations > 0.0).then(|| Level {
            operations: operations / seconds,
            latency_ms: sum(|i| i.ticks) / operations,
            queue: sum(|i| i.ticks) / 1e3 / seconds,
            busy: sum(|i| i.busy) / 1e3 / seconds,
        })
    }
}

struct Level {
    /// Reads and writes (1/s).
    operations: f64,
    latency_ms: f64,
    /// Mean number of requests in flight.
    queue: f64,
    /// Share of time with a request in flight.
    busy: f64,
}

#[cfg(test)]
mod tests {
    use pgdyno_model::telemetry::{Column, Kind, Sample};

    use super::*;

    /// 60 seconds of a device that changes at second 30: operations/s, milliseconds each, share of
    /// time busy, before and after.
    fn device(before: (f64, f64, f64), after: (f64, f64, f64)) -> Vec<Table> {
        let names = ["rd_ios", "wr_ios", "rd_ticks", "wr_ticks", "io_ticks"];
        let columns = names
            .map(|n| Column { name: format!("vda.{n}"), unit: String::new(), kind: Kind::Counter })
            .into();
        let mut sums = [0.0; 5];
        let samples = (0..=60)
            .map(|t| {
                let sample = Sample { t_s: f64::from(t), values: sums.map(Some).into() };
                let (operations, each, busy) = if t < 30 { before } else { after };
                let half = operations / 2.0;
                for (sum, grown) in
                    sums.iter_mut().zip([half, half, half * each, half * each, 1000.0 * busy])
                {
                    *sum += grown;
                }
                sample
            })
            .collect();
        vec![Table { probe: "diskstats".into(), columns, samples, unavailable: None }]
    }

    fn said(before: (f64, f64, f64), after: (f64, f64, f64), to: f64) -> Option<Cause> {
        Device::watched(&device(before, after), &["vda"]).unwrap().gave_less(0.0, 30.0, to)
    }

    #[test]
    fn an_allowance_that_is_used_up_is_seen_and_less_load_is_not() {
        // 16 requests under way all the time; 3,000 operations a second, then 600.
        let full = (3000.0, 16.0 / 3.0, 1.0);
        let found = said(full, (600.0, 80.0 / 3.0, 1.0), 60.0).unwrap();
        let Cause::DeviceGaveLess { device, operations, latency_ms } = found else {
            panic!("{found:?}");
        };
        assert_eq!((device.as_str(), operations.map(f64::round)), ("vda", [3000.0, 600.0]));
        assert_eq!(latency_ms.map(|ms| (100.0 * ms).round()), [533.0, 2667.0]);
        // Fewer are asked for, at the same latency; or each takes longer because more are asked for
        // at once.
        assert_eq!(said(full, (600.0, 16.0 / 3.0, 0.4), 60.0), None);
        assert_eq!(said(full, (3000.0, 20.0, 1.0), 60.0), None);
        // The server asks less and the device is slow as well, or it is idle in between.
        assert_eq!(said(full, (600.0, 10.0, 0.95), 60.0), None);
        assert_eq!(said(full, (600.0, 80.0 / 3.0, 0.5), 60.0), None);
        // It did not last.
        assert_eq!(said(full, (600.0, 80.0 / 3.0, 1.0), 45.0), None);
        // More than before.
        assert_eq!(said((600.0, 80.0 / 3.0, 1.0), full, 60.0), None);
    }

    #[test]
    fn what_was_not_watched_says_nothing() {
        assert!(Device::watched(&[], &["vda"]).is_none());
        let mut part = device((10.0, 1.0, 1.0), (10.0, 1.0, 1.0));
        part[0].columns[2].name = "vda.other".into();
        assert!(Device::watched(&part, &["vda"]).is_none());
        assert_eq!(said((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 60.0), None);
    }
}
