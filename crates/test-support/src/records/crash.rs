//! Crash tests that never happened.

use std::collections::BTreeMap;

use pgdyno_model::crash::{
    Aim, Check, CheckOutcome, Control, CrashOptions, CrashOutcome, Failing, FaultOutcome,
    FilesystemRecovery, Fsck, Lost, Round, RoundPower,
};
use pgdyno_model::ledger::Token;
use pgdyno_model::{CrashRecord, Fault, Verdict};

use super::fsync_probe;

/// Two rounds of a power loss; with a failure the second lost a transaction.
pub fn crash_record(treatment: usize, verdict: Verdict) -> CrashRecord {
    let probe = fsync_probe();
    let controls = vec![Control {
        name: "power with fsync=off".into(),
        fault: Some(Fault::Power),
        seen: true,
        verdict: Verdict::Fail(Failing::Lost),
        reason: "705 of 705 acknowledged transactions are missing".into(),
    }];
    let mut outcome = CrashOutcome {
        options: CrashOptions { faults: vec![Fault::Power], rounds: 2, ..CrashOptions::default() },
        settings: BTreeMap::from([("synchronous_commit".into(), "on".into())]),
        server_version: "15.18".into(),
        faults: vec![FaultOutcome::new(Fault::Power, vec![round(1, verdict), round(2, verdict)])],
        controls,
        complete: true,
        ..CrashOutcome::default()
    };
    outcome.conclude();
    CrashRecord {
        id: format!("crash-20261121-07000{treatment}-wxyz"),
        run: None,
        treatment: Some(treatment),
        name: format!("treatment {treatment}"),
        started_at: probe.started_at,
        pgdyno_version: probe.pgdyno_version,
        host: probe.host,
        storage: probe.storage,
        outcome,
    }
}

/// A round; with a failure the second lost a transaction.
fn round(number: u32, verdict: Verdict) -> Round {
    let token = Token { client: 3, sequence: 10_000_017 };
    let lost = u64::from(verdict.is_failure() && number == 2);
    let found = "1 of 705 acknowledged transactions are missing";
    Round {
        number,
        seed: 17_315_545_913_994_921_040,
        aim: if number == 1 { Aim::Load } else { Aim::Checkpoint },
        struck_after_ms: 812.5,
        acknowledged: 705,
        in_doubt: 2,
        lost,
        tokens: vec![Lost { token, age_ms: 41.25 }; usize::try_from(lost).unwrap()],
        oldest_lost_ms: (lost > 0).then_some(41.25),
        recovery_ms: Some(239.0),
        filesystems: vec![FilesystemRecovery {
            storage: "ext4".into(),
            filesystem: "ext4".into(),
            mount_ms: 11.5,
            fsck: Fsck::Clean { command: "e2fsck -f -n".into(), ms: 38.25 },
        }],
        power: RoundPower {
            checkpoints: Some(3),
            flushes: Some(602),
            last_window: Some(u64::from(number) + 1),
            disk_flushes: true,
            cache_lost: None,
        },
        verdict: if lost > 0 { verdict } else { Verdict::Pass },
        reason: if lost > 0 {
            found.into()
        } else {
            "every acknowledged transaction is there".into()
        },
        checks: vec![Check {
            name: "acknowledged transactions are there".into(),
            outcome: if lost > 0 {
                CheckOutcome::Failed(found.into())
            } else {
                CheckOutcome::Passed
            },
        }],
        notes: Vec::new(),
        log: if lost > 0 { "LOG:  redo done at 0/27F6350".into() } else { String::new() },
        ledger: Some("(0, 1) MISSING".into()),
        kept: (lost > 0).then(|| "/data/crashes/crash-1/power-2".into()),
    }
}
