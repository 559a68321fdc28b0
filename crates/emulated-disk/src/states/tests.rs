//! The enumeration against brute force on small disks.

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_model::crash::StateKind;
use proptest::prelude::*;

use super::epoch::EpochStates;
use super::*;

const SECTORS: u64 = 6;

/// Every sector of a disk.
type Bytes = Vec<Content>;

/// A write or a flush.
#[derive(Clone, Debug)]
enum Happening {
    Write {
        sector: u64,
        contents: Vec<Content>,
        is_discard: bool,
    },
    /// Covers all writes but the newest ones, which arrived while it was under way.
    Flush {
        misses: usize,
    },
}

fn happening() -> impl Strategy<Value = Happening> {
    let write = (0..SECTORS, prop::collection::vec(1..4_u128, 1..4), prop::bool::weighted(0.1));
    prop_oneof![
        3 => write.prop_map(|(sector, mut contents, is_discard)| {
            contents.truncate(usize::try_from(SECTORS - sector).unwrap());
            if is_discard {
                contents.fill(0);
            }
            Happening::Write { sector, contents, is_discard }
        }),
        2 => (0..2_usize).prop_map(|misses| Happening::Flush { misses }),
    ]
}

/// A log, its events numbered from 1.
struct Log {
    writes: Vec<StretchWrite>,
    flushes: Vec<StretchFlush>,
    events: u64,
}

impl Log {
    fn new(happenings: &[Happening]) -> Self {
        let (mut writes, mut flushes): (Vec<StretchWrite>, Vec<StretchFlush>) = Default::default();
        for (number, happening) in (1..).zip(happenings) {
            match happening.clone() {
                Happening::Write { sector, contents, is_discard } => {
                    writes.push(StretchWrite { number, sector, contents, is_discard });
                }
                Happening::Flush { misses } => {
                    let covered = writes.len().saturating_sub(misses);
                    let earlier = flushes.last().map_or(0, |flush| flush.covers);
                    let covers = writes[..covered].last().map_or(0, |write| write.number);
                    flushes.push(StretchFlush { number, covers: covers.max(earlier) });
                }
            }
        }
        Self { writes, flushes, events: happenings.len() as u64 }
    }

    fn stretch(&self) -> Stretch {
        Stretch::new(self.writes.clone(), self.flushes.clone(), |_| 0)
    }

    /// The disk with the first sectors of each write that `kept` names.
    fn image(&self, kept: impl Fn(&StretchWrite) -> usize) -> Bytes {
        let mut image = vec![0; usize::try_from(SECTORS).unwrap()];
        for write in &self.writes {
            let start = usize::try_from(write.sector).unwrap();
            let kept = kept(write);
            image[start..start + kept].copy_from_slice(&write.contents[..kept]);
        }
        image
    }

    fn shown(&self, state: &State) -> Bytes {
        self.image(|write| {
            let length = write.contents.len() as u64 * SECTOR;
            usize::try_from(state.kept(write.number, length) / SECTOR).unwrap()
        })
    }

    /// All images that a cut right after event `cut` can leave; torn: the newest write that is
    /// there may be torn.
    fn after_cut(&self, cut: u64, torn: bool) -> BTreeSet<Bytes> {
        let done = self.flushes.iter().take_while(|flush| flush.number <= cut);
        let durable = done.map(|flush| flush.covers).max().unwrap_or(0);
        let is_volatile = |w: &&StretchWrite| durable < w.number && w.number <= cut;
        let volatile: Vec<&StretchWrite> = self.writes.iter().filter(is_volatile).collect();
        let mut images = BTreeSet::new();
        for set in 0..1_u32 << volatile.len() {
            let chosen: BTreeMap<u64, usize> = (0..)
                .zip(&volatile)
                .filter(|(at, _)| set >> at & 1 == 1)
                .map(|(_, write)| (write.number, write.contents.len()))
                .collect();
            let last = chosen.last_key_value().map(|(number, length)| (*number, *length));
            let cuts = match last {
                Some((_, length)) if torn => 1..length + 1,
                Some((_, length)) => length..length + 1,
                None => 0..1,
            };
            for cut_at in cuts {
                images.insert(self.image(|write| match chosen.get(&write.number) {
                    _ if write.number <= durable => write.contents.len(),
                    Some(_) if last.is_some_and(|(number, _)| number == write.number) => cut_at,
                    Some(length) => *length,
                    None => 0,
                }));
            }
        }
        images
    }
}

proptest! {
    #[test]
    fn every_image_of_a_log_of_small_epochs_is_enumerated_and_no_other(
        happenings in prop::collection::vec(happening(), 1..9)
    ) {
        let log = Log::new(&happenings);
        let stretch = log.stretch();
        let within = stretch.within(7, |_| false);
        let candidates = || stretch.boundaries().into_iter().chain(within.candidates.clone());
        let is_small = stretch.epochs.iter().all(|epoch| epoch.writes.len() <= 4)
            // A write that a flush misses is volatile together with the epoch after it.
            && happenings.iter().all(|h| !matches!(h, Happening::Flush { misses: 1.. }));
        if is_small {
            let untorn = candidates().filter(|candidate| candidate.state.torn.is_none());
            let enumerated: BTreeSet<Bytes> = untorn.map(|c| log.shown(&c.state)).collect();
            let possible = (0..=log.events).flat_map(|cut| log.after_cut(cut, false));
            let possible: BTreeSet<Bytes> = possible.collect();
            let torn: BTreeSet<Bytes> = candidates().map(|c| log.shown(&c.state)).collect();
            prop_assert!(possible.iter().all(|image| torn.contains(image)));
            prop_assert!(enumerated.is_subset(&possible));
        }
        for Candidate { state, window, .. } in candidates() {
            let image = log.shown(&state);
            for cut in [window.from, window.until.saturating_sub(1).min(log.events)] {
                let possible = log.after_cut(cut, true);
                prop_assert!(possible.contains(&image), "{state:?} after event {cut}");
            }
        }
        let counted: u64 = within.counts.iter().map(|(_, count)| count).sum();
        prop_assert_eq!(counted, within.candidates.len() as u64 + within.equal);
        let boundaries: u64 = stretch.boundaries().iter().map(|c| c.boundaries).sum();
        prop_assert_eq!(boundaries, log.flushes.len() as u64 + 1);
    }

    #[test]
    fn images_have_equal_sums_if_they_are_equal_and_only_then(
        happenings in prop::collection::vec(happening(), 1..14)
    ) {
        let log = Log::new(&happenings);
        let stretch = log.stretch();
        let mut by_sum: BTreeMap<u128, Bytes> = BTreeMap::new();
        let mut by_image: BTreeMap<Bytes, u128> = BTreeMap::new();
        let mut check = |sum: u128, state: &State| {
            let image = log.shown(state);
            let is_one = by_sum.entry(sum).or_insert_with(|| image.clone()) == &image;
            is_one && *by_image.entry(image).or_insert(sum) == sum
        };
        for epoch in &stretch.epochs {
            let boundary = State { newest: epoch.durable, ..State::default() };
            prop_assert!(check(epoch.sum, &boundary), "{boundary:?}");
            let writes = &stretch.writes[epoch.writes.clone()];
            let states = EpochStates::new(epoch, writes, &stretch.base);
            for (state, sum) in StateKind::WITHIN.iter().flat_map(|kind| states.of_kind(*kind)) {
                prop_assert!(check(sum, &state), "{state:?}");
            }
        }
    }
}

fn write(number: u64, sector: u64, contents: &[Content]) -> StretchWrite {
    StretchWrite { number, sector, contents: contents.to_vec(), is_discard: false }
}

#[test]
fn an_epoch_of_many_writes_has_prefixes_omissions_and_pairs() {
    let writes: Vec<_> = (1..=6).map(|n| write(n, n * 8, &[u128::from(n)])).collect();
    let flushes = vec![StretchFlush { number: 7, covers: 6 }];
    let within = Stretch::new(writes, flushes, |_| 0).within(1, |_| false);
    let count = |kind| within.counts.iter().find(|(of, _)| *of == kind).unwrap().1;
    let kinds = [
        StateKind::Subset,
        StateKind::Prefix,
        StateKind::Omitted,
        StateKind::PairOmitted,
        StateKind::Torn512,
    ];
    assert_eq!(kinds.map(count), [0, 5, 5, 4, 0]);
    let first: BTreeSet<StateKind> = within.candidates[..3].iter().map(|c| c.kind).collect();
    assert_eq!(
        first,
        BTreeSet::from([StateKind::Prefix, StateKind::Omitted, StateKind::PairOmitted])
    );
}

#[test]
fn a_page_is_torn_at_its_middle_and_at_each_other_sector_and_a_discard_is_not() {
    let page: Vec<Content> = (1..=16).collect();
    let discard = StretchWrite { is_discard: true, ..write(2, 32, &[0; 16]) };
    let stretch = Stretch::new(vec![write(1, 0, &page), discard], Vec::new(), |_| 99);
    let within = stretch.within(1, |_| false);
    let torn = |kind| within.candidates.iter().filter(|c| c.kind == kind).count();
    assert_eq!((torn(StateKind::Torn4096), torn(StateKind::Torn512)), (1, 14));
}

#[test]
fn flushes_that_change_nothing_are_one_boundary_that_is_judged_for_all_of_them() {
    let flush = |number, covers| StretchFlush { number, covers };
    let writes = vec![write(1, 0, &[5]), write(4, 0, &[5]), write(6, 0, &[6])];
    let flushes = vec![flush(2, 1), flush(3, 1), flush(5, 4), flush(7, 6)];
    let boundaries = Stretch::new(writes, flushes, |_| 0).boundaries();
    let told: Vec<_> =
        boundaries.iter().map(|c| (c.window.from, c.window.until, c.boundaries)).collect();
    assert_eq!(told, [(0, 2, 1), (1, 7, 3), (6, u64::MAX, 1)]);
}

#[test]
fn the_number_of_states_within_epochs_is_told_as_a_power_of_two() {
    let writes = |n: u64| (1..=n).map(|n| write(n, n, &[1])).collect();
    let of = |n| Stretch::new(writes(n), Vec::new(), |_| 0).within_log2();
    assert_eq!(of(1), None);
    assert_eq!(of(2), Some(1.0));
    assert_eq!(of(200), Some(200.0));
}

#[test]
fn promising_states_come_first_of_their_kind_and_none_is_left_out() {
    let page: Vec<Content> = (1..=16).collect();
    let writes = vec![write(1, 0, &page), write(2, 16, &page)];
    let stretch = Stretch::new(writes, Vec::new(), |_| 99);
    let of_second = |state: &State| state.torn.is_some_and(|tear| tear.write == 2);
    let within = stretch.within(1, of_second);
    let torn = within.candidates.iter().filter(|c| c.kind == StateKind::Torn512);
    let order: Vec<bool> = torn.map(|c| of_second(&c.state)).collect();
    assert_eq!(order, [[true; 14], [false; 14]].concat());
    assert_eq!(within.candidates.len(), stretch.within(1, |_| false).candidates.len());
}

#[test]
fn epochs_take_turns_however_many_writes_each_has() {
    let page: Vec<Content> = (1..=16).collect();
    let other = |n: u64| page.iter().map(|sector| sector + u128::from(n) * 16).collect::<Vec<_>>();
    // An epoch of twenty pages, then eight epochs of one.
    let writes = (1..=20).map(|n| write(n, n * 16, &page));
    let writes = writes.chain((11..19).map(|n| write(2 * n, 0, &other(n))));
    let flush = |number| StretchFlush { number, covers: number - 1 };
    let flushes = (10..19).map(|n| flush(2 * n + 1));
    let stretch = Stretch::new(writes.collect(), flushes.collect(), |_| 999);
    for seed in 1..20 {
        let within = stretch.within(seed, |_| false);
        let torn = within.candidates.iter().filter(|c| c.kind == StateKind::Torn512);
        let epochs: Vec<u64> = torn.map(|c| c.window.until).collect();
        assert_eq!(epochs.len(), (20 + 8) * 14);
        for turn in epochs[..9 * 14].chunks(9) {
            assert_eq!(turn.iter().collect::<BTreeSet<_>>().len(), 9, "{epochs:?}");
        }
        assert_eq!(epochs[9 * 14..], [21_u64; 19 * 14]);
    }
}
