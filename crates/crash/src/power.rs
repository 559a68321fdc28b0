//! Power of a round: how much was under test, and so how much it means if nothing was lost.

use std::time::Duration;

use pgdyno_model::crash::RoundPower;
use pgdyno_model::ledger::{Entry, History, State};

/// Counts of a round. Times are on the ledger's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stake {
    /// Checkpoints that completed (count).
    pub(super) checkpoints: u64,
    /// Flushes that the storages completed (count).
    pub(super) flushes: Option<u64>,
    /// When the last flush was acknowledged, where that is known.
    pub(super) last_flush: Option<Duration>,
    /// When a commit of pgdyno's own was acknowledged, right before the fault.
    pub(super) own_commit: Option<Duration>,
    /// When the fault struck.
    pub(super) struck_at: Duration,
    /// How long the load had lasted.
    pub(super) load: Duration,
    /// The share of its cache that an emulated disk lost with its power; none without such a disk.
    pub(super) cache_lost: Option<f64>,
    /// Whether commits are acknowledged before they are flushed (`synchronous_commit = off`).
    pub(super) is_asynchronous: bool,
}

impl Stake {
    /// Returns how much the round put under test, given the commits that clients know of.
    ///
    /// A server that waits for flushes tells of commits after the flush that they waited for: they
    /// are those that it acknowledged since the last flush was done. One that does not wait had
    /// acknowledged them before: since the flush before the last. Where those moments are not
    /// known, flushes are taken to have been as far apart as on average.
    pub(super) fn power(&self, history: &History) -> RoundPower {
        let apart =
            self.flushes.and_then(|flushes| self.load.checked_div(u32::try_from(flushes).ok()?));
        let last =
            self.last_flush.or_else(|| apart.map(|apart| self.struck_at.saturating_sub(apart)));
        let since = if self.is_asynchronous {
            last.zip(apart).map(|(last, apart)| last.saturating_sub(apart)..last)
        } else {
            last.map(|last| last..Duration::MAX)
        };
        let last_window = since.map(|window| {
            let is_at_stake =
                |entry: &&Entry| entry.state == State::Acknowledged && window.contains(&entry.at);
            let own = self.own_commit.is_some_and(|at| window.contains(&at));
            history.entries().filter(is_at_stake).count() as u64 + u64::from(own)
        });
        RoundPower {
            checkpoints: Some(self.checkpoints),
            flushes: self.flushes,
            last_window,
            disk_flushes: self.cache_lost.is_some(),
            cache_lost: self.cache_lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_model::ledger::{Effect, Token};

    use super::*;

    fn history() -> History {
        let entry = |sequence: u64, state| Entry {
            token: Token { client: 0, sequence },
            effect: Effect::default(),
            state,
            begun: Duration::from_millis(100 * sequence - 90),
            at: Duration::from_millis(100 * sequence),
        };
        let mut entries: Vec<Entry> = (1..=9).map(|n| entry(n, State::Acknowledged)).collect();
        entries.push(entry(10, State::Unknown));
        History { clients: vec![entries] }
    }

    fn stake() -> Stake {
        Stake {
            checkpoints: 2,
            flushes: Some(4),
            last_flush: None,
            own_commit: None,
            struck_at: Duration::from_secs(1),
            load: Duration::from_secs(1),
            cache_lost: None,
            is_asynchronous: false,
        }
    }

    #[test]
    fn the_last_window_holds_what_was_acknowledged_after_the_last_flush() {
        let last_flush = Some(Duration::from_millis(650));
        let power = Stake { last_flush, cache_lost: Some(1.0), ..stake() }.power(&history());
        assert_eq!(
            (power.last_window, power.disk_flushes),
            (Some(3), true),
            "at 700, 800 and 900 ms"
        );
        let last_flush = Some(Duration::from_millis(950));
        assert_eq!(Stake { last_flush, ..stake() }.power(&history()).last_window, Some(0));
        let own_commit = Some(Duration::from_millis(960));
        let power = Stake { last_flush, own_commit, ..stake() }.power(&history());
        assert_eq!(
            power.last_window,
            Some(1),
            "the position of its WAL is looked for after recovery"
        );
    }

    #[test]
    fn what_is_acknowledged_before_its_flush_is_looked_for_before_it() {
        let asynchronous = Stake { is_asynchronous: true, ..stake() };
        let last_flush = Some(Duration::from_millis(750));
        // Flushes are 250 ms apart: from 500 ms to 750 ms.
        let power = Stake { last_flush, ..asynchronous }.power(&history());
        assert_eq!(power.last_window, Some(3), "at 500, 600 and 700 ms");
    }

    #[test]
    fn without_its_moment_the_window_is_as_long_as_flushes_are_apart() {
        assert_eq!(stake().power(&history()).last_window, Some(2), "at 800 and 900 ms");
        assert_eq!(Stake { flushes: None, ..stake() }.power(&history()).last_window, None);
        assert_eq!(Stake { flushes: Some(0), ..stake() }.power(&history()).last_window, None);
    }
}
