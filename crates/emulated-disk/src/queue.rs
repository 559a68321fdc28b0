//! When a request is done that takes its time.

use std::time::{Duration, Instant};

/// The places where requests are served: with `n` places, `n` at a time; without, all of them at
/// once.
#[derive(Debug)]
pub(super) struct Queue {
    free_at: Vec<Instant>,
}

impl Queue {
    pub(super) fn new(parallel: Option<usize>, now: Instant) -> Self {
        Self { free_at: vec![now; parallel.unwrap_or(0)] }
    }

    /// When a request that arrives `now` and takes `service` is done.
    pub(super) fn done_at(&mut self, now: Instant, service: Duration) -> Instant {
        match self.free_at.iter_mut().min() {
            None => now + service,
            Some(place) => {
                *place = (*place).max(now) + service;
                *place
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn one_place_serves_one_after_the_other_and_none_bounds_nothing() {
        let now = Instant::now();
        let mut one = Queue::new(Some(1), now);
        assert_eq!(
            [one.done_at(now, 8 * MS), one.done_at(now, 8 * MS)],
            [now + 8 * MS, now + 16 * MS]
        );
        // What takes no time waits for its turn all the same.
        assert_eq!(one.done_at(now + MS, Duration::ZERO), now + 16 * MS);
        assert_eq!(one.done_at(now + 20 * MS, MS), now + 21 * MS);
        let mut two = Queue::new(Some(2), now);
        assert_eq!(
            [8, 8, 4].map(|ms| two.done_at(now, ms * MS)),
            [8, 8, 12].map(|ms| now + ms * MS)
        );
        let mut free = Queue::new(None, now);
        assert_eq!([free.done_at(now, 8 * MS), free.done_at(now, 8 * MS)], [now + 8 * MS; 2]);
    }
}
