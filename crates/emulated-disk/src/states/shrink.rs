//! Losses of a state, and the smallest part of them that still does harm.

use super::state::{State, Tear, Window};
use super::stretch::Stretch;

/// A write, or the end of one, that is missing from a state and had been written by a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A write, by its number.
    Write(u64),
    /// The end of a write that is torn.
    End(Tear),
}

impl Loss {
    /// Returns the number of the write that is lost, wholly or in part.
    pub fn write(self) -> u64 {
        match self {
            Self::Write(number) | Self::End(Tear { write: number, .. }) => number,
        }
    }
}

impl Stretch {
    /// Returns the losses of `state` among the writes before event `until`, in their order.
    pub fn losses(&self, state: &State, until: u64) -> Vec<Loss> {
        let loss = |number: u64| match state.torn {
            _ if number > state.newest || state.omitted.binary_search(&number).is_ok() => {
                Some(Loss::Write(number))
            }
            Some(tear) if tear.write == number => Some(Loss::End(tear)),
            _ => None,
        };
        self.numbers(until).filter_map(loss).collect()
    }

    /// Returns the state with all writes before event `until` but for `losses`.
    pub fn without(&self, losses: &[Loss], until: u64) -> State {
        let mut omitted: Vec<u64> = losses
            .iter()
            .filter_map(|loss| if let Loss::Write(number) = loss { Some(*number) } else { None })
            .collect();
        omitted.sort_unstable();
        let is_there = |number: &u64| omitted.binary_search(number).is_err();
        let newest = self.numbers(until).filter(is_there).last().unwrap_or_default();
        omitted.retain(|number| *number < newest);
        let torn = losses
            .iter()
            .find_map(|loss| if let Loss::End(tear) = loss { Some(*tear) } else { None });
        State { newest, omitted, torn }
    }

    /// Returns the cuts that leave `state`. They end at the first flush that covers one of its
    /// losses.
    pub fn window(&self, state: &State) -> Window {
        let lost = self.losses(state, u64::MAX).first().map_or(u64::MAX, |loss| loss.write());
        let is_in = |write: usize| self.writes[write].number >= lost;
        let ends = self.epochs.iter().find(|epoch| epoch.writes.clone().any(is_in));
        Window { from: state.newest, until: ends.map_or(u64::MAX, |epoch| epoch.until) }
    }

    fn numbers(&self, until: u64) -> impl Iterator<Item = u64> {
        self.writes.iter().map(|write| write.number).take_while(move |number| *number < until)
    }
}

/// Returns a part of `all` that still `fails`, and does not once any one element is left out. `all`
/// itself must fail.
///
/// This is delta debugging: the algorithm *ddmin* of Zeller and Hildebrandt, "Simplifying and
/// Isolating Failure-Inducing Input", IEEE Transactions on Software Engineering 28 (2002). If one
/// of n elements is the cause, it calls `fails` about 2 log2 n times.
///
/// # Errors
/// The first of `fails`.
pub fn fewest<T: Clone, E>(
    all: &[T],
    mut fails: impl FnMut(&[T]) -> Result<bool, E>,
) -> Result<Vec<T>, E> {
    let (mut fewest, mut parts) = (all.to_vec(), 2);
    while fewest.len() > 1 {
        match smaller(&fewest, parts, &mut fails)? {
            Some((part, more)) => (fewest, parts) = (part, more),
            None if parts >= fewest.len() => break,
            None => parts = (parts * 2).min(fewest.len()),
        }
    }
    Ok(fewest)
}

/// Looks for one of `parts` equal parts of `all` that fails, else for all but one of them. Returns
/// it, and in how many parts to cut it next.
fn smaller<T: Clone, E>(
    all: &[T],
    parts: usize,
    fails: &mut impl FnMut(&[T]) -> Result<bool, E>,
) -> Result<Option<(Vec<T>, usize)>, E> {
    let size = all.len().div_ceil(parts);
    for part in all.chunks(size) {
        if fails(part)? {
            return Ok(Some((part.to_vec(), 2)));
        }
    }
    // Of two parts, all but one is the other.
    for left_out in all.chunks(size).enumerate().map(|(n, _)| n).filter(|_| parts > 2) {
        let others = all.chunks(size).enumerate().filter(|(n, _)| *n != left_out);
        let rest: Vec<T> = others.flat_map(|(_, part)| part.iter().cloned()).collect();
        if fails(&rest)? {
            return Ok(Some((rest, (parts - 1).max(2))));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;
    use crate::states::{StretchFlush, StretchWrite};

    /// The fewest of the numbers below `count`, with how often was asked.
    fn fewest_of(count: usize, fails: impl Fn(&BTreeSet<usize>) -> bool) -> (Vec<usize>, usize) {
        let mut asked = 0;
        let all: Vec<usize> = (0..count).collect();
        let found = fewest(&all, |part| {
            asked += 1;
            Ok::<_, Infallible>(fails(&part.iter().copied().collect()))
        });
        (found.unwrap(), asked)
    }

    #[test]
    fn one_cause_among_a_thousand_is_found_with_few_questions() {
        for cause in [0, 500, 999] {
            let (found, asked) = fewest_of(1000, |part| part.contains(&cause));
            assert_eq!(found, [cause]);
            assert!(asked <= 20, "{asked}");
        }
    }

    #[test]
    fn an_end_of_the_writes_that_only_fails_as_a_whole_stays_whole() {
        let (found, _) = fewest_of(20, |part| (13..20).all(|n| part.contains(&n)));
        assert_eq!(found, (13..20).collect::<Vec<_>>());
    }

    proptest! {
        #[test]
        fn what_is_found_fails_and_no_one_can_be_left_out(
            count in 1..40_usize,
            causes in prop::collection::vec(prop::collection::btree_set(0..40_usize, 1..4), 1..4),
        ) {
            let fails = |part: &BTreeSet<usize>| {
                causes.iter().any(|cause| cause.iter().all(|n| part.contains(&(n % count))))
            };
            let (found, _) = fewest_of(count, fails);
            let found: BTreeSet<usize> = found.into_iter().collect();
            prop_assert!(fails(&found));
            for one in &found {
                let mut rest = found.clone();
                rest.remove(one);
                prop_assert!(rest.is_empty() || !fails(&rest), "{found:?} without {one}");
            }
        }

        #[test]
        fn a_state_is_what_lacks_its_losses(
            newest in 0..9_u64,
            omitted in prop::collection::btree_set(1..9_u64, 0..4),
            kept in 0..8_u64,
        ) {
            let write = |number| StretchWrite {
                number, sector: number * 8, contents: vec![1; 8], is_discard: false,
            };
            let flush = StretchFlush { number: 10, covers: 8 };
            let stretch = Stretch::new((1..9).map(write).collect(), vec![flush], |_| 0);
            let omitted: Vec<u64> = omitted.into_iter().filter(|number| *number < newest).collect();
            let torn = (kept > 0 && newest > 0)
                .then_some(Tear { write: newest, kept: kept * 512 });
            let state = State { newest, omitted, torn };
            let losses = stretch.losses(&state, 10);
            prop_assert_eq!(&stretch.without(&losses, 10), &state);
            // The flush covers all.
            let is_whole = stretch.losses(&state, u64::MAX).is_empty();
            let until = if is_whole { u64::MAX } else { 10 };
            prop_assert_eq!(stretch.window(&state), Window { from: newest, until });
            let all = stretch.without(&[], 10);
            prop_assert_eq!(all, State { newest: 8, ..State::default() });
        }
    }
}
