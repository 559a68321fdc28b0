//! The end of this process, which control connections obey by themselves.
//!
//! The command line calls [`begin`] at the first signal. Calls that wait for a server then fail at
//! once. Calls that begin later, to tidy up, may take until [`TIDYING`] after the signal.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long after the signal calls to servers may still take.
pub const TIDYING: Duration = Duration::from_millis(1200);

static BEGUN: OnceLock<Instant> = OnceLock::new();

/// Records that this process is to end. Only the first call counts.
pub fn begin() {
    let _ = BEGUN.set(Instant::now());
}

/// Whether a call that began at `began` must end now.
pub fn ends(began: Instant) -> bool {
    BEGUN.get().is_some_and(|begun| began <= *begun || begun.elapsed() > TIDYING)
}
