//! The roll-up: rounds to faults, faults and controls to a session.

use super::*;

const LOST: Verdict = Verdict::Fail(Failing::Lost);

/// A round that put a data file's flush and a commit under test.
fn round(number: u32, verdict: Verdict) -> Round {
    Round {
        number,
        seed: 1,
        aim: Aim::Load,
        struck_after_ms: 1.0,
        acknowledged: 783,
        in_doubt: 0,
        lost: if verdict.is_failure() { 783 } else { 0 },
        tokens: Vec::new(),
        oldest_lost_ms: None,
        recovery_ms: Some(1.0),
        filesystems: Vec::new(),
        power: RoundPower {
            checkpoints: Some(3),
            flushes: Some(400),
            last_window: Some(2),
            disk_flushes: true,
            cache_lost: None,
        },
        verdict,
        reason: "as found".into(),
        checks: Vec::new(),
        notes: Vec::new(),
        log: String::new(),
        ledger: None,
        kept: None,
    }
}

fn rounds(verdicts: &[Verdict]) -> Vec<Round> {
    (1..).zip(verdicts).map(|(number, verdict)| round(number, *verdict)).collect()
}

fn with_power(powers: &[RoundPower]) -> Vec<Round> {
    let rounds = (1..).zip(powers);
    rounds.map(|(number, power)| Round { power: *power, ..round(number, Verdict::Pass) }).collect()
}

fn control(fault: Option<Fault>, seen: bool) -> Control {
    let verdict = if seen { LOST } else { Verdict::Pass };
    Control { name: "planted".into(), fault, seen, verdict, reason: String::new() }
}

fn session(faults: &[(Fault, Verdict)], controls: Vec<Control>) -> CrashOutcome {
    let faults =
        faults.iter().map(|(fault, verdict)| FaultOutcome::new(*fault, rounds(&[*verdict])));
    let mut outcome = CrashOutcome {
        faults: faults.collect(),
        controls,
        complete: true,
        ..CrashOutcome::default()
    };
    outcome.conclude();
    outcome
}

#[test]
fn what_every_server_fails_is_seen_as_planted_and_not_failing_it_is_invalid() {
    let lie = FaultOutcome::new(Fault::EmulatedLie, rounds(&[LOST, Verdict::Pass, LOST]));
    assert_eq!((lie.verdict, lie.planted), (Verdict::AsPlanted(Failing::Lost), true));
    let honest = FaultOutcome::new(Fault::EmulatedLie, rounds(&[Verdict::Pass; 3]));
    assert_eq!((honest.verdict, honest.chance_at_most), (Verdict::Invalid, None));
    let outcome = session(&[(Fault::EmulatedLie, LOST)], Vec::new());
    assert_eq!(outcome.verdict, Verdict::AsPlanted(Failing::Lost));
    assert!(outcome.verdict.is_good());
}

#[test]
fn what_every_server_fails_does_not_weigh_beside_what_says_something() {
    let controls = || vec![control(Some(Fault::Power), true)];
    let good = session(&[(Fault::Power, Verdict::Pass), (Fault::EmulatedLie, LOST)], controls());
    assert_eq!(good.verdict, Verdict::Pass);
    let bad = session(&[(Fault::Power, LOST), (Fault::EmulatedLie, LOST)], controls());
    assert_eq!((bad.verdict, bad.gravest().map(|f| f.fault)), (LOST, Some(Fault::Power)));
    let blind =
        session(&[(Fault::Power, Verdict::Pass), (Fault::EmulatedLie, Verdict::Pass)], controls());
    assert_eq!(blind.verdict, Verdict::Invalid, "the lie was not seen");
}

#[test]
fn an_expected_failure_is_named_by_the_session_and_breaks_no_promise() {
    let planted = |power: Verdict| {
        let faults = [(Fault::Process, Verdict::Pass), (Fault::Power, power)];
        let faults = faults.map(|(fault, verdict)| FaultOutcome::new(fault, rounds(&[verdict])));
        let options = CrashOptions { planted: vec![Fault::Power], ..CrashOptions::default() };
        let controls = vec![control(Some(Fault::Process), true)];
        let faults = faults.into();
        let mut outcome =
            CrashOutcome { options, faults, controls, complete: true, ..CrashOutcome::default() };
        outcome.conclude();
        let once = outcome.clone();
        outcome.conclude();
        assert_eq!(outcome, once, "a second conclusion changes nothing");
        outcome
    };
    let seen = planted(LOST);
    assert_eq!(seen.verdict, Verdict::AsPlanted(Failing::Lost), "not a pass: the treatment loses");
    assert!(seen.faults[1].planted && seen.faults[1].says_something_of_the_server());
    assert_eq!(planted(Verdict::Pass).verdict, Verdict::Invalid);
}

#[test]
fn a_pass_without_a_control_of_its_fault_is_invalid_and_a_failure_stays_one() {
    let power = |verdict, controls| session(&[(Fault::Power, verdict)], controls).verdict;
    for verdict in [Verdict::Pass, Verdict::BoundedLoss] {
        assert_eq!(power(verdict, Vec::new()), Verdict::Invalid);
        assert_eq!(power(verdict, vec![control(None, true)]), Verdict::Invalid, "another's");
        assert_eq!(power(verdict, vec![control(Some(Fault::Process), true)]), Verdict::Invalid);
        assert_eq!(power(verdict, vec![control(Some(Fault::Power), true)]), verdict);
        let one_unseen =
            vec![control(Some(Fault::Power), true), control(Some(Fault::Power), false)];
        assert_eq!(power(verdict, one_unseen), Verdict::Invalid);
    }
    assert_eq!(power(LOST, Vec::new()), LOST);
    assert_eq!(power(LOST, vec![control(Some(Fault::Power), false)]), LOST);
    let outcome = session(
        &[(Fault::Power, Verdict::Pass), (Fault::Process, Verdict::Pass)],
        vec![control(Some(Fault::Power), true)],
    );
    assert_eq!(outcome.verdict, Verdict::Invalid);
    assert!(outcome.reason.contains("no control of process was run"), "{}", outcome.reason);
}

#[test]
fn what_is_not_done_to_the_end_is_unknown_unless_it_failed() {
    for (verdict, expected) in [(Verdict::Pass, Verdict::Unknown), (LOST, LOST)] {
        let mut outcome =
            session(&[(Fault::Power, verdict)], vec![control(Some(Fault::Power), true)]);
        outcome.complete = false;
        outcome.conclude();
        assert_eq!(outcome.verdict, expected);
    }
}

#[test]
fn the_median_loss_counts_a_round_without_loss_as_0_and_is_none_where_nothing_was_lost() {
    let median = |oldest: &[Option<f64>]| {
        let one = |(number, oldest_lost_ms)| Round { oldest_lost_ms, ..round(number, LOST) };
        let rounds = (1..).zip(oldest.iter().copied()).map(one).collect();
        FaultOutcome::new(Fault::Power, rounds).median_lost_ms()
    };
    assert_eq!(median(&[Some(9.0), None, Some(31.0)]), Some(9.0));
    assert_eq!(median(&[Some(9.0), Some(31.0), None, Some(11.0)]), Some(10.0));
    assert_eq!(median(&[Some(9.0), None, None]), Some(0.0));
    assert_eq!(median(&[None, None]), None);
    assert_eq!(median(&[]), None);
}

#[test]
fn rounds_that_put_nothing_under_test_bound_nothing() {
    let full = round(1, Verdict::Pass).power;
    let idle = RoundPower { checkpoints: Some(0), ..full };
    let empty = RoundPower { last_window: Some(0), ..full };
    for (fault, none, counting) in [
        (Fault::Power, vec![vec![idle; 3], vec![empty; 3], vec![idle, empty]], 2),
        // What these show hangs on no commit.
        (Fault::TornWrite, vec![vec![idle; 3]], 3),
        (Fault::IoError, vec![vec![idle; 3]], 3),
    ] {
        for none in none {
            let outcome = FaultOutcome::new(fault, with_power(&none));
            assert_eq!(
                (outcome.verdict, outcome.chance_at_most),
                (Verdict::Unknown, None),
                "{none:?}"
            );
        }
        let some = FaultOutcome::new(fault, with_power(&[full, idle, full, empty]));
        assert_eq!((some.verdict, some.chance_at_most), (Verdict::Pass, chance_at_most(counting)));
        assert!(some.reason.contains(&format!("{counting} of them count")), "{}", some.reason);
    }
    let process = FaultOutcome::new(Fault::Process, with_power(&[idle; 3]));
    assert_eq!((process.verdict, process.chance_at_most), (Verdict::Pass, chance_at_most(3)));
    let mut lossy = with_power(&[idle; 2]);
    lossy[0].verdict = Verdict::BoundedLoss;
    let lossy = FaultOutcome::new(Fault::Power, lossy);
    assert_eq!(lossy.verdict, Verdict::Unknown);
    assert!(lossy.reason.contains("; 1 of 2 rounds; round 1: "), "{}", lossy.reason);
    let mut failed = with_power(&[idle; 2]);
    failed[0].verdict = LOST;
    assert_eq!(FaultOutcome::new(Fault::Power, failed).verdict, LOST, "a failure needs no power");
}

#[test]
fn each_round_with_a_commit_at_stake_is_one_chance_to_catch_a_skipped_flush() {
    let full = round(1, Verdict::Pass).power;
    let seen = |powers: &[RoundPower], one_in| skip_seen(&with_power(powers), one_in);
    assert!(seen(&[], 10.0).abs() < 1e-12);
    assert!((seen(&[full], 10.0) - 0.1).abs() < 1e-12);
    assert!((seen(&[full; 3], 10.0) - 0.271).abs() < 1e-12, "1 − 0.9³");
    assert!((seen(&[full; 5], 1.0) - 1.0).abs() < 1e-12, "a disk that skips every flush");
    let half = RoundPower { cache_lost: Some(0.5), ..full };
    assert!((seen(&[half, full], 10.0) - 0.145).abs() < 1e-12, "1 − 0.95 × 0.9");
    let empty = RoundPower { last_window: Some(0), ..full };
    let kernel = RoundPower { disk_flushes: false, ..full };
    assert!((seen(&[empty, kernel, full], 10.0) - 0.1).abs() < 1e-12);
}

#[test]
fn what_nobody_counted_is_said() {
    let outcome = FaultOutcome::new(Fault::Power, with_power(&[RoundPower::default(); 3]));
    assert_eq!((outcome.verdict, outcome.chance_at_most), (Verdict::Pass, chance_at_most(3)));
    assert!(outcome.reason.contains("checkpoints were not counted"), "{}", outcome.reason);
    let power = outcome.power();
    assert_eq!(
        (power.checkpoints, power.flushes, power.last_window, power.windows),
        (None, None, None, 0)
    );
}

#[test]
fn the_power_of_a_fault_sums_its_rounds() {
    let full = round(1, Verdict::Pass).power;
    let other = RoundPower { flushes: Some(404), last_window: Some(5), ..full };
    let empty = RoundPower { last_window: Some(0), ..full };
    let power = FaultOutcome::new(Fault::Power, with_power(&[full, other, empty])).power();
    assert_eq!(
        (power.checkpoints, power.flushes, power.last_window),
        (Some(9), Some(1204), Some((0, 5)))
    );
    assert_eq!((power.rounds, power.windows, power.disk_flushes), (2, 2, true));
    let kernel = RoundPower { disk_flushes: false, ..full };
    let power = FaultOutcome::new(Fault::Power, with_power(&[full, kernel])).power();
    assert_eq!((power.windows, power.disk_flushes), (1, false));
}

#[test]
fn loss_is_that_of_one_fault() {
    let outcome = session(&[(Fault::Process, Verdict::Pass), (Fault::Power, LOST)], Vec::new());
    let gravest = outcome.gravest().unwrap();
    assert_eq!((gravest.lost(), gravest.acknowledged()), (783, 783));
}

#[test]
fn records_of_earlier_versions_keep_what_was_said_of_them() {
    let control: Control =
        serde_json::from_str(r#"{"name":"x","seen":true,"verdict":"pass","reason":""}"#).unwrap();
    assert_eq!(control.fault, None);
    let stored = concat!(
        r#"{"fault":"lying-disk","verdict":"FAIL (lost)","reason":"r","#,
        r#""chance_at_most":null,"rounds":[]}"#
    );
    let fault: FaultOutcome = serde_json::from_str(stored).unwrap();
    assert_eq!((fault.fault, fault.verdict, fault.planted), (Fault::EmulatedLie, LOST, false));
}

#[test]
fn mount_and_fsck_are_medians_over_the_rounds_that_have_them() {
    let on = |mount_ms: f64, fsck: Fsck| FilesystemRecovery {
        storage: "ext4".into(),
        filesystem: "ext4".into(),
        mount_ms,
        fsck,
    };
    let clean = |ms: f64| Fsck::Clean { command: "e2fsck -f -n".into(), ms };
    let of =
        |filesystems: Vec<FilesystemRecovery>| Round { filesystems, ..round(1, Verdict::Pass) };
    let rounds = [
        of(vec![on(10.0, clean(3.0))]),
        // PGDATA and pg_wal, one after the other.
        of(vec![on(20.0, clean(5.0)), on(30.0, Fsck::NotRun { why: "no program".into() })]),
        of(Vec::new()),
    ];
    let rounds: Vec<&Round> = rounds.iter().collect();
    assert_eq!((median_mount_ms(&rounds), median_fsck_ms(&rounds)), (Some(30.0), Some(4.0)));
    assert_eq!((median_mount_ms(&[]), median_fsck_ms(&rounds[2..])), (None, None));
}

#[test]
fn what_fsck_found_reads_back() {
    let said = "Inode 12 has imagic flag set".to_owned();
    let command = "e2fsck -f -n".to_owned();
    for fsck in [
        Fsck::Clean { command: command.clone(), ms: 1.5 },
        Fsck::Complained { command, ms: 1.5, status: 4, said },
        Fsck::NotRun { why: "no program".into() },
    ] {
        let json = serde_json::to_string(&fsck).unwrap();
        assert_eq!(serde_json::from_str::<Fsck>(&json).unwrap(), fsck, "{json}");
    }
}
