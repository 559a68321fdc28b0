//! A ledger as it was at a cut that was not made: which transactions a state of the disk must hold,
//! may hold and must not hold.
//!
//! A recorded disk numbers its events. The ledger notes the newest one right before COMMIT is sent
//! and right after it is acknowledged. A state of the disk is what a cut leaves after some event
//! and before another ([`CutWindow`]).

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_model::ledger::{Entry, History, LogPositions, State, Token};

/// The cuts that leave a state of a disk, by the numbers of the disk's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutWindow {
    /// The newest event that the state shows something of.
    pub from: u64,
    /// The first event after which no cut leaves the state; `u64::MAX` if there is none.
    pub until: u64,
}

/// Returns the ledger as a state of `window` has to be judged by.
///
/// - What was acknowledged before the window's end is acknowledged: some cut leaves this state
///   after that acknowledgement.
/// - What was not sent to be committed before the window's beginning was never asked to commit:
///   nothing that the state shows is of a later time.
/// - Between them a transaction is in doubt.
///
/// A position is read after an acknowledgement and before a COMMIT. So the disk may be further on,
/// and a transaction is rather in doubt than wrongly missed.
pub fn history_at(
    history: &History,
    positions: &BTreeMap<Token, LogPositions>,
    window: CutWindow,
) -> History {
    let at = |entry: &Entry| {
        let state = match (entry.state, positions.get(&entry.token)) {
            (State::Acknowledged | State::Unknown, Some(position)) => state_at(*position, window),
            (State::Acknowledged, None) => State::Unknown,
            (state, _) => state,
        };
        let at = if state == entry.state { entry.at } else { entry.begun };
        Entry { state, at, ..*entry }
    };
    let clients = history.clients.iter();
    History { clients: clients.map(|entries| entries.iter().map(at).collect()).collect() }
}

fn state_at(position: LogPositions, window: CutWindow) -> State {
    match position.acknowledged {
        Some(acknowledged) if acknowledged < window.until => State::Acknowledged,
        _ if position.committing >= window.from => State::Issued,
        _ => State::Unknown,
    }
}

/// Returns the transactions that are in the state of an earlier flush and not in that of a `later`
/// one. What is on a disk at a flush grows from flush to flush.
pub fn shrinkage(earlier: &BTreeSet<Token>, later: &BTreeSet<Token>) -> Vec<Token> {
    earlier.difference(later).copied().collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pgdyno_model::ledger::Effect;

    use super::*;

    fn entry(sequence: u64, state: State) -> Entry {
        Entry {
            token: Token { client: 0, sequence },
            effect: Effect::default(),
            state,
            begun: Duration::from_millis(sequence),
            at: Duration::from_millis(sequence + 1),
        }
    }

    /// The state of a transaction that was sent after event `committing` and acknowledged after
    /// event `acknowledged`, at a cut of `window`.
    fn at(committing: u64, acknowledged: Option<u64>, from: u64, until: u64) -> State {
        let state = if acknowledged.is_some() { State::Acknowledged } else { State::Unknown };
        let history = History { clients: vec![vec![entry(1, state)]] };
        let position = LogPositions { committing, acknowledged };
        let positions = BTreeMap::from([(Token { client: 0, sequence: 1 }, position)]);
        history_at(&history, &positions, CutWindow { from, until }).clients[0][0].state
    }

    #[test]
    fn what_was_acknowledged_before_the_last_cut_that_leaves_a_state_must_be_in_it() {
        assert_eq!(at(10, Some(12), 9, 13), State::Acknowledged);
        assert_eq!(at(10, Some(12), 12, u64::MAX), State::Acknowledged);
        assert_eq!(at(10, Some(13), 12, 13), State::Unknown, "acknowledged after that flush");
    }

    #[test]
    fn what_was_sent_after_all_that_a_state_shows_must_not_be_in_it() {
        assert_eq!(at(10, Some(14), 10, 13), State::Issued);
        assert_eq!(at(10, Some(14), 11, 13), State::Unknown, "an event may be of its COMMIT");
        assert_eq!(at(10, None, 10, 20), State::Issued);
        assert_eq!(at(10, None, 11, 20), State::Unknown);
    }

    #[test]
    fn what_was_refused_or_never_sent_stays_so() {
        let history =
            History { clients: vec![vec![entry(1, State::Failed), entry(2, State::Issued)]] };
        let window = CutWindow { from: 0, until: u64::MAX };
        assert_eq!(history_at(&history, &BTreeMap::new(), window), history);
    }

    #[test]
    fn what_a_later_flush_lacks_is_named() {
        let tokens = |numbers: &[u64]| -> BTreeSet<Token> {
            numbers.iter().map(|&sequence| Token { client: 0, sequence }).collect()
        };
        assert_eq!(shrinkage(&tokens(&[1, 2]), &tokens(&[1, 2, 3])), []);
        assert_eq!(
            shrinkage(&tokens(&[1, 2]), &tokens(&[2, 3])),
            [Token { client: 0, sequence: 1 }]
        );
    }
}
