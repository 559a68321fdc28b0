//! Test beds side by side, each of which judges one state at a time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use pgdyno_emulated_disk::states::Candidate;

use super::judge_state::{Judge, JudgedState};
use crate::verify::Depth;
use pgdyno_provision::BenchError;

/// When judging ends before all states are judged.
pub(super) struct Limits {
    began: Instant,
    budget: Duration,
    /// States that may fail (count).
    enough: u64,
    failed: AtomicU64,
}

impl Limits {
    /// Returns limits that begin now: a time, and a number of states that may fail, of which
    /// `failed` have.
    pub(super) fn new(budget: Duration, enough: u64, failed: u64) -> Self {
        Self { began: Instant::now(), budget, enough, failed: AtomicU64::new(failed) }
    }

    /// Whether no further state is to be judged.
    pub(super) fn is_over(&self) -> bool {
        self.began.elapsed() >= self.budget || self.failed.load(Ordering::Relaxed) >= self.enough
    }

    fn end(&self) {
        self.failed.store(self.enough, Ordering::Relaxed);
    }
}

/// Judges `candidates` from the place `first` on, one at a time by each judge, until all are judged
/// or `limits` are over. `each` is given them in their order, with the place of each.
///
/// # Errors
/// A judge's first: pgdyno itself cannot go on, or a signal asked to stop.
pub(super) fn judge_side_by_side(
    judges: &mut [Judge<'_, '_>],
    candidates: &[Candidate],
    first: usize,
    depth: &(dyn Fn(usize) -> Depth + Sync),
    limits: &Limits,
    each: &mut dyn FnMut(usize, JudgedState),
) -> Result<(), BenchError> {
    let next = AtomicUsize::new(first);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for judge in judges {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while !limits.is_over() {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(candidate) = candidates.get(place) else { return };
                    let judged = judge.judge(candidate, depth(place));
                    let is_last = judged.is_err();
                    if sender.send((place, judged)).is_err() || is_last {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let (mut waiting, mut due, mut failure) = (BTreeMap::new(), first, None);
        for (place, judged) in receiver {
            match judged {
                Ok(judged) => drop(waiting.insert(place, judged)),
                Err(error) => {
                    limits.end();
                    failure.get_or_insert(error);
                }
            }
            while let Some(judged) = waiting.remove(&due) {
                if judged.verdict.is_failure() {
                    limits.failed.fetch_add(1, Ordering::Relaxed);
                }
                each(due, judged);
                due += 1;
            }
        }
        failure.map_or(Ok(()), Err)
    })
}
