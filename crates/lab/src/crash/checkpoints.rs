//! Checkpoints during a round's load: recovery replays WAL since the last that completed, so that
//! without one no flush of a data file is under test.
//!
//! [`Checkpoints::start`] when the load is under way; [`Checkpoints::wait_for`] before the fault
//! strikes. They end with the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pgdyno_connect::control;
use pgdyno_model::target::Target;

use crate::LabError;

/// How long a checkpoint that is waited for may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often a waiting thread looks whether it is still wanted.
const TICK: Duration = Duration::from_millis(5);

/// A switch to the next WAL segment and a checkpoint: all segments before it are removed or
/// recycled, so that nothing but this checkpoint can be recovered from.
const SWITCH_AND_CHECKPOINT: [&str; 2] = ["SELECT pg_catalog.pg_switch_wal()", "CHECKPOINT"];

/// Checkpoints that are made over and over, with a pause before each.
pub(super) struct Checkpoints {
    completed: Arc<AtomicU64>,
    enough: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpoints {
    /// Makes checkpoints on `target`, `pause` before each, until the server is gone.
    pub(super) fn start(target: &Target, pause: Duration) -> Self {
        let (completed, enough) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, is_over, target) =
            (Arc::clone(&completed), Arc::clone(&enough), target.clone());
        let thread =
            std::thread::Builder::new().name("crash-checkpoints".into()).spawn(move || {
                let Ok(mut client) = control::connect_to_own(&target) else { return };
                while wait(pause, &is_over) {
                    for sql in SWITCH_AND_CHECKPOINT {
                        if client.batch_execute(sql).is_err() {
                            return;
                        }
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        Self { completed, enough, thread: thread.ok() }
    }

    /// Checkpoints that completed until now (count); the server may have made others by itself.
    pub(super) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Waits until `count` have completed, or for as long as seems worth it.
    ///
    /// # Errors
    /// [`LabError::Interrupted`].
    pub(super) fn wait_for(&self, count: u64, stop: &AtomicBool) -> Result<(), LabError> {
        let until = Instant::now() + PATIENCE;
        let is_alive = || self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        while self.completed() < count && is_alive() && Instant::now() < until {
            if stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        // Its thread is not waited for: on a slow disk a checkpoint outlasts the patience of
        // whoever gives up. It ends with that checkpoint, or with its server.
        self.enough.store(true, Ordering::Relaxed);
    }
}

/// Waits for `pause`; false if it is over before.
fn wait(pause: Duration, is_over: &AtomicBool) -> bool {
    let until = Instant::now() + pause;
    loop {
        if is_over.load(Ordering::Relaxed) {
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(TICK));
    }
}
