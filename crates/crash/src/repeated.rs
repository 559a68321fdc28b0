//! Statements that run beside the load, on a connection of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use pgdyno_connect::control;
use pgdyno_model::target::Target;

use pgdyno_provision::{BenchError, Context};

/// How long repetitions that are waited for may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Statements that are run one after the other until one fails, or nobody wants them any more.
///
/// To drop it waits for nothing: on a slow disk a statement outlasts the patience of whoever gives
/// up. It ends with that statement, or with its server.
pub(super) struct Repeated {
    completed: Arc<AtomicU64>,
    enough: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Repeated {
    /// Runs `statements` over and over, with `pause` before each time.
    pub(super) fn begin(
        statements: &'static [&'static str],
        pause: Duration,
        target: &Target,
    ) -> Self {
        Self::begin_times(usize::MAX, statements, pause, target)
    }

    /// Runs `statements` one time.
    pub(super) fn once(statements: &'static [&'static str], target: &Target) -> Self {
        Self::begin_times(1, statements, Duration::ZERO, target)
    }

    fn begin_times(
        times: usize,
        statements: &'static [&'static str],
        pause: Duration,
        target: &Target,
    ) -> Self {
        let (completed, enough) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, is_over, target) =
            (Arc::clone(&completed), Arc::clone(&enough), target.clone());
        let thread = std::thread::Builder::new().name("crash-repeated".into()).spawn(move || {
            let Ok(mut client) = control::connect_to_own(&target) else { return };
            for _ in 0..times {
                std::thread::park_timeout(pause);
                if is_over.load(Ordering::Relaxed)
                    || statements.iter().any(|sql| client.batch_execute(sql).is_err())
                {
                    return;
                }
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { completed, enough, thread: thread.ok() }
    }

    /// Whether it is over: it failed, or was run as often as asked for.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// How often all statements completed until now (count).
    pub(super) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Waits until `count` repetitions have completed, or for as long as seems worth it.
    ///
    /// # Errors
    /// [`BenchError::Interrupted`].
    pub(super) fn wait_for(&self, count: u64, context: Context<'_>) -> Result<(), BenchError> {
        let is_done = || Ok((self.completed() >= count || self.has_ended()).then_some(()));
        context.poll(PATIENCE, Duration::from_millis(1), is_done).map(drop)
    }
}

impl Drop for Repeated {
    fn drop(&mut self) {
        self.enough.store(true, Ordering::Relaxed);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}
