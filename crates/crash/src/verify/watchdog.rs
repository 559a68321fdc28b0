//! Time limits of verification. A control connection waits for its answer without end, and so does
//! the stop of a server: what ends them is the end of the server's processes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pgdyno_durability::{Observed, Unseen};
use pgdyno_postgres::KillSwitch;

/// How long a signal, or the end of a limit, may go unnoticed.
const WATCH: Duration = Duration::from_millis(50);

/// Kills the server under verification when one step of it lasts longer than its limit, or when a
/// signal asks for the end.
///
/// The limit is of each step, not of all together: that of a large data set takes long and gets on.
pub(super) struct Watchdog<'a> {
    limit: Duration,
    stop: &'a AtomicBool,
    server: KillSwitch,
    state: Mutex<State>,
    over: Condvar,
}

#[derive(Default)]
struct State {
    /// The step under way, and when it began.
    step: Option<(String, Instant)>,
    /// Why the server was killed.
    fired: Option<String>,
    is_over: bool,
}

impl<'a> Watchdog<'a> {
    pub(super) fn new(limit: Duration, stop: &'a AtomicBool, server: KillSwitch) -> Self {
        Self { limit, stop, server, state: Mutex::default(), over: Condvar::new() }
    }

    /// Runs `verification` under watch.
    pub(super) fn guard<T>(&self, verification: impl FnOnce() -> T) -> T {
        /// Also ends the watch where the verification panics.
        struct End<'a, 'b>(&'a Watchdog<'b>);
        impl Drop for End<'_, '_> {
            fn drop(&mut self) {
                self.0.state().is_over = true;
                self.0.over.notify_all();
            }
        }
        std::thread::scope(|scope| {
            scope.spawn(|| self.watch());
            let _end = End(self);
            verification()
        })
    }

    /// Performs a step. One that was cut short, and all after it, could not be observed.
    pub(super) fn step<T>(&self, name: &str, look: impl FnOnce() -> Observed<T>) -> Observed<T> {
        {
            let mut state = self.state();
            if let Some(why) = &state.fired {
                return Err(Unseen::CouldNotRun(why.clone()));
            }
            state.step = Some((name.to_owned(), Instant::now()));
        }
        let observed = look();
        let mut state = self.state();
        state.step = None;
        match (&state.fired, observed) {
            // It says how the connection broke; why it did is known.
            (Some(why), Err(Unseen::CouldNotRun(_))) => Err(Unseen::CouldNotRun(why.clone())),
            (_, observed) => observed,
        }
    }

    /// Whether the server was killed.
    pub(super) fn has_fired(&self) -> bool {
        self.state().fired.is_some()
    }

    fn watch(&self) {
        let mut state = self.state();
        while !state.is_over {
            let late = state.step.as_ref().filter(|(_, began)| began.elapsed() > self.limit);
            if state.fired.is_none() {
                state.fired = match late {
                    _ if self.stop.load(Ordering::Relaxed) => {
                        Some("verification was interrupted".into())
                    }
                    Some((name, _)) => Some(format!(
                        "verification did not end within {} s: {name}. The server was killed",
                        self.limit.as_secs_f64()
                    )),
                    None => None,
                };
            }
            // Again and again: what is starting may fork meanwhile.
            if state.fired.is_some() {
                self.server.kill();
            }
            state = self.over.wait_timeout(state, WATCH).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
