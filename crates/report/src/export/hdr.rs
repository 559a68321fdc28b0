//! Latency histograms as an interval log of `HdrHistogram`, which its own tools read: one line for
//! each completed trial, and one for each treatment.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use pgdyno_model::Latencies;

use super::{Export, ExportError};
use pgdyno_analysis::TrialState;

/// Values are nanoseconds; the column of maxima is in milliseconds.
const NANOSECONDS_PER_MS: f64 = 1e6;

/// Completed trials of a treatment, added up.
struct Sum {
    begin: Duration,
    length: Duration,
    latencies: Latencies,
}

impl Export<'_> {
    /// Renders the interval log. Tags are `trial-1` and `treatment-1`, numbered as the tables have
    /// them; comments say which treatment that is.
    pub fn hdr(&self) -> Result<String, ExportError> {
        let completed = |state| state == TrialState::Completed;
        let begins = self.report.view.trials.iter().filter(|trial| completed(trial.state));
        let begin = begins.filter_map(|trial| trial.measured_at).map(|at| at.0).min();
        let begin = Duration::from_nanos(begin.unwrap_or_default());
        let mut builder = IntervalLogWriterBuilder::new();
        builder
            .add_comment(&format!("pgdyno {}: latency in ns", self.text(&self.report.view.run.id)));
        for (number, treatment) in (1..).zip(&self.report.view.treatments) {
            builder.add_comment(&format!("treatment-{number}: {}", self.text(&treatment.label)));
        }
        builder.with_start_time(SystemTime::UNIX_EPOCH + begin);
        builder.with_base_time(SystemTime::UNIX_EPOCH + begin);
        builder.with_max_value_divisor(NANOSECONDS_PER_MS);
        let (mut out, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
        let mut log =
            builder.begin_log_with(&mut out, &mut serializer).map_err(ExportError::Table)?;
        let mut line = |tag: String, sum: &Sum| {
            let since = sum.begin.saturating_sub(begin);
            log.write_histogram(sum.latencies.as_histogram(), since, sum.length, Tag::new(&tag))
                .map_err(|e| ExportError::Histogram(format!("{e:?}")))
        };
        let mut treatments: BTreeMap<usize, Sum> = BTreeMap::new();
        let ids = self.store.trial_ids(&self.report.view.run.id)?;
        for (id, attempt) in ids.into_iter().zip(&self.report.view.trials) {
            if !completed(attempt.state) {
                continue;
            }
            let (_, trial) = self.store.trial(id)?;
            let Some((m, at)) = trial.measurement.zip(trial.measured_at) else { continue };
            let length = Duration::try_from_secs_f64(m.measured_s).unwrap_or_default();
            let one = Sum { begin: Duration::from_nanos(at.0), length, latencies: m.latency };
            line(format!("trial-{}", trial.ordinal + 1), &one)?;
            match treatments.entry(trial.treatment) {
                Entry::Vacant(entry) => drop(entry.insert(one)),
                Entry::Occupied(mut entry) => {
                    let sum = entry.get_mut();
                    sum.begin = sum.begin.min(one.begin);
                    sum.length += one.length;
                    sum.latencies.merge(&one.latencies);
                }
            }
        }
        for (treatment, sum) in &treatments {
            line(format!("treatment-{}", treatment + 1), sum)?;
        }
        Ok(String::from_utf8_lossy(&out).into_owned())
    }
}
