//! Crash rounds under logins: an honest server keeps each, and a duplicate key is seen.

use std::path::Path;
use std::sync::Arc;

use pgdyno_connect::control::{self, Client};
use pgdyno_crash::Interference;
use pgdyno_model::Verdict;
use pgdyno_model::crash::{CheckOutcome, CrashWorkload, Failing, Fault};
use pgdyno_model::target::Target;
use pgdyno_test_support::assert_contains;

use super::{crash_under, judged};

#[test]
fn an_immediate_restart_keeps_every_login_and_no_key_twice_and_a_lost_login_is_seen() {
    assert_keeps_logins(Fault::Immediate);
}

#[test]
#[ignore = "long: logins under another fault"]
fn a_process_crash_keeps_every_login_and_a_lost_login_is_seen() {
    assert_keeps_logins(Fault::Process);
}

/// Crashes a server under logins by `fault`. Asserts that it keeps every login, and that the
/// control is seen.
fn assert_keeps_logins(fault: Fault) {
    let keys = format!("faults = [\"{fault}\"]\nrounds = 1");
    let outcome = crash_under("user-login", &keys, Interference::default()).outcome;
    assert_eq!(outcome.options.workload, CrashWorkload::UserLogin);
    assert_eq!(outcome.verdict, Verdict::Pass, "{}", outcome.reason);
    let [crashed] = &outcome.faults[..] else { panic!("one fault: {:?}", outcome.faults) };
    assert_eq!(crashed.fault, fault);
    for round in &crashed.rounds {
        assert!(round.acknowledged > 0);
        for name in
            ["every loaded row is there once, by a scan", "every transaction is there whole"]
        {
            let check = round.checks.iter().find(|check| check.name == name).unwrap();
            assert_eq!(check.outcome, CheckOutcome::Passed, "{name}");
        }
    }
    let seen: Vec<(Option<Fault>, bool, Verdict)> =
        outcome.controls.iter().map(|c| (c.fault, c.seen, c.verdict)).collect();
    let lost = Verdict::Fail(Failing::Lost);
    assert_eq!(
        seen,
        [(Some(fault), true, lost)],
        "nothing but the ledger sees what the control takes back"
    );
}

/// Returns the verdict on a round after which `damage` was done, its reason, and the checks that
/// failed.
fn damaged(damage: impl Fn(&mut Client) + Send + Sync + 'static) -> (Verdict, String, Vec<String>) {
    let interference = Interference {
        through: None,
        after_recovery: Some(Arc::new(move |target: &Target, _: &Path| {
            damage(&mut control::connect_to_own(target).unwrap());
        })),
    };
    let keys = "faults = [\"immediate\"]\nrounds = 1\ncontrols = false";
    judged(&crash_under("user-login", keys, interference).outcome.faults[0].rounds[0])
}

#[test]
#[ignore = "long: rows of one load that are planted wrong; verify.rs has another"]
fn a_login_without_its_session_is_half_a_transaction_and_a_user_with_a_twin_is_named() {
    let (verdict, reason, failed) = damaged(|client| {
        let index = "'user_info_pkey'::regclass";
        for sql in [
            format!("UPDATE pg_index SET indisunique = false WHERE indexrelid = {index}"),
            "INSERT INTO user_info SELECT * FROM user_info WHERE userid = 78".to_owned(),
            format!("UPDATE pg_index SET indisunique = true WHERE indexrelid = {index}"),
        ] {
            client.batch_execute(&sql).unwrap();
        }
        let sql = "DELETE FROM user_login_rec WHERE ctid = (SELECT min(ctid) FROM user_login_rec)";
        client.batch_execute(sql).unwrap();
    });
    assert_eq!(verdict, Verdict::Fail(Failing::Corrupt), "{reason}");
    let seen_by = [
        "every transaction is there whole",
        "the balances' sums agree",
        "every loaded row is there once, by a scan",
        "every loaded row is there once, by its key",
    ];
    assert_eq!(failed, seen_by, "{reason}");
    assert!(reason.contains("duplicate keys") && reason.contains("userid 78"), "{reason}");
}

#[test]
#[ignore = "long: values of one load that are planted wrong; verify.rs has another"]
fn a_value_of_any_column_that_changed_is_seen_and_a_sequence_that_was_set_back() {
    let (verdict, reason, failed) = damaged(|client| {
        let wrong = "INSERT INTO user_login_rec SELECT";
        client
            .batch_execute(&format!(
                "UPDATE user_info SET cnname = 'x' WHERE userid = 1; \
                 UPDATE user_info SET signname = repeat('x', 54) WHERE userid = 2; \
                 UPDATE user_info SET crt_time = crt_time + interval '1 us' WHERE userid = 3; \
                 CREATE TEMP TABLE three AS SELECT row_number() OVER () n, min(userid) userid \
                 FROM user_login_rec \
                 GROUP BY userid LIMIT 3; \
                 UPDATE user_session SET logintime = logintime + interval '1 s' \
                 WHERE userid = (SELECT userid FROM three WHERE n = 1); \
                 {wrong} userid, login_time - interval '1 us', ip FROM user_login_rec \
                 WHERE userid = (SELECT userid FROM three WHERE n = 2) LIMIT 1; \
                 UPDATE user_login_rec SET ip = '192.0.2.1' WHERE userid = \
                 (SELECT userid FROM three WHERE n = 3); \
                 SELECT setval('pgdyno_token_number_seq', 1)"
            ))
            .unwrap();
    });
    assert_eq!(verdict, Verdict::Fail(Failing::Corrupt), "{reason}");
    assert!(failed.contains(&"the sequence gives no number again".to_owned()), "{failed:?}");
    assert_contains(
        &reason,
        &[
            "user_info has 3 rows whose constant columns",
            "user_session has 1 rows whose constant columns",
            "list of logins of user",
        ],
    );
}
