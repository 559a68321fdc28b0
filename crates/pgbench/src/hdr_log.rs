//! `--hdr-log`: latencies as an HdrHistogram interval log.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};
use hdrhistogram::serialization::{
    DeserializeError, Deserializer, V2DeflateSerializeError, V2DeflateSerializer,
};
use pgdyno_engine::{LiveSecond, Phase};
use pgdyno_model::{Latencies, Measurement};

use crate::server_messages::system_words;
use crate::usage_error::UsageError;

/// Why the log could not be written.
#[derive(Debug, thiserror::Error)]
enum HdrLogError {
    #[error("{}", system_words(.0))]
    File(#[from] io::Error),
    #[error("{0:?}")]
    Histogram(#[from] DeserializeError),
    #[error("{0:?}")]
    Interval(#[from] IntervalLogWriterError<V2DeflateSerializeError>),
}

/// An interval log that is being written: one untagged interval after the other while the load
/// runs, then one of the whole run for each of several scripts, tagged `script1`, `script2`, …
pub(crate) struct HdrLog {
    path: PathBuf,
    to: BufWriter<File>,
    /// Whether the head is written, which tells when the window opened.
    begun: bool,
    every: Duration,
    /// Where the present interval begins, from the window's opening.
    from: Duration,
    /// Up to where seconds are in it.
    until: Duration,
    latency: Latencies,
    /// The first error.
    failure: Option<HdrLogError>,
}

impl HdrLog {
    /// Creates a log in `path` with an interval each `every`.
    pub(crate) fn create(path: &Path, every: Duration) -> Result<Self, UsageError> {
        let file = File::create(path).map_err(|e| refused(path, &e.into()))?;
        Ok(Self {
            path: path.to_owned(),
            to: BufWriter::new(file),
            begun: false,
            every,
            from: Duration::ZERO,
            until: Duration::ZERO,
            latency: Latencies::new(),
            failure: None,
        })
    }

    /// Writes the head. Times in the log count from `opened`, when the window opened.
    pub(crate) fn open(&mut self, opened: Instant) {
        self.begun = true;
        let began =
            SystemTime::now().checked_sub(opened.elapsed()).unwrap_or(SystemTime::UNIX_EPOCH);
        let mut serializer = V2DeflateSerializer::new();
        let head = IntervalLogWriterBuilder::new()
            .add_comment("latencies in nanoseconds; pgdyno")
            .with_base_time(began)
            .with_start_time(began)
            .begin_log_with(&mut self.to, &mut serializer)
            .map(drop);
        self.note(head.map_err(HdrLogError::from));
    }

    /// Adds a second of the load.
    pub(crate) fn second(&mut self, live: &LiveSecond) {
        if live.phase != Phase::Measuring {
            return;
        }
        if let Some(latency) = &live.latency {
            self.latency.merge(latency);
        }
        self.until = live.elapsed;
        if live.elapsed >= self.from + self.every {
            self.interval();
        }
    }

    fn interval(&mut self) {
        let (from, until) = (self.from, self.until);
        let latency = std::mem::take(&mut self.latency);
        let written = self.write(&latency, from, until.saturating_sub(from), None);
        self.note(written);
        self.from = until;
    }

    fn note(&mut self, done: Result<(), HdrLogError>) {
        if let Err(why) = done {
            self.failure.get_or_insert(why);
        }
    }

    fn write(
        &mut self,
        latency: &Latencies,
        from: Duration,
        length: Duration,
        tag: Option<&str>,
    ) -> Result<(), HdrLogError> {
        let mut serializer = V2DeflateSerializer::new();
        // Without a head it goes on where the last one stopped.
        let mut log =
            IntervalLogWriterBuilder::new().begin_log_with(&mut self.to, &mut serializer)?;
        let bytes = latency.to_bytes();
        let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice())?;
        let tag = tag.and_then(Tag::new);
        Ok(log.write_histogram(&histogram, from, length, tag)?)
    }

    /// Writes the rest of the last interval and the scripts' histograms, and ends the log.
    pub(crate) fn finish(mut self, m: &Measurement) -> Result<(), UsageError> {
        if !self.begun {
            self.open(Instant::now());
        }
        if self.latency.count() > 0 {
            self.interval();
        }
        let whole = Duration::from_secs_f64(m.measured_s.max(0.0));
        if m.scripts.len() > 1 {
            for (n, script) in (1..).zip(&m.scripts) {
                let written =
                    self.write(&script.latency, Duration::ZERO, whole, Some(&format!("script{n}")));
                self.note(written);
            }
        }
        let flushed = self.to.flush();
        self.note(flushed.map_err(HdrLogError::from));
        match self.failure {
            Some(why) => Err(refused(&self.path, &why)),
            None => Ok(()),
        }
    }
}

fn refused(path: &Path, why: &HdrLogError) -> UsageError {
    UsageError::new(format!("could not write the histogram log \"{}\": {why}", path.display()))
}
