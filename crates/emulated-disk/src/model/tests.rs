use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::disk_log::{DiskLog, EventKind, LogError, image_at};
use crate::page::tests::{REDO, page};
use crate::published::flush_file;
use crate::rule::{Content, Selector};
use crate::states::{State, Tear};

const SECTOR: u64 = 512;
const SECTORS: u64 = 64;
const SIZE: u64 = SECTOR * SECTORS;

fn disk(bound: u64, seed: u64, log: Option<LogWriter>) -> Disk<Vec<u8>> {
    Disk::new(vec![0; usize::try_from(SIZE).unwrap()], SIZE, bound, seed, log)
}

fn flush(disk: &mut Disk<Vec<u8>>) -> Answer {
    let request = disk.begin_flush(MonotonicTime::now()).unwrap();
    disk.flush(request)
}

fn flush_begun_at(disk: &mut Disk<Vec<u8>>, began: MonotonicTime) {
    let request = disk.begin_flush(began).unwrap();
    disk.flush(request).unwrap();
}

/// A request to a disk, in sectors.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Write { at: u64, length: u64 },
    Discard { at: u64, length: u64 },
    Flush,
}

fn asked() -> impl Strategy<Value = Asked> {
    let span = || (0..SECTORS).prop_flat_map(|at| (Just(at), 1..=(SECTORS - at).min(24)));
    prop_oneof![
        6 => span().prop_map(|(at, length)| Asked::Write { at, length }),
        1 => span().prop_map(|(at, length)| Asked::Discard { at, length }),
        2 => Just(Asked::Flush),
    ]
}

/// Of each sector what a reader may find: the number of the write, 0 for zeros.
struct Expected {
    newest: Vec<u8>,
    flushed: Vec<u8>,
    /// With what was written since the last flush.
    possible: Vec<BTreeSet<u8>>,
}

impl Expected {
    fn new() -> Self {
        let zeros = vec![0; usize::try_from(SECTORS).unwrap()];
        let possible = zeros.iter().map(|&z| BTreeSet::from([z])).collect();
        Self { newest: zeros.clone(), flushed: zeros, possible }
    }

    fn write(&mut self, at: u64, length: u64, what: u8) {
        for sector in at..at + length {
            let sector = usize::try_from(sector).unwrap();
            self.newest[sector] = what;
            self.possible[sector].insert(what);
        }
    }

    fn flush(&mut self) {
        self.flushed.clone_from(&self.newest);
        self.possible = self.newest.iter().map(|&n| BTreeSet::from([n])).collect();
    }
}

/// Returns the write that each sector holds; a sector that is not of one write is torn within,
/// which no disk does.
fn sectors(bytes: &[u8]) -> Vec<u8> {
    let whole = |sector: &[u8]| {
        assert!(sector.iter().all(|b| *b == sector[0]), "a sector of several writes");
        sector[0]
    };
    bytes.chunks(usize::try_from(SECTOR).unwrap()).map(whole).collect()
}

fn perform(disk: &mut Disk<Vec<u8>>, all: &[Asked]) -> Expected {
    let mut expected = Expected::new();
    for (n, asked) in (1_u8..).zip(all) {
        match *asked {
            Asked::Write { at, length } => {
                let bytes = vec![n; usize::try_from(length * SECTOR).unwrap()];
                disk.write(at * SECTOR, &bytes).unwrap();
                expected.write(at, length, n);
            }
            Asked::Discard { at, length } => {
                disk.discard(at * SECTOR, length * SECTOR).unwrap();
                expected.write(at, length, 0);
            }
            Asked::Flush => {
                flush(disk).unwrap();
                expected.flush();
            }
        }
        let mut read = vec![0xEE; usize::try_from(SIZE).unwrap()];
        disk.read(0, &mut read).unwrap();
        assert_eq!(sectors(&read), expected.newest, "a read sees the newest");
    }
    expected
}

fn tear() -> impl Strategy<Value = Option<TearUnit>> {
    prop_oneof![Just(None), Just(Some(TearUnit::Bytes512)), Just(Some(TearUnit::Bytes4096))]
}

proptest! {
    #[test]
    fn after_a_cut_every_sector_holds_what_was_flushed_or_was_written_since(
        all in prop::collection::vec(asked(), 0..100),
        bound in prop_oneof![Just(u64::MAX), 0..20_000_u64],
        survives in 0.0..=1.0_f64,
        tear in tear(),
        seed: u64,
    ) {
        let mut disk = disk(bound, seed, None);
        let expected = perform(&mut disk, &all);
        disk.cut(&Cut { survives, tear });
        prop_assert_eq!(disk.read(0, &mut [0; 512]), Err(DiskError::Eio));
        prop_assert_eq!(flush(&mut disk), Err(DiskError::Eio));
        for (found, possible) in sectors(disk.medium()).iter().zip(&expected.possible) {
            prop_assert!(possible.contains(found), "{} of {:?}", found, possible);
        }
        let found = disk.medium().clone();
        disk.power_on();
        let mut read = vec![0xEE; found.len()];
        disk.read(0, &mut read).unwrap();
        prop_assert_eq!(read, found);
    }

    #[test]
    fn an_honest_cut_leaves_exactly_what_was_flushed(
        all in prop::collection::vec(asked(), 0..100),
    ) {
        let mut disk = disk(u64::MAX, 1, None);
        let expected = perform(&mut disk, &all);
        disk.cut(&Cut::default());
        prop_assert_eq!(sectors(disk.medium()), expected.flushed);
    }

    #[test]
    fn the_same_seed_makes_the_same_of_the_same_requests(
        all in prop::collection::vec(asked(), 0..60), survives in 0.0..1.0_f64, seed: u64,
    ) {
        let outcome = || {
            let mut disk = disk(u64::MAX, seed, None);
            perform(&mut disk, &all);
            disk.cut(&Cut { survives, tear: Some(TearUnit::Bytes512) });
            disk.medium().clone()
        };
        prop_assert_eq!(outcome(), outcome());
    }
}

#[test]
fn a_lying_disk_loses_flushed_writes_and_destaging_saves_them_all_the_same() {
    let mut disk = disk(u64::MAX, 1, None);
    disk.write(0, &[1; 512]).unwrap();
    disk.begin_baseline().unwrap();
    disk.lie(true);
    disk.write(512, &[2; 512]).unwrap();
    flush(&mut disk).unwrap();
    assert_eq!(disk.status().counters.lies, 1);
    disk.cut(&Cut::default());
    assert_eq!(sectors(disk.medium())[..2], [1, 0]);
    assert_eq!(disk.status().cut.unwrap().dropped, 1);
}

#[test]
fn a_disk_that_skips_one_flush_in_k_loses_exactly_what_was_written_since_it_really_flushed() {
    let mut losing = 0;
    for seed in 0..60 {
        let mut disk = disk(u64::MAX, seed, None);
        disk.begin_baseline().unwrap();
        disk.arm(rule(Operation::Flush, Hits::Chance(1.0 / 4.0), Effect::Lie));
        let (mut kept, mut lies) = (0, 0);
        for n in 1..=40_u8 {
            disk.write(u64::from(n) * SECTOR, &[n; 512]).unwrap();
            let before = disk.status().since_baseline;
            flush(&mut disk).unwrap();
            let now = disk.status().since_baseline;
            assert_eq!(now.acknowledged_flushes, before.acknowledged_flushes + 1);
            match now.flushes - before.flushes {
                0 => lies += 1,
                _ => kept = n,
            }
        }
        disk.cut(&Cut::default());
        let found = sectors(disk.medium());
        for n in 1..=40_u8 {
            assert_eq!(
                found[usize::from(n)],
                if n <= kept { n } else { 0 },
                "seed {seed}, kept {kept}"
            );
        }
        let cut = disk.status().cut.unwrap();
        let counts = cut.since_baseline;
        assert_eq!(
            (counts.acknowledged_flushes, counts.flushes, counts.lies),
            (40, 40 - lies, lies)
        );
        assert_eq!(cut.dropped, u64::from(40 - kept));
        assert!(0 < lies && lies < 40, "{lies}");
        let FlushFacts { acknowledged, done, .. } = cut.flushes;
        assert_eq!(acknowledged == done, kept == 40, "{cut:?}");
        losing += u32::from(kept < 40);
    }
    assert!(0 < losing && losing < 60, "{losing}: most cuts come after a flush that was done");
}

#[test]
fn a_cut_tells_its_instant_and_the_flushes_before_it_also_when_there_is_power_again() {
    let mut disk = disk(u64::MAX, 1, None);
    flush_begun_at(&mut disk, MonotonicTime::default());
    assert!(disk.status().flushes.longest_ns > 0);
    disk.begin_baseline().unwrap();
    assert_eq!(disk.status().flushes.longest_ns, 0);
    assert_eq!(disk.status().since_baseline, DiskCounters::default());

    disk.write(0, &[1; 512]).unwrap();
    let began = MonotonicTime::now();
    flush_begun_at(&mut disk, began);
    disk.lie(true);
    let lied = MonotonicTime::now();
    flush_begun_at(&mut disk, lied);
    let before = MonotonicTime::now();
    disk.cut(&Cut::default());
    assert_eq!(flush(&mut disk), Err(DiskError::Eio));
    let cut = disk.status().cut.unwrap();
    let (acknowledged, done) = (cut.flushes.acknowledged.unwrap(), cut.flushes.done.unwrap());
    assert_eq!((done.began, acknowledged.began), (began, lied));
    assert!(
        done.completed <= acknowledged.began
            && acknowledged.completed <= before
            && before <= cut.at
    );
    let longest = acknowledged.duration().max(done.duration());
    assert_eq!(u128::from(cut.flushes.longest_ns), longest.as_nanos());
    assert_eq!((cut.since_baseline.flushes, cut.since_baseline.acknowledged_flushes), (1, 2));

    disk.power_on();
    flush(&mut disk).unwrap();
    assert_eq!(disk.status().cut, Some(cut));
    assert!(disk.status().flushes.done.unwrap().began >= cut.at);
}

#[test]
fn over_its_bound_the_oldest_reach_the_medium() {
    let mut disk = disk(3000, 1, None);
    for n in 1..=8_u8 {
        disk.write(u64::from(n) * 512, &[n; 512]).unwrap();
    }
    let destaged = disk.status().counters.destaged;
    assert!((1..8).contains(&destaged), "{destaged}");
    disk.cut(&Cut::default());
    let found = sectors(disk.medium());
    for n in 1..=8_u8 {
        let there = if u64::from(n) <= destaged { n } else { 0 };
        assert_eq!(found[usize::from(n)], there);
    }
}

fn rule(operation: Operation, hits: Hits, effect: Effect) -> Rule {
    Rule { on: Selector::all(operation), hits, effect }
}

#[test]
fn a_rule_hits_the_request_it_names_and_no_other() {
    let mut disk = disk(u64::MAX, 1, None);
    let mut on = Selector::all(Operation::Write);
    on.range = Some((1024, 2048));
    let id = disk.arm(Rule { on, hits: Hits::Nth(2), effect: Effect::Fail(DiskError::Enospc) });
    disk.write(0, &[1; 1024]).unwrap();
    disk.write(1024, &[1; 512]).unwrap();
    assert_eq!(disk.write(512, &[2; 1024]), Err(DiskError::Enospc));
    disk.write(1536, &[3; 512]).unwrap();
    assert_eq!(disk.status().rules, [RuleState { id, selected: 3, hit: 1 }]);
    assert_eq!(disk.status().counters.failed, 1);
    let mut read = vec![0; 2048];
    disk.read(0, &mut read).unwrap();
    assert_eq!(sectors(&read), [1, 1, 1, 3], "nothing of what failed was done");

    disk.disarm(id);
    disk.arm(rule(Operation::Flush, Hits::From(2), Effect::Fail(DiskError::Eio)));
    assert_eq!(
        [flush(&mut disk), flush(&mut disk), flush(&mut disk)],
        [Ok(()), Err(DiskError::Eio), Err(DiskError::Eio)]
    );
}

#[test]
fn a_cut_at_a_flush_comes_before_it_and_one_at_a_write_after_it() {
    let mut disk = disk(u64::MAX, 1, None);
    disk.arm(rule(Operation::Flush, Hits::Nth(2), Effect::Cut(Cut::default())));
    disk.write(0, &[1; 512]).unwrap();
    flush(&mut disk).unwrap();
    disk.write(0, &[2; 512]).unwrap();
    assert_eq!(flush(&mut disk), Err(DiskError::Eio));
    assert_eq!(sectors(disk.medium())[0], 1);
    disk.power_on();
    assert_eq!(disk.status().rules, []);

    disk.arm(rule(Operation::Write, Hits::Nth(1), Effect::Cut(Cut { survives: 1.0, tear: None })));
    assert_eq!(disk.write(0, &[3; 512]), Err(DiskError::Eio));
    assert_eq!(sectors(disk.medium())[0], 3);
    assert_eq!(disk.status().cut.unwrap().survived, 1);
}

/// Returns a page as PostgreSQL writes it, of version 15's layout.
fn data_page(filler: u8) -> Vec<u8> {
    let mut page = vec![filler; 8192];
    page[12..20].copy_from_slice(&[28, 0, 0, 31, 0, 32, 0x04, 0x20]);
    page
}

#[test]
fn a_write_is_torn_within_a_page_of_the_kind_that_was_chosen() {
    for seed in 0..40 {
        let mut disk = disk(u64::MAX, seed, None);
        let on = Selector::writes_of(Content::DataPage);
        let effect = Effect::TearAndCut(TearUnit::Bytes512, Cut::default());
        disk.arm(Rule { on, hits: Hits::Nth(1), effect });
        disk.write(0, &[1; 8192]).unwrap();
        flush(&mut disk).unwrap();
        let mut bytes = vec![7; 4096];
        bytes.extend(data_page(2));
        assert_eq!(disk.write(0, &bytes), Err(DiskError::Eio));
        let cut = disk.status().cut.unwrap();
        assert!(cut.torn && cut.dropped == 0, "{cut:?}");
        let page = &disk.medium()[4096..4096 + 8192];
        let arrived = page.iter().rposition(|b| *b == 2).unwrap() + 1;
        assert!(arrived % 512 == 0 && arrived < 8192, "{arrived}");
        assert_eq!(page[8191], 0);
    }
}

#[test]
fn a_page_that_recovery_needs_tears_between_the_durable_version_and_the_newest() {
    for seed in 0..40 {
        let mut disk = disk(u64::MAX, seed, None);
        let (durable, cached, newest) =
            (page(REDO - 1, &[1, 2]), page(REDO + 1, &[1, 2, 3]), page(REDO + 2, &[1, 2, 3, 4]));
        disk.write(0, &durable).unwrap();
        flush(&mut disk).unwrap();
        disk.write(0, &cached).unwrap();
        let on = Selector::needed_from(REDO);
        let fail = Effect::Fail(DiskError::Eio);
        let failing = disk.arm(Rule { on: on.clone(), hits: Hits::Nth(1), effect: fail });
        let cut = Effect::TearAndCut(TearUnit::Bytes512, Cut::default());
        disk.arm(Rule { on, hits: Hits::Nth(1), effect: cut });
        assert_eq!(disk.write(0, &newest), Err(DiskError::Eio));
        let rules = disk.status().rules;
        // What a cut leaves below is the durable version; what a failed write leaves is in the
        // cache.
        assert_eq!(rules.iter().find(|rule| rule.id == failing).unwrap().selected, 0);
        let torn = &disk.medium()[..newest.len()];
        assert!(torn != durable && torn != newest && torn != cached);
        let arrived = torn.iter().zip(&newest).take_while(|(a, b)| a == b).count() / 512 * 512;
        assert_eq!((&torn[..arrived], &torn[arrived..]), (&newest[..arrived], &durable[arrived..]));
    }
}

#[test]
fn pages_of_postgresql_are_known_by_their_headers() {
    assert_eq!(Content::DataPage.pages(&[data_page(1), data_page(2)].concat()), [0, 8192]);
    assert_eq!(Content::DataPage.pages(&[1; 8192]), [0; 0]);
    let mut wal = vec![0; 8192];
    wal[..16].copy_from_slice(&[0x10, 0xD1, 5, 0, 1, 0, 0, 0, 0, 0x20, 0, 1, 0, 0, 0, 0]);
    assert_eq!(Content::WalPage.pages(&wal), [0]);
    assert_eq!(Content::WalPage.pages(&data_page(1)), [0; 0]);
    assert_eq!(Content::DataPage.pages(&wal), [0; 0]);
}

#[test]
fn the_write_log_gives_the_disk_as_it_was_after_any_write() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("writes");
    let mut disk = disk(u64::MAX, 1, Some(LogWriter::create(&path, SIZE).unwrap()));
    disk.write(0, &[1; 1024]).unwrap();
    flush(&mut disk).unwrap();
    disk.write(512, &[2; 512]).unwrap();
    disk.write(1024, &[3; 512]).unwrap();
    disk.cut(&Cut::default());
    disk.power_on();
    disk.write(1536, &[4; 512]).unwrap();
    disk.discard(0, 512).unwrap();
    disk.sync_log().unwrap();
    let at = |n: u64| {
        let image = place.path().join(format!("image-{n}"));
        image_at(&path, n, &image).unwrap();
        sectors(&std::fs::read(image).unwrap())[..4].to_vec()
    };
    assert_eq!(at(0), [0, 0, 0, 0]);
    assert_eq!(at(1), [1, 1, 0, 0]);
    assert_eq!(at(3), [1, 2, 0, 0]);
    assert_eq!(at(4), [1, 2, 3, 0], "before the cut");
    assert_eq!(at(7), [1, 1, 0, 4], "what the cut lost is not there after it");
    assert_eq!(at(8), [0, 1, 0, 4]);
    let base = place.path().join("image-0");
    let state = State { newest: 8, omitted: vec![3, 4], torn: None };
    let image = place.path().join("state");
    state.write_image(&path, &base, &image).unwrap();
    assert_eq!(sectors(&std::fs::read(&image).unwrap())[..4], [0, 1, 0, 4]);
    let torn = State { newest: 1, omitted: Vec::new(), torn: Some(Tear { write: 1, kept: 512 }) };
    let again = torn.write_image(&path, &base, &image);
    assert!(matches!(again, Err(LogError::Io { what: "make", .. })), "what is there stays");
    std::fs::remove_file(&image).unwrap();
    torn.write_image(&path, &base, &image).unwrap();
    assert_eq!(sectors(&std::fs::read(&image).unwrap())[..4], [1, 0, 0, 0]);
    let other = torn.write_image(&path, &path, &place.path().join("other"));
    assert!(matches!(other, Err(LogError::OtherDisk { .. })));
    let events = DiskLog::read(&path).unwrap().events;
    assert_eq!(events[1].kind, EventKind::Flush { covers: 1, is_done: true });
    assert_eq!(events[4].kind, EventKind::Lost { write: 3, kept: 0 });
    assert_eq!(events.len(), 8);
}

#[test]
fn published_flushes_tell_which_was_asked_for_last_and_which_was_done_last() {
    let folder = std::env::temp_dir().join(format!("pgdyno-flushes-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let path = flush_file(&folder);
    let told = || {
        let bytes = std::fs::read(&path).unwrap();
        let word = |n: usize| u64::from_le_bytes(bytes[n * 8..][..8].try_into().unwrap());
        assert_eq!((word(0), word(2)), (word(1), word(3)), "each number is there twice");
        (word(0), word(2))
    };
    let mut disk = disk(u64::MAX, 1, None);
    flush(&mut disk).unwrap();
    disk.publish_flushes(Some(Published::create(&path).unwrap())).unwrap();
    assert_eq!(told(), (1, 1));
    let request = disk.begin_flush(MonotonicTime::now()).unwrap();
    let later = disk.begin_flush(MonotonicTime::now()).unwrap();
    assert_eq!(told(), (3, 1));
    disk.flush(later).unwrap();
    disk.flush(request).unwrap();
    assert_eq!(told(), (3, 3));
    disk.lie(true);
    flush(&mut disk).unwrap();
    assert_eq!(told(), (4, 3), "a flush that is only acknowledged is not done");
    disk.publish_flushes(None).unwrap();
    flush(&mut disk).unwrap();
    assert_eq!(told(), (4, 3));
    std::fs::remove_dir_all(&folder).unwrap();
}
