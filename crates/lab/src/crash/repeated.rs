//! A statement that runs beside the load, on a connection of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use pgdyno_connect::control;
use pgdyno_model::target::Target;

/// A statement that is run until it fails, or nobody wants it any more.
///
/// To drop it waits for nothing: on a slow disk a statement outlasts the patience of whoever gives
/// up. It ends with that statement, or with its server.
pub(super) struct Repeated {
    enough: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Repeated {
    /// Runs `sql` over and over.
    pub(super) fn begin(sql: &'static str, target: &Target) -> Self {
        Self::begin_times(sql, target, usize::MAX)
    }

    /// Runs `sql` one time.
    pub(super) fn once(sql: &'static str, target: &Target) -> Self {
        Self::begin_times(sql, target, 1)
    }

    fn begin_times(sql: &'static str, target: &Target, times: usize) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let (told, target) = (Arc::clone(&enough), target.clone());
        let thread = std::thread::Builder::new().name("crash-repeated".into()).spawn(move || {
            let Ok(mut client) = control::connect_to_own(&target) else { return };
            for _ in 0..times {
                if told.load(Ordering::Relaxed) || client.batch_execute(sql).is_err() {
                    return;
                }
            }
        });
        Self { enough, thread: thread.ok() }
    }

    /// Whether it is over: it failed, or was run as often as asked for.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Repeated {
    fn drop(&mut self) {
        self.enough.store(true, Ordering::Relaxed);
    }
}
