//! How far another host's clock is from ours.
//!
//! Each exchange has four stamps: an order is sent (ours), arrives (theirs), is answered (theirs),
//! and the answer arrives (ours). The true offset lies within half of the round trip around
//! `((received − sent) + (replied − arrived)) / 2`, however the trip is divided (RFC 5905, section
//! 8). [`ClockEstimate`] keeps the latest exchanges and uses the one that says most.

use std::collections::VecDeque;

/// Nanoseconds on one host's monotonic clock, from an instant of its choice.
pub type Nanos = u64;

/// Exchanges that are kept.
const KEPT: usize = 16;
/// Two clocks drift apart by a nanosecond in this many at most. Kernels slew a monotonic clock by
/// up to 500 parts in a million; two may be slewed in opposite directions.
const DRIFT: u64 = 1_000;

/// Stamps of one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When the order was sent, on our clock.
    pub sent: Nanos,
    /// When it arrived, on theirs.
    pub received: Nanos,
    /// When the answer was sent, on theirs.
    pub replied: Nanos,
    /// When the answer arrived, on ours.
    pub arrived: Nanos,
}

/// Their clock minus ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// Best estimate (nanoseconds).
    pub nanoseconds: i64,
    /// The true offset is at most this far from the estimate (nanoseconds).
    pub uncertainty: u64,
}

impl Offset {
    /// Converts a time on our clock to theirs.
    pub fn to_theirs(self, ours: Nanos) -> Nanos {
        ours.saturating_add_signed(self.nanoseconds)
    }

    /// Converts a time on their clock to ours.
    pub fn to_ours(self, theirs: Nanos) -> Nanos {
        theirs.saturating_add_signed(self.nanoseconds.saturating_neg())
    }
}

/// Why an exchange is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// The stamps run backwards.
    #[error("its clock ran backwards within one exchange")]
    Backwards,
    /// The exchange contradicts earlier ones by more than drift explains.
    #[error("its clock stepped by {} ms", nanoseconds / 1_000_000)]
    Stepped {
        /// Length of the step (nanoseconds).
        nanoseconds: i64,
    },
}

/// Estimate of another clock's offset, from repeated exchanges.
#[derive(Clone, Debug, Default)]
pub struct ClockEstimate {
    /// When each exchange ended, on our clock, and what it said.
    exchanges: VecDeque<(Nanos, Offset)>,
}

impl ClockEstimate {
    /// Adds an exchange.
    ///
    /// # Errors
    /// [`ClockError`]: the other clock is not monotonic, or stood still (a host that slept).
    pub fn add(&mut self, exchange: Exchange) -> Result<(), ClockError> {
        let Exchange { sent, received, replied, arrived } = exchange;
        let (Some(away), Some(held)) = (arrived.checked_sub(sent), replied.checked_sub(received))
        else {
            return Err(ClockError::Backwards);
        };
        let out = i128::from(received) - i128::from(sent);
        let back = i128::from(replied) - i128::from(arrived);
        let nanoseconds = i64::try_from((out + back) / 2).map_err(|_| ClockError::Backwards)?;
        // Half of the trip, and a nanosecond for the division.
        let offset = Offset { nanoseconds, uncertainty: away.saturating_sub(held) / 2 + 1 };
        if let Some(known) = self.offset(arrived) {
            let step = nanoseconds.saturating_sub(known.nanoseconds);
            if step.unsigned_abs() > known.uncertainty.saturating_add(offset.uncertainty) {
                return Err(ClockError::Stepped { nanoseconds: step });
            }
        }
        if self.exchanges.len() == KEPT {
            self.exchanges.pop_front();
        }
        self.exchanges.push_back((arrived, offset));
        Ok(())
    }

    /// Exchanges that are known (count).
    pub fn exchanges(&self) -> usize {
        self.exchanges.len()
    }

    /// Returns the offset at `now`, on our clock; none before the first exchange.
    ///
    /// An exchange says less the longer ago it was.
    pub fn offset(&self, now: Nanos) -> Option<Offset> {
        let aged = |(at, offset): &(Nanos, Offset)| Offset {
            uncertainty: offset.uncertainty.saturating_add(now.saturating_sub(*at) / DRIFT),
            ..*offset
        };
        self.exchanges.iter().map(aged).min_by_key(|offset| offset.uncertainty)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    /// An exchange with a clock that is `offset` ahead, at `at`, with these ways to and fro.
    fn exchange(at: Nanos, offset: i64, to: u64, fro: u64) -> Exchange {
        let received = (at + to).saturating_add_signed(offset);
        Exchange { sent: at, received, replied: received + 5, arrived: at + to + 5 + fro }
    }

    proptest! {
        #[test]
        fn the_true_offset_lies_within_the_uncertainty(
            offset in -1_000_000_000_000_i64..1_000_000_000_000,
            ways in prop::collection::vec((0_u64..50 * MS, 0_u64..50 * MS), 1..40),
        ) {
            let mut clock = ClockEstimate::default();
            let mut at = 2_000_000_000_000;
            for (to, fro) in ways {
                clock.add(exchange(at, offset, to, fro)).unwrap();
                at += 1_000 * MS;
                let known = clock.offset(at).unwrap();
                prop_assert!(known.nanoseconds.abs_diff(offset) <= known.uncertainty);
                prop_assert!(known.to_ours(known.to_theirs(at)) == at);
            }
        }
    }

    #[test]
    fn the_shortest_round_trip_counts_until_drift_outweighs_it() {
        let mut clock = ClockEstimate::default();
        clock.add(exchange(1_000 * MS, 70, 8 * MS, 0)).unwrap();
        clock.add(exchange(2_000 * MS, 70, MS, MS)).unwrap();
        assert_eq!(clock.offset(2_002 * MS).unwrap().nanoseconds, 70);
        clock.add(exchange(12_000 * MS, 70, 3 * MS, MS)).unwrap();
        // 2 ms for the trip and none for drift, against 1 ms and 10.
        assert_eq!(clock.offset(12_004 * MS).unwrap().nanoseconds, 70 + MS.cast_signed());
    }

    #[test]
    fn a_clock_that_steps_or_runs_backwards_is_noticed() {
        let mut clock = ClockEstimate::default();
        clock.add(exchange(1_000 * MS, 0, MS, MS)).unwrap();
        clock.add(exchange(2_000 * MS, MS.cast_signed(), MS, MS)).unwrap();
        let stepped = clock.add(exchange(3_000 * MS, -30 * MS.cast_signed(), MS, MS));
        let most = -28 * MS.cast_signed();
        assert!(matches!(stepped, Err(ClockError::Stepped { nanoseconds }) if nanoseconds < most));
        let backwards = Exchange { sent: 5, received: 9, replied: 8, arrived: 7 };
        assert_eq!(clock.add(backwards), Err(ClockError::Backwards));
    }
}
