//! Crash rounds under TPROC-C: an honest server keeps its conditions, and damage that nothing else
//! sees breaks one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pgdyno_connect::control;
use pgdyno_crash::Interference;
use pgdyno_model::Verdict;
use pgdyno_model::crash::{CheckOutcome, Failing, Fault};
use pgdyno_model::target::Target;

use super::{crash_under, judged};

/// The oracle that asks for the workload's conditions.
const CONDITIONS: &str = "the workload's conditions hold";

#[test]
#[ignore = "long: TPC-C's tables, loaded twice"]
fn an_honest_server_keeps_the_conditions_of_two_warehouses_and_a_lost_payment_is_seen() {
    let keys = "faults = [\"immediate\"]\nrounds = 3\nscale = 2";
    let outcome = crash_under("tprocc", keys, Interference::default()).outcome;
    assert_eq!(outcome.verdict, Verdict::Pass, "{}", outcome.reason);
    for round in &outcome.faults[0].rounds {
        assert!(round.acknowledged > 0);
        for name in [CONDITIONS, "every transaction is there whole"] {
            let check = round.checks.iter().find(|check| check.name == name).unwrap();
            assert_eq!(check.outcome, CheckOutcome::Passed, "{name}");
        }
    }
    let [control] = &outcome.controls[..] else { panic!("one control: {:?}", outcome.controls) };
    assert_eq!((control.fault, control.seen), (Some(Fault::Immediate), true));
    let lost = Verdict::Fail(Failing::Lost);
    assert_eq!(control.verdict, lost, "nothing but the ledger sees it: {}", control.reason);
}

/// Damage of a server that came back: SQL, the condition that it breaks, and whether only
/// [`CONDITIONS`] see it.
const DAMAGE: [(&str, &str, bool); 4] = [
    (
        "DELETE FROM order_line WHERE (ol_w_id, ol_d_id, ol_o_id, ol_number) = (1, 3, 2999, 2)",
        "sum(o_ol_cnt) = lines of the district",
        true,
    ),
    (
        "DELETE FROM history WHERE ctid = (SELECT ctid FROM history WHERE h_amount <> 10 LIMIT 1)",
        "each token of a payment has its row of history",
        true,
    ),
    (
        // The newest order of a district as if it had never been.
        "CREATE TEMP TABLE newest AS SELECT o_w_id AS w, o_d_id AS d, o_id AS o FROM orders \
         ORDER BY o_id DESC LIMIT 1; \
         DELETE FROM new_order WHERE (no_w_id, no_d_id, no_o_id) = (SELECT w, d, o FROM newest); \
         DELETE FROM order_line WHERE (ol_w_id, ol_d_id, ol_o_id) = (SELECT w, d, o FROM newest); \
         DELETE FROM orders WHERE (o_w_id, o_d_id, o_id) = (SELECT w, d, o FROM newest); \
         UPDATE district SET d_next_o_id = d_next_o_id - 1 \
         WHERE (d_w_id, d_id) = (SELECT w, d FROM newest)",
        "each district counted its orders",
        true,
    ),
    ("UPDATE warehouse SET w_ytd = w_ytd + 1", "w_ytd = sum(d_ytd)", false),
];

#[test]
#[ignore = "long: TPC-C's tables, loaded several times"]
fn a_line_a_payment_or_an_order_that_is_gone_breaks_a_condition_and_so_does_a_sum() {
    let number = AtomicUsize::new(0);
    let damage = move |target: &Target, _: &Path| {
        let (sql, ..) = DAMAGE[number.fetch_add(1, Ordering::SeqCst)];
        control::connect_to_own(target).unwrap().batch_execute(sql).unwrap();
    };
    let interference = Interference { through: None, after_recovery: Some(Arc::new(damage)) };
    let keys = format!("faults = [\"immediate\"]\nrounds = {}\ncontrols = false", DAMAGE.len());
    let outcome = crash_under("tprocc", &keys, interference).outcome;
    assert_eq!(outcome.faults[0].rounds.len(), DAMAGE.len());
    for (round, (sql, condition, is_alone)) in outcome.faults[0].rounds.iter().zip(DAMAGE) {
        let (verdict, reason, failed) = judged(round);
        assert_eq!(verdict, Verdict::Fail(Failing::Corrupt), "{sql}: {reason}");
        assert!(reason.contains(condition), "{sql}: {reason}");
        assert!(failed.contains(&CONDITIONS.to_owned()), "{sql}: {failed:?}");
        assert_eq!(failed.len() == 1, is_alone, "{sql}: {failed:?}");
    }
}
