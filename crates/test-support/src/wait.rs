//! Waiting for another process.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A stop flag that nobody sets.
pub static RUN: AtomicBool = AtomicBool::new(false);

/// The longest wait. It only ends a test that hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Calls `look` until it returns a value. Panics with the name `what` after a minute.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "waited a minute for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
