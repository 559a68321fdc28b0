//! Which states are looked at, and in which order.

use std::collections::{HashMap, VecDeque};

use pgdyno_model::crash::StateKind;

use super::epoch::EpochStates;
use super::state::{State, Window};
use super::stretch::Stretch;

/// A state that a cut could have left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The state.
    pub state: State,
    /// The cuts that leave it.
    pub window: Window,
    /// How it was come by.
    pub kind: StateKind,
    /// Flush boundaries whose image it is (count): 1, or more where flushes changed nothing; 0 for
    /// a state within an epoch.
    pub boundaries: u64,
}

/// States within epochs.
#[derive(Clone, Debug, Default)]
pub struct Within {
    /// The states, so ordered that any first part of them covers kinds evenly and, of the promising
    /// ones of a kind and of its others, epochs.
    pub candidates: Vec<Candidate>,
    /// By kind: how many states there are (count), with those of [`Self::equal`].
    pub counts: Vec<(StateKind, u64)>,
    /// States that were left out since their image is that of another state, and that one is judged
    /// at least as strictly (count).
    pub equal: u64,
}

impl Stretch {
    /// Returns every flush boundary once, in order. The first is the image before the stretch.
    ///
    /// Neighbours with equal images are one candidate, which is judged for all of them.
    pub fn boundaries(&self) -> Vec<Candidate> {
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut last = None;
        for epoch in &self.epochs {
            match candidates.last_mut() {
                Some(same) if last == Some(epoch.sum) => {
                    same.window.until = epoch.until;
                    same.boundaries += 1;
                }
                _ => candidates.push(Candidate {
                    state: State { newest: epoch.durable, ..State::default() },
                    window: Window { from: epoch.durable, until: epoch.until },
                    kind: StateKind::Boundary,
                    boundaries: 1,
                }),
            }
            last = Some(epoch.sum);
        }
        candidates
    }

    /// Returns the states within epochs that are looked at. Of each kind, those that are
    /// `promising` come before the others. Epochs take turns, each with its states in an order
    /// drawn by `seed`.
    pub fn within(&self, seed: u64, mut promising: impl FnMut(&State) -> bool) -> Within {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut judged: HashMap<u128, Window> = HashMap::new();
        for (epoch, window) in self.epochs.iter().zip(self.boundary_windows()) {
            judged.entry(epoch.sum).or_insert(window);
        }
        let mut within = Within::default();
        let mut of_kinds: Vec<Vec<Candidate>> =
            StateKind::WITHIN.iter().map(|_| Vec::new()).collect();
        within.counts = StateKind::WITHIN.iter().map(|kind| (*kind, 0)).collect();
        for epoch in &self.epochs {
            let states = EpochStates::new(epoch, &self.writes[epoch.writes.clone()], &self.base);
            for ((kind, count), of_kind) in within.counts.iter_mut().zip(&mut of_kinds) {
                for (state, sum) in states.of_kind(*kind) {
                    *count += 1;
                    let window = Window { from: state.newest, until: epoch.until };
                    if judged.get(&sum).is_some_and(|earlier| earlier.covers(&window)) {
                        within.equal += 1;
                        continue;
                    }
                    judged.entry(sum).or_insert(window);
                    of_kind.push(Candidate { state, window, kind: *kind, boundaries: 0 });
                }
            }
        }
        for of_kind in &mut of_kinds {
            random.shuffle(of_kind);
            let mut turns: HashMap<(bool, u64), usize> = HashMap::new();
            of_kind.sort_by_cached_key(|Candidate { state, window, .. }| {
                // The flush that ends it tells an epoch from others.
                let group = (!promising(state), window.until);
                let turn = turns.entry(group).or_default();
                *turn += 1;
                (group.0, *turn)
            });
        }
        let mut queues: Vec<VecDeque<Candidate>> =
            of_kinds.into_iter().map(VecDeque::from).collect();
        while queues.iter().any(|queue| !queue.is_empty()) {
            within.candidates.extend(queues.iter_mut().filter_map(VecDeque::pop_front));
        }
        within
    }

    /// Returns the window for which the first image of each epoch is judged as a boundary.
    fn boundary_windows(&self) -> impl Iterator<Item = Window> {
        let each = |c: Candidate| {
            std::iter::repeat_n(c.window, usize::try_from(c.boundaries).unwrap_or(1))
        };
        self.boundaries().into_iter().flat_map(each)
    }
}
