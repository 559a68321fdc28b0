//! The states of one epoch, and the sums of their images.

use std::collections::HashMap;

use pgdyno_model::crash::StateKind;

use super::image::exchanged;
use super::state::{SECTOR, State, Tear};
use super::stretch::Epoch;
use super::write::{Content, StretchWrite};
use crate::page::TearUnit;

/// The most writes of an epoch of which all subsets are looked at.
const FEW: usize = 4;

/// An epoch with the order in which its sectors were written.
pub(super) struct EpochStates<'a> {
    epoch: &'a Epoch,
    writes: &'a [StretchWrite],
    base: &'a HashMap<u64, Content>,
    /// Of each sector the writes that touch it, by their places, and what they leave.
    writers: HashMap<u64, Vec<(usize, Content)>>,
    /// Sums of the images after none of the writes, after the first, and so on.
    sums: Vec<u128>,
}

impl<'a> EpochStates<'a> {
    pub(super) fn new(
        epoch: &'a Epoch,
        writes: &'a [StretchWrite],
        base: &'a HashMap<u64, Content>,
    ) -> Self {
        let mut writers: HashMap<u64, Vec<(usize, Content)>> = HashMap::new();
        for (place, write) in writes.iter().enumerate() {
            for (sector, content) in write.sectors() {
                writers.entry(sector).or_default().push((place, content));
            }
        }
        let mut states = Self { epoch, writes, base, writers, sums: Vec::new() };
        states.sums = states.prefix_sums();
        states
    }

    /// Returns the states of `kind`, each with the sum of its image.
    pub(super) fn of_kind(&self, kind: StateKind) -> Vec<(State, u128)> {
        let n = self.writes.len();
        let sets = (1_usize << n.min(FEW)) - usize::from(!self.is_last());
        match kind {
            StateKind::Subset if n <= FEW => (1..sets)
                .map(|set| {
                    let omitted: Vec<usize> = (0..n).filter(|at| set >> at & 1 == 0).collect();
                    self.but_for(&omitted)
                })
                .collect(),
            StateKind::Prefix if n > FEW => self.prefixes(),
            // To omit the last, or the last two, is a prefix.
            StateKind::Omitted if n > FEW => (0..n - 1).map(|at| self.but_for(&[at])).collect(),
            StateKind::PairOmitted if n > FEW => {
                (0..n - 2).map(|at| self.but_for(&[at, at + 1])).collect()
            }
            StateKind::Torn4096 | StateKind::Torn512 => self.torn(kind),
            StateKind::Boundary
            | StateKind::Subset
            | StateKind::Prefix
            | StateKind::Omitted
            | StateKind::PairOmitted => Vec::new(),
        }
    }

    /// Returns the state with all writes but those at the places `omitted`, which are in order.
    fn but_for(&self, omitted: &[usize]) -> (State, u128) {
        let is_there = |place: &usize| !omitted.contains(place);
        let newest = (0..self.writes.len()).rev().find(is_there);
        let newest = newest.map_or(self.epoch.durable, |place| self.writes[place].number);
        let numbers = omitted.iter().map(|&place| self.writes[place].number);
        let state = State {
            newest,
            omitted: numbers.filter(|number| *number < newest).collect(),
            torn: None,
        };
        let sectors = |place: &usize| self.writes[*place].sectors().map(|(sector, _)| sector);
        let mut touched: Vec<u64> = omitted.iter().flat_map(sectors).collect();
        touched.sort_unstable();
        touched.dedup();
        let mut sum = self.sums.last().copied().unwrap_or(self.epoch.sum);
        for sector in touched {
            let begin = self.at_begin(sector);
            let content = |writer: Option<&(usize, Content)>| writer.map_or(begin, |w| w.1);
            let writers = self.writers.get(&sector).map(Vec::as_slice).unwrap_or_default();
            let without = writers.iter().rev().find(|(place, _)| is_there(place));
            sum = self.exchange(sum, sector, content(writers.last()), content(without));
        }
        (state, sum)
    }

    /// Whether no flush ends the epoch. All writes of any other epoch are the boundary after it.
    fn is_last(&self) -> bool {
        self.epoch.until == u64::MAX
    }

    /// Returns the states with the first writes, from one to all but one; of the last epoch to all.
    fn prefixes(&self) -> Vec<(State, u128)> {
        let count = self.writes.len() - usize::from(!self.is_last());
        let inner = self.writes.iter().zip(&self.sums[1..]).take(count);
        let state = |number| State { newest: number, ..State::default() };
        inner.map(|(write, &sum)| (state(write.number), sum)).collect()
    }

    /// Returns the states with the first writes, the last of them torn.
    fn torn(&self, kind: StateKind) -> Vec<(State, u128)> {
        let page = usize::try_from(TearUnit::Bytes4096.bytes() / SECTOR).unwrap_or(1);
        let mut states = Vec::new();
        for (place, (write, &sum)) in self.writes.iter().zip(&self.sums).enumerate() {
            let mut sum = sum;
            if write.is_discard {
                continue;
            }
            for (kept, (sector, content)) in (1..write.contents.len()).zip(write.sectors()) {
                sum = self.exchange(sum, sector, self.before(place, sector), content);
                if (kept % page == 0) == (kind == StateKind::Torn4096) {
                    let torn = Some(Tear { write: write.number, kept: kept as u64 * SECTOR });
                    let state = State { newest: write.number, omitted: Vec::new(), torn };
                    states.push((state, sum));
                }
            }
        }
        states
    }

    /// Returns the sums of the images after none of the writes, after the first, and so on.
    fn prefix_sums(&self) -> Vec<u128> {
        let mut sum = self.epoch.sum;
        let mut sums = vec![sum];
        for (place, write) in self.writes.iter().enumerate() {
            for (sector, content) in write.sectors() {
                sum = self.exchange(sum, sector, self.before(place, sector), content);
            }
            sums.push(sum);
        }
        sums
    }

    fn exchange(&self, sum: u128, sector: u64, before: Content, after: Content) -> u128 {
        exchanged(sum, sector, self.first(sector), before, after)
    }

    /// Returns the contents of the sector in the first image.
    fn first(&self, sector: u64) -> Content {
        self.base.get(&sector).copied().unwrap_or_default()
    }

    /// Returns the contents of the sector when the epoch begins.
    fn at_begin(&self, sector: u64) -> Content {
        self.epoch.before.get(&sector).copied().unwrap_or_else(|| self.first(sector))
    }

    /// Returns the contents of the sector right before the write at `place`.
    fn before(&self, place: usize, sector: u64) -> Content {
        let writers = self.writers.get(&sector).map(Vec::as_slice).unwrap_or_default();
        let earlier = writers.partition_point(|(writer, _)| *writer < place);
        match earlier.checked_sub(1) {
            Some(last) => writers[last].1,
            None => self.at_begin(sector),
        }
    }
}
