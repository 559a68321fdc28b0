//! Judges whether a trial was steady, where it changed, and what happened then.

use pgdyno_model::measurement::Second;
use pgdyno_model::telemetry::{Kind, Table};
use pgdyno_stats::{self as stats, WarmUp};

use super::burst_credit::Device;
use super::rates::{column, ends, even, intervals, per_second, sum};
use super::view::{Cause, Change, LogEvent, NotJudged, Steadiness};

/// Telemetry of something outside the load that can slow a server down.
struct Source {
    name: &'static str,
    unit: &'static str,
    probe: &'static str,
    columns: &'static [&'static str],
    scale: f64,
    /// Least value that is worth naming (`unit`).
    least: f64,
}

const SOURCES: &[Source] = &[
    Source {
        name: "full-page images",
        unit: "/s",
        probe: "pg_stat_wal",
        columns: &["wal_fpi"],
        scale: 1.0,
        least: 10.0,
    },
    Source {
        name: "page cache being written back",
        unit: " MB",
        probe: "memory",
        columns: &["Writeback"],
        scale: 1e-6,
        least: 4.0,
    },
    Source {
        name: "CPU time stolen by the hypervisor",
        unit: " cores",
        probe: "cpu",
        columns: &["steal"],
        scale: 1.0,
        least: 0.05,
    },
    Source {
        name: "throttling of the server's control group",
        unit: " s/s",
        probe: "cgroup",
        columns: &["throttled"],
        scale: 1.0,
        least: 0.01,
    },
];

/// Longest time between a change and an event that is named with it (seconds).
const NEAR_S: f64 = 2.0;
/// Longest stretch compared on either side of a change (seconds).
const BESIDE_S: f64 = 10.0;
/// Factor by which a source must differ between the two stretches.
const TIMES: f64 = 1.5;

/// Judges the seconds of one trial; none without a whole second.
pub(super) fn judge(
    series: &[Second],
    events: &[LogEvent],
    telemetry: &[Table],
    devices: &[&str],
) -> Option<Steadiness> {
    // The last second may be a part only.
    let tps: Vec<f64> = series
        .iter()
        .take_while(|s| s.length_s > 0.999)
        .map(|s| s.transactions as f64 / s.length_s)
        .collect();
    if tps.is_empty() {
        return None;
    }
    let warm_up = stats::warm_up(&tps);
    let (warm_up_s, warm_up_gain, steady) = match warm_up {
        None | Some(WarmUp::NotJudged { .. }) => (None, None, None),
        Some(WarmUp::None) => (Some(0), None, Some(true)),
        Some(WarmUp::Until { elements, gain }) => {
            (u32::try_from(elements).ok(), Some(gain), Some(true))
        }
        Some(WarmUp::NotSteady) => (None, None, Some(false)),
    };
    let autocorrelation = stats::autocorrelation(&tps);
    let within = stats::relative_error_of_mean(&tps);
    let (steady_why, within_why) = reasons(&tps, warm_up, autocorrelation);
    Some(Steadiness {
        too_alike: match warm_up {
            Some(WarmUp::NotJudged { effective }) => Some(effective),
            _ => None,
        },
        steady_why,
        within_why: within.is_none().then_some(within_why),
        warm_up_s,
        warm_up_gain,
        steady,
        autocorrelation,
        within,
        changes: stats::changes(&tps).map(|at| changes(&tps, &at, events, telemetry, devices)),
    })
}

/// Returns why it is not judged whether the series is steady, and why its mean has no interval, if
/// it has none.
fn reasons(
    tps: &[f64],
    warm_up: Option<WarmUp>,
    autocorrelation: Option<stats::Autocorrelation>,
) -> (Option<NotJudged>, NotJudged) {
    let steady = match warm_up {
        Some(WarmUp::NotJudged { effective }) => Some(NotJudged::TooAlike { effective }),
        Some(_) => None,
        None if tps.iter().all(|tps| *tps == 0.0) => Some(NotJudged::NoTransaction),
        None => Some(NotJudged::TooShort { least: 40.0 }),
    };
    let within = match autocorrelation {
        _ if (tps.len() as f64) < stats::LEAST_EFFECTIVE => {
            NotJudged::TooShort { least: stats::LEAST_EFFECTIVE }
        }
        Some(found) => NotJudged::TooAlike { effective: found.effective },
        None => NotJudged::NoDifference,
    };
    (steady, within)
}

fn changes(
    tps: &[f64],
    at: &[usize],
    events: &[LogEvent],
    telemetry: &[Table],
    devices: &[&str],
) -> Vec<Change> {
    let device = Device::watched(telemetry, devices);
    let sources: Vec<(&Source, Vec<(f64, f64)>)> =
        SOURCES.iter().filter_map(|source| Some((source, source.values(telemetry)?))).collect();
    let bounds: Vec<usize> = [0].into_iter().chain(at.iter().copied()).chain([tps.len()]).collect();
    let mean = |from: usize, to: usize| tps[from..to].iter().sum::<f64>() / (to - from) as f64;
    let change = |w: &[usize]| {
        let [from, at, to] = *w else { return None };
        let (before, after) = (mean(from, at), mean(at, to));
        let (from_s, at_s, to_s) = (from as f64, at as f64, to as f64);
        let mut with = near(events, at_s);
        for (source, values) in &sources {
            let mean = |from: f64, to: f64| {
                let within =
                    values.iter().filter(|(t, _)| (from..to).contains(t)).map(|(_, value)| *value);
                stats::mean_ci95(&within.collect::<Vec<_>>()).mean
            };
            let sides =
                (mean(from_s.max(at_s - BESIDE_S), at_s), mean(at_s, to_s.min(at_s + BESIDE_S)));
            let (Some(was), Some(is)) = sides else { continue };
            // What moves with the load is its consequence: a cause of less work grows while work
            // shrinks.
            let against = (after < before) == (is > was);
            if against && was.max(is) >= source.least && was.max(is) > TIMES * was.min(is) {
                let (source, unit) = (source.name, source.unit);
                with.push(Cause::Telemetry { source, before: was, after: is, unit });
            }
        }
        if after < before {
            with.extend(device.as_ref().and_then(|device| device.gave_less(from_s, at_s, to_s)));
        }
        Some(Change { t_s: u32::try_from(at).ok()?, before, after, with })
    };
    bounds.windows(3).filter_map(change).collect()
}

impl Source {
    /// Reads the values, each with the middle of its interval (seconds from the window's opening).
    fn values(&self, tables: &[Table]) -> Option<Vec<(f64, f64)>> {
        let table = even(tables.iter().find(|t| t.probe == self.probe)?);
        let columns: Vec<usize> =
            self.columns.iter().filter_map(|name| column(&table, name)).collect();
        let each = columns.iter().map(|i| match table.columns[*i].kind {
            Kind::Counter => per_second(&table, *i, self.scale),
            Kind::Gauge => ends(&table, *i, self.scale),
        });
        let middles = intervals(&table).map(|(a, b)| f64::midpoint(a.t_s, b.t_s));
        let known = middles.zip(sum(each)).filter_map(|(t, value)| Some((t, value?)));
        (!columns.is_empty()).then(|| known.collect())
    }
}

/// Finds the checkpoints and autovacuums that began or ended about the time `at` (seconds).
fn near(events: &[LogEvent], at: f64) -> Vec<Cause> {
    let mut out = Vec::new();
    for event in events {
        let Some(t) = event.t_s else { continue };
        let close = |t: f64| (t - at).abs() <= NEAR_S;
        let number = |name: &str| event.numbers.get(name).copied();
        match event.kind.as_str() {
            "checkpoint starting" if close(t) => {
                out.push(Cause::CheckpointBegins { reason: event.of.clone() });
            }
            "checkpoint complete" if close(t) => out.push(Cause::CheckpointEnds),
            kind if kind.starts_with("automatic ") => {
                // It is logged when it is over.
                let began = number("elapsed_s").map(|elapsed| t - elapsed);
                let begins = began.is_some_and(close) && !close(t);
                if begins || close(t) {
                    let (kind, table) = (kind.to_owned(), event.of.clone());
                    out.push(Cause::Autovacuum { kind, table, begins });
                }
            }
            _ => {}
        }
    }
    out.dedup();
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pgdyno_model::telemetry::{Column, Sample};

    use super::*;

    fn seconds(tps: impl IntoIterator<Item = u64>) -> Vec<Second> {
        let second =
            |(t_s, transactions)| Second { t_s, length_s: 1.0, transactions, ..Second::default() };
        (0..).zip(tps).map(second).collect()
    }

    fn event(t_s: f64, kind: &str, of: &str, elapsed: Option<f64>) -> LogEvent {
        let numbers: BTreeMap<String, f64> =
            elapsed.map(|s| ("elapsed_s".to_owned(), s)).into_iter().collect();
        LogEvent { t_s: Some(t_s), kind: kind.into(), of: of.into(), numbers }
    }

    /// A minute of about 1,000 tps, and about 600 from second 30 to 40.
    fn dip() -> Vec<Second> {
        seconds((0..60_u64).map(|i| if (30..40).contains(&i) { 600 } else { 1000 } + i * 7 % 11))
    }

    #[test]
    fn a_change_is_named_with_what_happened_then_and_not_with_what_happened_else() {
        let wal = Table {
            probe: "pg_stat_wal".into(),
            columns: ["wal_fpi", "wal_bytes"]
                .map(|name| Column { name: name.into(), unit: "count".into(), kind: Kind::Counter })
                .into(),
            samples: (0..=60_i32)
                .map(|t| {
                    let burst = f64::from((t - 30).clamp(0, 10));
                    Sample {
                        t_s: f64::from(t),
                        values: vec![Some(400.0 * burst + f64::from(t)), Some(0.0)],
                    }
                })
                .collect(),
            unavailable: None,
        };
        let events = [
            event(10.0, "checkpoint complete", "", None),
            event(29.4, "checkpoint starting", "wal", None),
            event(55.0, "automatic vacuum", "db.public.t", Some(15.2)),
        ];
        let found = judge(&dip(), &events, &[wal], &[]).unwrap().changes.unwrap();
        let images = |before, after| Cause::Telemetry {
            source: "full-page images",
            before,
            after,
            unit: "/s",
        };
        let checkpoint = Cause::CheckpointBegins { reason: "wal".into() };
        let (kind, table) = ("automatic vacuum".into(), "db.public.t".into());
        let vacuum = Cause::Autovacuum { kind, table, begins: true };
        let causes: Vec<(u32, Vec<Cause>)> =
            found.iter().map(|c| (c.t_s, c.with.clone())).collect();
        assert_eq!(
            causes,
            [(30, vec![checkpoint, images(1.0, 401.0)]), (40, vec![vacuum, images(401.0, 1.0)])]
        );
        assert!((found[0].before - 1005.0).abs() < 5.0 && (found[0].after - 605.0).abs() < 5.0);
    }

    #[test]
    fn a_timed_checkpoint_is_a_cause_with_its_reason() {
        let found =
            judge(&dip(), &[event(30.5, "checkpoint starting", "time", None)], &[], &[]).unwrap();
        let cause = &found.changes.unwrap()[0].with[0];
        assert_eq!(*cause, Cause::CheckpointBegins { reason: "time".into() });
    }

    #[test]
    fn short_empty_and_constant_series_say_nothing_they_do_not_know() {
        assert_eq!(judge(&[], &[], &[], &[]), None);
        let short = judge(&seconds([5, 6, 7]), &[], &[], &[]).unwrap();
        assert_eq!(
            (short.steady, &short.changes, short.within, short.autocorrelation),
            (None, &None, None, None)
        );
        let constant = judge(&seconds([1000; 60]), &[], &[], &[]).unwrap();
        assert_eq!((constant.warm_up_s, constant.within), (Some(0), None));
        assert_eq!(constant.changes, Some(Vec::new()));
        let nothing = judge(&seconds([0; 60]), &[], &[], &[]).unwrap();
        assert_eq!((nothing.steady, nothing.within), (None, None));
        let too_short = |least| Some(NotJudged::TooShort { least });
        assert_eq!((short.steady_why, short.within_why), (too_short(40.0), too_short(20.0)));
        let same = Some(NotJudged::NoDifference);
        assert_eq!(
            (nothing.steady_why, nothing.within_why),
            (Some(NotJudged::NoTransaction), same)
        );
        assert_eq!((constant.steady_why, constant.within_why), (None, same));
    }

    #[test]
    fn seconds_that_resemble_each_other_too_much_are_not_judged_and_that_is_said() {
        // Up and down again over two minutes, as a random walk goes.
        let slow = (0..120_u64).map(|i| 1000 + (i % 60).min(60 - i % 60) * 5 + i * 7 % 11);
        let found = judge(&seconds(slow), &[], &[], &[]).unwrap();
        assert_eq!((found.steady, found.warm_up_s, found.within), (None, None, None));
        for why in [found.steady_why, found.within_why] {
            assert!(matches!(why, Some(NotJudged::TooAlike { .. })), "{why:?}");
        }
        // What is judged has no reason why not.
        let independent = (0..120_u64).map(|i| 1000 + i * 48_271 % 101);
        let found = judge(&seconds(independent), &[], &[], &[]).unwrap();
        assert!(found.within.is_some() && found.steady == Some(true), "{found:?}");
        assert_eq!((found.steady_why, found.within_why), (None, None));
    }
}
