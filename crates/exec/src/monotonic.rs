//! Instants that several processes of one machine can compare.
//!
//! [`std::time::Instant`] belongs to the process that read it. A [`MonotonicTime`] is a reading of
//! CLOCK_MONOTONIC, which is one clock for the machine. The process of an emulated disk stamps its
//! power cut with it; [`MonotonicTime::to_instant`] puts that cut among the asking process's
//! instants.
//!
//! ```
//! # use std::time::{Duration, Instant};
//! # use pgdyno_exec::monotonic::MonotonicTime;
//! let cut = MonotonicTime::now(); // in the disk's process
//! let after = Instant::now(); // in this one
//! let lateness: Duration = after - cut.to_instant().unwrap();
//! ```

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A reading of CLOCK_MONOTONIC (nanoseconds). The clock stops while the machine sleeps and begins
/// anew when it boots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MonotonicTime {
    nanoseconds: u64,
}

impl MonotonicTime {
    /// Reads the clock.
    pub fn now() -> Self {
        let time = clock_gettime(ClockId::Monotonic);
        let whole = u64::try_from(time.tv_sec).unwrap_or_default().saturating_mul(1_000_000_000);
        Self { nanoseconds: whole.saturating_add(u64::try_from(time.tv_nsec).unwrap_or_default()) }
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanoseconds.saturating_sub(earlier.nanoseconds))
    }

    /// Returns this reading as an instant of this process; none if it is outside of the range of
    /// instants.
    ///
    /// Both clocks are read, one right after the other. The instant is early by the time between:
    /// below a microsecond, unless the thread was interrupted there. Of three tries the tightest
    /// counts.
    pub fn to_instant(self) -> Option<Instant> {
        let tries = (0..3).map(|_| {
            let before = Instant::now();
            let now = Self::now();
            (before.elapsed(), before, now)
        });
        let (_, instant, now) = tries.min_by_key(|(took, ..)| *took)?;
        match self <= now {
            true => instant.checked_sub(now.since(self)),
            false => instant.checked_add(self.since(now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_and_a_reading_of_the_same_moment_are_one() {
        let (before, reading, after) = (Instant::now(), MonotonicTime::now(), Instant::now());
        let instant = reading.to_instant().unwrap();
        // Early by an interruption at most, and never late.
        assert!(instant + Duration::from_secs(10) >= before && instant <= after);
    }

    #[test]
    fn distances_are_kept_in_both_directions() {
        let now = MonotonicTime::now();
        let hour = 3_600_000_000_000;
        let later = MonotonicTime { nanoseconds: now.nanoseconds + hour };
        assert_eq!(later.since(now), Duration::from_secs(3600));
        assert_eq!(now.since(later), Duration::ZERO);
        let (now, later) = (now.to_instant().unwrap(), later.to_instant().unwrap());
        assert!(later > now + Duration::from_secs(3590));
        let read: MonotonicTime = serde_json::from_str("7").unwrap();
        assert_eq!(read.since(MonotonicTime::default()), Duration::from_nanos(7));
    }
}
