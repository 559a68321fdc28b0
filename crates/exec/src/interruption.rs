//! When this process was told to end, which control connections obey by themselves.
//!
//! The command line calls [`begin`] at the first signal. From then on what waits for a server ends
//! at once; what is begun later, to tidy up, has [`TIDYING`] from the signal on.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long servers may be asked to tidy up after a signal.
pub const TIDYING: Duration = Duration::from_millis(1200);

static BEGUN: OnceLock<Instant> = OnceLock::new();

/// Notes that this process is to end. Only the first call counts.
pub fn begin() {
    let _ = BEGUN.set(Instant::now());
}

/// Tells whether what began at `began` must end now.
#[must_use]
pub fn ends(began: Instant) -> bool {
    BEGUN.get().is_some_and(|begun| began <= *begun || begun.elapsed() > TIDYING)
}
