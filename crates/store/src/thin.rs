//! Thinning: the detail of old runs goes, their figures stay.
//!
//! Of a run's seconds, the distribution of latencies of each goes; counts and percentiles of every
//! second stay. Of telemetry, one sample in [`DEFAULT_EVERY_S`] seconds stays, with every sample at
//! which a counter was reset or a value was missing: the growth of each counter over the trial, its
//! first and its last value are then as before, and so is all that is computed of them.

use std::num::NonZeroU32;

use pgdyno_model::telemetry::{Kind, STATS_RESET, Sample, Table};
use pgdyno_model::units::Epoch;
use rusqlite::{Connection, named_params};

use super::remove::is_at_work;
use super::write::insert;
use super::{Store, StoreError, seal};

/// Seconds between the samples of telemetry that stay, unless the user names another number.
pub const DEFAULT_EVERY_S: u32 = 60;

/// Rows that a thinning removes, or removed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Thinning {
    /// The run.
    pub run: String,
    /// When the run was thinned; for one that is only planned, now.
    #[serde(serialize_with = "pgdyno_text::format::as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub thinned_at: Epoch,
    /// Seconds between the samples of telemetry that stay.
    pub every_s: u32,
    /// Samples of telemetry that go (count).
    pub samples: u64,
    /// Seconds whose distribution of latencies goes (count).
    pub seconds: u64,
}

impl Thinning {
    /// Whether there is nothing to remove.
    pub fn is_empty(&self) -> bool {
        self.samples == 0 && self.seconds == 0
    }
}

impl Store {
    /// Counts what thinning `run` would remove; nothing is changed.
    ///
    /// # Errors
    /// [`StoreError::SessionOpen`]; [`StoreError::Damaged`]; [`StoreError::Sqlite`] or
    /// [`StoreError::Corrupt`].
    pub fn plan_thinning(&self, run: &str, every_s: NonZeroU32) -> Result<Thinning, StoreError> {
        Ok(self.superfluous_rows(run, every_s)?.0)
    }

    /// Finds what thinning `run` would remove: samples by telemetry and position.
    fn superfluous_rows(
        &self,
        run: &str,
        every_s: NonZeroU32,
    ) -> Result<(Thinning, Vec<(i64, i64)>), StoreError> {
        self.refuse_at_work(run)?;
        self.check(run)?;
        let mut samples = Vec::new();
        for trial in self.trial_ids(run)? {
            for telemetry in self.read_telemetry(trial)? {
                let gone = superfluous(&telemetry.table, every_s);
                samples.extend(gone.iter().map(|at| (telemetry.id, telemetry.positions[*at])));
            }
        }
        let seconds = self.value(
            "count seconds",
            "SELECT count(*) FROM second_histogram
             WHERE trial IN (SELECT id FROM trial WHERE run = ?)",
            [run],
        )?;
        let thinning = Thinning {
            run: run.to_owned(),
            thinned_at: Epoch::now(),
            every_s: every_s.get(),
            samples: samples.len() as u64,
            seconds,
        };
        Ok((thinning, samples))
    }

    /// Thins `runs`, all or none of them, and keeps in the store that they were thinned. A run that
    /// has nothing to remove stays as it is. Returns what was removed, by run.
    ///
    /// # Errors
    /// As [`Store::plan_thinning`].
    pub fn thin(
        &mut self,
        runs: &[String],
        every_s: NonZeroU32,
    ) -> Result<Vec<Thinning>, StoreError> {
        let planned = runs.iter().map(|run| self.superfluous_rows(run, every_s));
        let mut planned = planned.collect::<Result<Vec<_>, _>>()?;
        planned.retain(|(thinning, _)| !thinning.is_empty());
        let dead = self.dead.clone();
        self.amend("thin a run", |transaction| {
            for (thinning, rows) in &planned {
                // Another process may have changed the run since it was read.
                let found = seal::check(transaction, &thinning.run)?;
                let is_there = found.damage.is_empty() && found.rows + found.unsealed > 0;
                if !is_there
                    || is_at_work(transaction, &thinning.run, &dead)?
                    || remove(transaction, thinning, rows)? != thinning.samples + thinning.seconds
                {
                    return Err(StoreError::AtWork { run: thinning.run.clone() }.into());
                }
            }
            Ok(())
        })?;
        Ok(planned.into_iter().map(|(thinning, _)| thinning).collect())
    }

    /// Lists when a run was thinned, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn thinnings(&self, run: &str) -> Result<Vec<Thinning>, StoreError> {
        self.rows(
            "read when a run was thinned",
            "SELECT run, thinned_at, every_s, samples, seconds FROM thinning
             WHERE run = ? ORDER BY id",
            [run],
            |row| {
                Ok(Thinning {
                    run: row.get(0)?,
                    thinned_at: Epoch(row.get(1)?),
                    every_s: row.get(2)?,
                    samples: row.get(3)?,
                    seconds: row.get(4)?,
                })
            },
        )
    }
}

/// Removes the rows of a thinning (`samples` by telemetry and position), seals what is left anew,
/// and keeps how many were removed. Returns that number.
fn remove(
    connection: &Connection,
    thinning: &Thinning,
    samples: &[(i64, i64)],
) -> rusqlite::Result<u64> {
    let run = &thinning.run;
    let mut removed = connection.execute(
        "DELETE FROM second_histogram WHERE trial IN (SELECT id FROM trial WHERE run = ?)",
        [run],
    )?;
    let mut delete =
        connection.prepare("DELETE FROM sample WHERE telemetry = ? AND position = ?")?;
    for (telemetry, position) in samples {
        removed += delete.execute([telemetry, position])?;
    }
    let values = named_params! {
        ":run": run,
        ":thinned_at": thinning.thinned_at.0,
        ":pgdyno_version": env!("CARGO_PKG_VERSION"),
        ":every_s": thinning.every_s,
        ":samples": thinning.samples,
        ":seconds": thinning.seconds,
    };
    insert(connection, "thinning", values)?;
    seal::renew(connection, run)?;
    Ok(removed as u64)
}

/// Returns the samples that thinning removes, by their place among those that are there.
fn superfluous(table: &Table, every_s: NonZeroU32) -> Vec<usize> {
    /// Samples are taken a little after the second.
    const LATE_S: f64 = 0.25;
    let bucket = |sample: &Sample| ((sample.t_s + LATE_S) / f64::from(every_s.get())).floor();
    let samples = &table.samples;
    let mut kept = samples.first();
    let mut out = Vec::new();
    for (at, sample) in samples.iter().enumerate().skip(1) {
        let is_between = samples.get(at + 1).is_some_and(|next| {
            is_smooth(table, &samples[at - 1], sample) && is_smooth(table, sample, next)
        });
        let begins = kept.is_none_or(|kept| bucket(kept) < bucket(sample));
        if is_between && !begins {
            out.push(at);
        } else {
            kept = Some(sample);
        }
    }
    out
}

/// Whether the step from `a` to `b` hides nothing once it is a part of a longer one: the same
/// columns have values, no counter fell, and the source was not reset.
fn is_smooth(table: &Table, a: &Sample, b: &Sample) -> bool {
    b.t_s > a.t_s
        && table.columns.iter().zip(a.values.iter().zip(&b.values)).all(|(column, values)| {
            match values {
                (Some(a), Some(b)) if column.name == STATS_RESET => a == b,
                (Some(a), Some(b)) => column.kind != Kind::Counter || b >= a,
                (a, b) => a.is_none() && b.is_none(),
            }
        })
}

#[cfg(test)]
mod tests {
    use pgdyno_model::telemetry::Column;

    use super::*;

    fn table(values: &[Option<f64>]) -> Table {
        let column = Column { name: "x".into(), unit: "count".into(), kind: Kind::Counter };
        let sample = |(t, value): (u32, &Option<f64>)| Sample {
            t_s: f64::from(t) + 0.01,
            values: vec![*value],
        };
        Table {
            probe: "p".into(),
            columns: vec![column],
            samples: (0..).zip(values).map(sample).collect(),
            unavailable: None,
        }
    }

    fn kept(values: &[Option<f64>], every_s: u32) -> Vec<usize> {
        let table = table(values);
        let gone = superfluous(&table, NonZeroU32::new(every_s).unwrap());
        (0..values.len()).filter(|at| !gone.contains(at)).collect()
    }

    #[test]
    fn the_first_the_last_and_one_in_each_step_stay() {
        let steady: Vec<Option<f64>> = (0..25).map(|i| Some(f64::from(i))).collect();
        assert_eq!(kept(&steady, 10), [0, 10, 20, 24]);
        assert_eq!(kept(&steady[..3], 60), [0, 2]);
        assert_eq!(kept(&steady[..1], 60), [0]);
        assert_eq!(kept(&[], 60), [0; 0]);
    }

    #[test]
    fn samples_at_a_reset_and_beside_a_missing_value_stay() {
        let mut values: Vec<Option<f64>> = (0..25).map(|i| Some(f64::from(i))).collect();
        values[5..].iter_mut().for_each(|value| *value = value.map(|v| v - 5.0));
        values[15] = None;
        assert_eq!(kept(&values, 60), [0, 4, 5, 14, 15, 16, 24]);
    }

    #[test]
    fn a_thinned_table_loses_nothing_more_when_it_is_thinned_again() {
        let steady: Vec<Option<f64>> = (0..100).map(|i| Some(f64::from(i))).collect();
        let mut table = table(&steady);
        let every = NonZeroU32::new(10).unwrap();
        for position in superfluous(&table, every).into_iter().rev() {
            table.samples.remove(position);
        }
        assert_eq!(superfluous(&table, every), [0; 0]);
    }
}
