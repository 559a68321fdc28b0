//! Surroundings of a command: the stop flag, how much to print, and progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pgdyno_model::progress::{Event, Progress as _};
use pgdyno_model::record::SessionEnd;
use pgdyno_provision::BenchError;
use pgdyno_report::Detail;

use crate::progress::{Display, ProgressOption};
use crate::signals;

/// Width of tables where standard output is no terminal, in columns.
const DEFAULT_WIDTH: u16 = 100;

/// The surroundings of one command.
#[derive(Debug)]
pub(crate) struct Context {
    stop: Arc<AtomicBool>,
    is_verbose: bool,
}

impl Context {
    /// Creates the surroundings of a command; `is_verbose` is the value of `--verbose`.
    pub(crate) fn new(is_verbose: bool) -> Self {
        Self { stop: signals::flag(), is_verbose }
    }

    /// Returns the flag that the first signal sets.
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Returns the flag that the first signal sets, to be handed on.
    pub(crate) fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Returns whether a signal asked for the end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns whether `--verbose` was given.
    pub(crate) fn is_verbose(&self) -> bool {
        self.is_verbose
    }

    /// Returns how much of a report to print.
    pub(crate) fn detail(&self) -> Detail {
        if self.is_verbose { Detail::Full } else { Detail::Brief }
    }

    /// Returns the width of the terminal, in columns.
    pub(crate) fn width(&self) -> u16 {
        let columns = rustix::termios::tcgetwinsize(std::io::stdout()).map(|size| size.ws_col);
        columns.ok().filter(|columns| *columns > 0).unwrap_or(DEFAULT_WIDTH).max(60)
    }

    /// Returns the width for prose: that of the terminal, but at most 100 columns.
    pub(crate) fn prose_width(&self) -> usize {
        self.width().min(DEFAULT_WIDTH).into()
    }

    /// Shows progress while `work` runs, and how it ended.
    pub(crate) fn with_progress<T>(
        &self,
        option: ProgressOption,
        work: impl FnOnce(&Display) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        self.with_progress_until(option, |_| SessionEnd::Completed, work)
    }

    /// As [`Context::with_progress`]; `end_of` returns how the work ended that met no error.
    pub(crate) fn with_progress_until<T>(
        &self,
        option: ProgressOption,
        end_of: fn(&T) -> SessionEnd,
        work: impl FnOnce(&Display) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        let display = Display::new(option);
        let result = work(&display);
        let (end, error) = match &result {
            Ok(done) => (end_of(done), None),
            Err(BenchError::Interrupted) => (SessionEnd::Interrupted, None),
            Err(error) => (SessionEnd::Failed, Some(error.failure())),
        };
        display.event(&Event::Ended { end, error });
        display.end();
        result
    }
}
