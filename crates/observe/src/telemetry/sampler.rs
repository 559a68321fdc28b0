//! The sampler: one thread that reads all probes on one time base.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pgdyno_model::telemetry::{Sample, Table};

use super::probe::{NamedProbe, Probe, ProbeError};
use super::wait_events::{self, Wait};

/// Samples until [`Sampler::finish`] or a drop.
///
/// See the example of the crate.
pub struct Sampler {
    end: Option<Sender<()>>,
    thread: std::io::Result<Option<JoinHandle<Vec<Taken>>>>,
    waits: Arc<Mutex<Vec<Wait>>>,
}

/// The samples of one probe.
struct Taken {
    name: &'static str,
    probe: Box<dyn Probe>,
    samples: Vec<(Instant, Vec<Option<f64>>)>,
    failed: Option<ProbeError>,
    gaps: Vec<Gap>,
    /// When the probe may be read again.
    due: Instant,
}

/// A time without samples, because the server was away.
struct Gap {
    from: Instant,
    /// None for one that has not ended.
    to: Option<Instant>,
    why: Box<ProbeError>,
}

impl Sampler {
    /// Starts to sample, at once and then every `interval`. A probe that fails is not read again,
    /// unless its server went away: that may come back.
    pub fn start(probes: Vec<NamedProbe>, interval: Duration) -> Self {
        let (end, ended) = channel();
        // At least 10 ms, so that a zero does not keep a CPU busy.
        let interval = interval.max(Duration::from_millis(10));
        let waits = Arc::new(Mutex::new(Vec::new()));
        let live = Arc::clone(&waits);
        let spawned = std::thread::Builder::new()
            .name("telemetry".into())
            .spawn(move || watch(probes, interval, &ended, &live));
        Self { end: Some(end), thread: spawned.map(Some), waits }
    }

    /// Returns what the loaded backends waited for between the last two samples, most frequent
    /// first. Empty before the second sample, and without the probe `wait_events`.
    pub fn waits(&self) -> Vec<Wait> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes a last sample and returns all tables.
    ///
    /// Times are relative to `opened`. Each table has the last sample at or before `opened`, so
    /// that differences cover the beginning, up to the first sample at or after `closed`.
    pub fn finish(mut self, opened: Instant, closed: Instant) -> Vec<Table> {
        self.end = None;
        let taken = match &mut self.thread {
            Ok(thread) => match thread.take().map(JoinHandle::join) {
                Some(Ok(taken)) => taken,
                _ => return vec![nothing("a probe panicked".into())],
            },
            Err(e) => return vec![nothing(format!("cannot start a thread: {e}"))],
        };
        taken.into_iter().map(|t| t.table(opened, closed)).collect()
    }
}

/// Returns the table that replaces all tables if there are none.
fn nothing(why: String) -> Table {
    Table { probe: "all".into(), columns: Vec::new(), samples: Vec::new(), unavailable: Some(why) }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end = None;
        if let Ok(Some(thread)) = self.thread.as_mut().map(Option::take) {
            let _ = thread.join();
        }
    }
}

fn watch(
    probes: Vec<NamedProbe>,
    interval: Duration,
    ended: &Receiver<()>,
    waits: &Mutex<Vec<Wait>>,
) -> Vec<Taken> {
    let mut due = Instant::now();
    let mut all: Vec<Taken> = probes
        .into_iter()
        .map(|(name, probe)| {
            let (samples, gaps) = (Vec::new(), Vec::new());
            Taken { name, probe, samples, failed: None, gaps, due }
        })
        .collect();
    loop {
        let now = Instant::now();
        all.iter_mut().filter(|t| t.due <= now).for_each(Taken::take);
        if let Some(latest) = all.iter().find_map(Taken::waits) {
            *waits.lock().unwrap_or_else(PoisonError::into_inner) = latest;
        }
        // Samples that were missed are left out.
        let now = Instant::now();
        while due <= now {
            due += interval;
        }
        match ended.recv_timeout(due - now) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    all.iter_mut().for_each(Taken::take);
    all
}

impl Taken {
    fn take(&mut self) {
        if self.failed.is_some() {
            return;
        }
        let before = Instant::now();
        let sampled = self.probe.sample();
        self.due = before + self.probe.interval();
        match sampled {
            Ok(values) => {
                let at = before + before.elapsed() / 2;
                if let Some(gap) = self.open_gap() {
                    gap.to = Some(at);
                }
                self.samples.push((at, values));
            }
            Err(ProbeError::Lost(why)) => {
                // It is asked again soon, however seldom it is read.
                self.due = before;
                if self.open_gap().is_none() {
                    self.gaps.push(Gap { from: before, to: None, why });
                }
            }
            Err(why) => self.failed = Some(why),
        }
    }

    fn open_gap(&mut self) -> Option<&mut Gap> {
        self.gaps.last_mut().filter(|gap| gap.to.is_none())
    }

    /// Returns the waits between the last two samples; none for another probe, and before them.
    fn waits(&self) -> Option<Vec<Wait>> {
        let [.., (_, earlier), (_, later)] = self.samples.as_slice() else { return None };
        (self.name == wait_events::NAME)
            .then(|| wait_events::mean_waits(self.probe.columns(), earlier, later))
    }

    fn table(self, opened: Instant, closed: Instant) -> Table {
        let first = self.samples.iter().rposition(|(at, _)| *at <= opened).unwrap_or(0);
        let last =
            self.samples.iter().position(|(at, _)| *at >= closed).unwrap_or(self.samples.len());
        let columns = self.probe.columns().to_vec();
        let samples = self
            .samples
            .into_iter()
            .enumerate()
            .filter(|(i, _)| (first..=last).contains(i))
            .map(|(_, (at, mut values))| {
                // A column that was added later was 0 until then.
                values.resize(columns.len(), Some(0.0));
                Sample { t_s: seconds_from(opened, at), values }
            })
            .collect();
        let gaps = (!self.gaps.is_empty()).then(|| {
            let gaps: Vec<String> = self.gaps.iter().map(|gap| gap.words(opened)).collect();
            gaps.join("; ")
        });
        let unavailable =
            self.failed.map(|e| e.to_string()).or(gaps).or_else(|| self.probe.missing_data());
        Table { probe: self.name.to_owned(), columns, samples, unavailable }
    }
}

impl Gap {
    /// `no samples from 2 s to 4 s: connection closed`, by the time of samples.
    fn words(&self, opened: Instant) -> String {
        // A zero has no sign.
        let seconds = |at| format!("{:.0} s", seconds_from(opened, at).round() + 0.0);
        let to = self.to.map_or_else(|| "on".to_owned(), |to| format!("to {}", seconds(to)));
        format!("no samples from {} {to}: {}", seconds(self.from), self.why)
    }
}

fn seconds_from(opened: Instant, at: Instant) -> f64 {
    match at.checked_duration_since(opened) {
        Some(after) => after.as_secs_f64(),
        None => -(opened - at).as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_model::telemetry::{Column, Kind};

    use super::*;
    use crate::telemetry::probe::column;

    struct Counting {
        columns: Vec<Column>,
        n: f64,
        fails_at: f64,
        sampled: Sender<()>,
    }

    impl Probe for Counting {
        fn columns(&self) -> &[Column] {
            &self.columns
        }
        fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
            self.n += 1.0;
            let _ = self.sampled.send(());
            if self.n >= self.fails_at {
                Err(ProbeError::UnknownData)
            } else {
                Ok(vec![Some(self.n)])
            }
        }
    }

    fn counting(fails_at: f64) -> (NamedProbe, Receiver<()>) {
        let (sampled, received) = channel();
        let columns = vec![column("n", "count", Kind::Counter)];
        (("counting", Box::new(Counting { columns, n: 0.0, fails_at, sampled })), received)
    }

    #[test]
    fn samples_reach_from_just_before_the_window_to_just_after_it() {
        let (probe, sampled) = counting(f64::INFINITY);
        let sampler = Sampler::start(vec![probe], Duration::from_millis(10));
        let wait = |n: usize| (0..n).for_each(|_| sampled.recv().unwrap());
        wait(4);
        std::thread::sleep(Duration::from_millis(2));
        let opened = Instant::now();
        wait(5);
        let closed = Instant::now();
        wait(3);
        let table = sampler.finish(opened, closed).remove(0);
        let (first, last) = (table.samples.first().unwrap(), table.samples.last().unwrap());
        assert!(first.t_s <= 0.0 && table.samples[1].t_s > 0.0, "{table:?}");
        assert!(first.values[0].unwrap() >= 3.0, "only the last one before the window is kept");
        let width = (closed - opened).as_secs_f64();
        assert!(
            last.t_s >= width && table.samples[table.samples.len() - 2].t_s < width,
            "{table:?}"
        );
        assert_eq!(table.unavailable, None);
    }

    #[test]
    fn a_probe_that_breaks_keeps_its_samples_and_says_so_while_others_go_on() {
        let ((broken, broke), (whole, sampled)) = (counting(3.0), counting(f64::INFINITY));
        let opened = Instant::now();
        let sampler = Sampler::start(vec![broken, whole], Duration::from_millis(10));
        (0..3).for_each(|_| broke.recv().unwrap());
        (0..6).for_each(|_| sampled.recv().unwrap());
        let tables = sampler.finish(opened, Instant::now());
        let why = Some(ProbeError::UnknownData.to_string());
        assert_eq!((tables[0].samples.len(), &tables[0].unavailable), (2, &why));
        assert!(tables[1].samples.len() >= 6 && tables[1].unavailable.is_none());
    }
}
