//! Context of every step of a run and of a crash test: the journal, the receiver of progress
//! events, the stop flag.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgdyno_exec::journal::Journal;
use pgdyno_model::progress::{Activity, Event, Notice, Progress, Warning};

use crate::BenchError;

/// How often a waiting thread looks at the stop flag.
const TICK: Duration = Duration::from_millis(50);

/// The journal of undo steps, the receiver of progress events and the stop flag.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub journal: &'a Journal,
    pub progress: &'a dyn Progress,
    pub stop: &'a AtomicBool,
}

impl Context<'_> {
    /// Reports `event`.
    pub fn event(&self, event: &Event) {
        self.progress.event(event);
    }

    /// Reports something worth keeping.
    pub fn note(&self, notice: Notice) {
        self.event(&Event::Note(notice));
    }

    /// Reports something that must not be missed.
    pub fn warn(&self, warning: Warning) {
        self.event(&Event::Warning(warning));
    }

    /// Warns of each of `leftovers`, which could not be taken down.
    pub fn warn_left(&self, leftovers: Vec<String>) {
        for left in leftovers {
            self.warn(Warning::NotTakenDown(left));
        }
    }

    /// Reports that `activity` begins.
    pub fn begin(&self, activity: Activity) {
        self.event(&Event::Working { activity, share: None });
    }

    /// Returns whether a signal asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Fails once a signal has asked to stop.
    ///
    /// # Errors
    /// [`BenchError::Interrupted`].
    pub fn check_stop(&self) -> Result<(), BenchError> {
        if self.is_stopped() { Err(BenchError::Interrupted) } else { Ok(()) }
    }

    /// Waits for `time`.
    ///
    /// # Errors
    /// [`BenchError::Interrupted`], as soon as a signal asks to stop.
    pub fn sleep(&self, time: Duration) -> Result<(), BenchError> {
        self.poll(time, TICK, || Ok(None::<()>)).map(drop)
    }

    /// Calls `look` every `tick` until it returns a value; none if it did not within `limit`.
    ///
    /// # Errors
    /// [`BenchError::Interrupted`], as soon as a signal asks to stop, and the errors of `look`.
    pub fn poll<T>(
        &self,
        limit: Duration,
        tick: Duration,
        mut look: impl FnMut() -> Result<Option<T>, BenchError>,
    ) -> Result<Option<T>, BenchError> {
        let until = Instant::now() + limit;
        loop {
            // Taken before the look: what happened until the limit is seen.
            let left = until.saturating_duration_since(Instant::now());
            let found = look()?;
            if found.is_some() {
                return Ok(found);
            }
            self.check_stop()?;
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(left.min(tick));
        }
    }
}
