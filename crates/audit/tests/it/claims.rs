//! Ratios that prose claims: right, wrong, or not checked.

use pgdyno_audit::{Audit, Confidence, Severity};

use super::rules::run;
use super::{audited, checked, finding, found};

/// What becomes of a claim: whether it is found wrong, found right, or told as not checked.
fn judged(audit: &Audit) -> (usize, usize, usize) {
    let wrong = audit.findings.iter().filter(|f| f.rule == "claimed-ratio").count();
    let open = audit.not_understood.iter().filter(|line| line.why.contains("not checked"));
    (wrong, checked(audit, "claimed-ratio").len(), open.count())
}

const WRONG: (usize, usize, usize) = (1, 0, 0);
const RIGHT: (usize, usize, usize) = (0, 1, 0);
const NOT_CHECKED: (usize, usize, usize) = (0, 0, 1);

#[test]
fn a_claim_is_judged_in_the_direction_that_it_has() {
    let table = "| fs | tps | stddev |\n|---|---|---|\n| ext4 | 2000 | 9 |\n| xfs | 1000 | 9 |\n\n";
    let said = |words: &str| judged(&audited(&format!("{table}{words}\n")));
    for (words, expected) in [
        ("xfs is 2x faster than ext4", WRONG),
        ("xfs is about 200 % of ext4", WRONG),
        ("ext4 is 50 % slower than xfs", WRONG),
        ("xfs is twice as fast as ext4.", WRONG),
        ("ext4 is 25% faster than xfs", WRONG),
        // A hundred percent more is twice as much, and half as much is fifty percent less.
        ("xfs is 100% slower than ext4", WRONG),
        ("ext4 is 2x faster than xfs", RIGHT),
        ("ext4 is about 200 % of xfs", RIGHT),
        ("xfs is 50 % slower than ext4", RIGHT),
        ("ext4 is 100% faster than xfs.", RIGHT),
        ("Overall, ext4 is twice as fast as xfs, which was to be expected.", RIGHT),
        ("xfs is half as fast as ext4", RIGHT),
        ("xfs is 2 times slower than ext4", RIGHT),
        ("ext4 is up to 3 times faster than xfs", NOT_CHECKED),
        ("ext4 is 3 times faster than xfs with 8 clients", NOT_CHECKED),
        ("ext4 is not 3 times faster than xfs", NOT_CHECKED),
        ("If ext4 is 3 times faster than xfs, take it", NOT_CHECKED),
        ("btrfs is 3 times faster than xfs", NOT_CHECKED),
        ("The first is 3 times faster", NOT_CHECKED),
        ("ext4 в 3 раза быстрее xfs", NOT_CHECKED),
    ] {
        assert_eq!(said(words), expected, "{words}");
    }
    let f = audited(&format!("{table}xfs is 2x faster than ext4\n"));
    let f = finding(&f, "claimed-ratio");
    assert_eq!((f.severity, f.sure, f.line), (Severity::Warning, Confidence::Certain, 6));
    assert!(f.message.contains("is 0.5, not `2x faster than`"), "{}", f.message);
}

#[test]
fn a_claim_of_runs_is_judged_by_their_labels() {
    let direct = run(3_600_000, 4000.0, 3.999, "");
    let router = run(1_692_000, 1880.0, 8.507, "");
    let said = |words: &str| {
        judged(&audited(&format!("## Direct\n{direct}\n## Router\n{router}\n\n{words}\n")))
    };
    assert_eq!(said("Router is twice as fast as Direct."), WRONG);
    assert_eq!(said("Direct is twice as fast as Router."), RIGHT);
    assert_eq!(said("The router is twice as fast."), NOT_CHECKED);
}

#[test]
fn a_name_that_two_tables_have_is_not_clear() {
    let table = |a: u32, b: u32| {
        format!("| fs | tps | stddev |\n|---|---|---|\n| ext4 | {a} | 9 |\n| xfs | {b} | 9 |\n\n")
    };
    let text =
        format!("{}And more:\n\n{}ext4 is 3 times faster than xfs\n", table(30, 10), table(20, 10));
    assert_eq!(judged(&audited(&text)), NOT_CHECKED);
    assert!(audited(&text).not_understood[0].why.contains("of two tables"));
    // Times are no tps: the smaller is the faster.
    let times =
        "| fs | runtime (s) | stddev |\n|---|---|---|\n| ext4 | 20 | 1 |\n| xfs | 10 | 1 |\n\n";
    assert_eq!(judged(&audited(&format!("{times}ext4 is 2x faster than xfs\n"))), NOT_CHECKED);
    assert_eq!(found(&audited(&format!("{}nothing more\n", table(20, 10)))), []);
}
