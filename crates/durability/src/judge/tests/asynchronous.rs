//! Loss that asynchronous commit allows, and its order.

use super::*;

const DELAY: AsynchronousCommit = AsynchronousCommit {
    wal_writer_delay: Duration::from_millis(200),
    flush_time: None,
    durable_before: None,
};
/// With flushes of 1 ms: 603 ms.
const ASYNCHRONOUS: Promise = asynchronous(Some(1), None);

const fn asynchronous(flush_ms: Option<u64>, durable_before_ms: Option<u64>) -> Promise {
    let flush_time = match flush_ms {
        Some(ms) => Some(Duration::from_millis(ms)),
        None => None,
    };
    let durable_before = match durable_before_ms {
        Some(ms) => Some(Duration::from_millis(ms)),
        None => None,
    };
    Promise {
        asynchronous: Some(AsynchronousCommit { flush_time, durable_before, ..DELAY }),
        struck_at: SECOND,
    }
}

/// Takes back what every client was acknowledged from `first` on.
fn cut_from(first: u64) -> impl Fn(&mut Contents) {
    move |found| {
        rows(found).retain(|r| r.token.sequence < first);
        settle(found);
    }
}

#[test]
fn asynchronous_commit_may_lose_the_latest_and_nothing_older_and_no_gap() {
    let (judged, failed) = spoiled(&ASYNCHRONOUS, cut_from(5));
    assert_eq!((judged.verdict, failed), (Verdict::BoundedLoss, vec![]), "{}", judged.reason);
    let (judged, failed) = spoiled(&ASYNCHRONOUS, cut_from(2));
    assert_eq!(judged.verdict, Verdict::Fail(Failing::Lost), "800 ms are more than 603");
    assert_eq!(failed, ["acknowledged transactions are there"]);
    let (judged, failed) = spoiled(&ASYNCHRONOUS, |found| {
        rows(found).retain(|r| r.token != token(0, 4));
        settle(found);
    });
    assert_eq!(judged.verdict, Verdict::Fail(Failing::Lost));
    assert_eq!(
        failed,
        [
            "each client's are there without a gap",
            "transactions are there in the order of acknowledgement"
        ]
    );
}

#[test]
fn what_slow_flushes_delay_is_late_and_not_lost() {
    // 800 ms: more than 3 × 200, within 3 × (200 + 100).
    let (judged, failed) = spoiled(&asynchronous(Some(100), None), cut_from(2));
    assert_eq!((judged.verdict, failed), (Verdict::BoundedLoss, vec![]), "{}", judged.reason);
    assert!(
        judged.reason.contains("late") && judged.reason.contains("100 ms"),
        "{}",
        judged.reason
    );
    // One millisecond less than it takes: 3 × (200 + 66).
    let (judged, _) = spoiled(&asynchronous(Some(66), None), cut_from(2));
    assert_eq!(judged.verdict, Verdict::Fail(Failing::Lost), "{}", judged.reason);
}

#[test]
fn a_loss_beyond_the_bound_is_unknown_where_nobody_measured_a_flush() {
    let (judged, failed) = spoiled(&asynchronous(None, None), cut_from(2));
    assert_eq!((judged.verdict, failed), (Verdict::Unknown, vec![]), "{}", judged.reason);
    let (judged, _) = spoiled(&asynchronous(None, None), cut_from(5));
    assert_eq!(judged.verdict, Verdict::BoundedLoss, "within three delays it needs no flush time");
}

#[test]
fn what_the_server_reported_as_flushed_is_never_late() {
    // The youngest, acknowledged 500 ms before the fault, half a bound.
    let (judged, failed) = spoiled(&asynchronous(Some(100), Some(501)), cut_from(5));
    assert_eq!(judged.verdict, Verdict::Fail(Failing::Lost), "{}", judged.reason);
    assert_eq!(failed, ["acknowledged transactions are there"]);
    let (judged, _) = spoiled(&asynchronous(Some(100), Some(500)), cut_from(5));
    assert_eq!(judged.verdict, Verdict::BoundedLoss, "at that very instant nothing is said of it");
}

#[test]
fn what_the_server_never_reported_as_flushed_is_late_whatever_its_age() {
    // A WAL writer that had no CPU for 800 ms, with and without a measured flush.
    for flush in [Some(1), None] {
        let (judged, failed) = spoiled(&asynchronous(flush, Some(150)), cut_from(2));
        assert_eq!((judged.verdict, failed), (Verdict::BoundedLoss, vec![]), "{}", judged.reason);
        assert!(judged.reason.contains("late"), "{}", judged.reason);
    }
}

/// One client that was acknowledged `count` transactions, `apart_ms` apart, the last right before
/// the fault.
fn steady(count: u64, apart_ms: u64) -> History {
    let last = u64::try_from(SECOND.as_millis()).unwrap();
    let entry = |n: u64| {
        let at = Duration::from_millis(last - (count - n) * apart_ms);
        let effect = Effect { account: 1, teller: 1, branch: 1, delta: 1 };
        Entry { token: token(0, n), effect, state: State::Acknowledged, begun: at, at }
    };
    History { clients: vec![(1..=count).map(entry).collect()] }
}

#[test]
fn the_loss_of_everything_is_never_allowed() {
    let judged = |count, apart_ms, promise: &Promise| {
        let history = steady(count, apart_ms);
        let mut found = honest(&history);
        rows(&mut found.recovered).clear();
        settle(&mut found.recovered);
        found.restarted = Ok(found.recovered.clone());
        judge(&history, &Aftermath::Up(Box::new(found)), promise)
    };
    // A load older than the bound, by whatever is known of the server.
    for promise in
        [asynchronous(None, None), asynchronous(Some(1), None), asynchronous(Some(1), Some(1))]
    {
        let judged = judged(40, 20, &promise);
        assert_eq!(judged.verdict, Verdict::Fail(Failing::Lost), "{}", judged.reason);
    }
    // A load within it says nothing of the storage; nor does one that is within it for its flushes
    // alone.
    assert_eq!(judged(20, 20, &ASYNCHRONOUS).verdict, Verdict::Unknown);
    assert_eq!(judged(40, 20, &asynchronous(Some(100), None)).verdict, Verdict::Unknown);
    // A few that are all young are an accident.
    assert_eq!(judged(9, 20, &ASYNCHRONOUS).verdict, Verdict::BoundedLoss);
    // One that is there shows that something was durable.
    let history = steady(20, 20);
    let mut found = honest(&history);
    rows(&mut found.recovered).truncate(1);
    settle(&mut found.recovered);
    found.restarted = Ok(found.recovered.clone());
    let judged = judge(&history, &Aftermath::Up(Box::new(found)), &ASYNCHRONOUS);
    assert_eq!(judged.verdict, Verdict::BoundedLoss, "{}", judged.reason);
}

#[test]
fn one_that_was_begun_after_anothers_acknowledgement_is_not_there_without_it() {
    // Client 1's third to fifth are gone, of which none is a gap of its own; client 0 began its
    // fifth (450 ms) after the fourth of client 1 was acknowledged (400 ms).
    for promise in [DURABLE, ASYNCHRONOUS] {
        let (judged, failed) = spoiled(&promise, |found| {
            rows(found).retain(|r| r.token.client == 0 || r.token.sequence < 4);
            rows(found).retain(|r| r.token != token(0, 6));
            settle(found);
        });
        assert_eq!(judged.verdict, Verdict::Fail(Failing::Lost));
        let order = "transactions are there in the order of acknowledgement".to_owned();
        assert!(failed.contains(&order), "{failed:?}");
        assert!(
            !failed.contains(&"each client's are there without a gap".to_owned()),
            "{failed:?}"
        );
    }
    // Begun before that acknowledgement, it may be there alone.
    let (judged, failed) = spoiled(&ASYNCHRONOUS, |found| {
        rows(found).retain(|r| r.token.client == 0 || r.token.sequence < 5);
        rows(found).retain(|r| r.token != token(0, 6));
        settle(found);
    });
    assert_eq!((judged.verdict, failed), (Verdict::BoundedLoss, vec![]), "{}", judged.reason);
}
