//! Arbitrary text never panics; consistent figures have no finding.

use pgdyno_audit::{Audit, Severity};
use proptest::prelude::*;

use super::audit_of;

/// Lines of reports, so that arbitrary text goes deeper than the first word.
const PIECES: &[&str] = &[
    "transaction type: ",
    "number of clients: ",
    "number of threads: ",
    "duration: ",
    "tps = ",
    " (including connections establishing)",
    "number of transactions actually processed: ",
    "latency average = ",
    "latency stddev: ",
    "statement latencies in milliseconds",
    " and failures:",
    "SQL script 1: ",
    " - weight: 1 (targets ",
    "progress: ",
    " s, ",
    " tps, lat ",
    "pgbench (",
    "pgbench -c ",
    " -T ",
    "Compare file sync methods using one 8kB write:",
    " ops/sec ",
    " usecs/op",
    "fsync = ",
    "off",
    "checkpoint_timeout = ",
    "5min",
    "| fs | tps | mean | ratio |",
    "|---|---|",
    "| a | ",
    " | ",
    "fs tps mean %",
    "a ",
    "avg-cpu: %user %idle",
    "Device: r/s %util",
    "NAME PROPERTY VALUE SOURCE",
    "tank sync disabled local",
    "nobarrier",
    "25% faster than ",
    "twice as fast as ",
    "with fsync off",
    "client 3 aborted in ",
    "# Run ",
    "warm-up",
    "SQL statistics:",
    "    transactions: ",
    " (10.0 per sec.)",
    "    total time: ",
    "    read: ",
    "         sum: ",
    "Number of threads: ",
    "[ 10s ] thds: 4 tps: ",
    "zfs set sync=always tank",
    "zfs create -o ",
    "postgres=# ALTER SYSTEM SET ",
    "  - -c ",
    "name | setting",
    "16 GB RAM",
    "a is ",
    "% of b",
    "x faster than b",
    "pgbench -c 4 -T ",
    "number of failed transactions: 3 (",
    "| Run | fs | tps |",
    "100",
    "0",
    "-1",
    "1e308",
    "99999999999999999999",
    "0.0005",
    "1.234,56",
    "1,234",
    "\n",
    "\n",
    "\n",
    " ",
    "\t",
    "<table><tr><td>",
    "</pre>",
    "<pre>",
    "&nbsp;",
    "é",
    "中",
    "\u{0}",
    "\u{feff}",
    "ms",
    "%",
    "±",
];

fn pieces() -> impl Strategy<Value = String> {
    let piece =
        prop_oneof![6 => prop::sample::select(PIECES).prop_map(str::to_owned), 1 => ".{0,12}"];
    prop::collection::vec(piece, 0..120).prop_map(|parts| parts.concat())
}

/// A consistent report: `repeats` runs in a loop, none of them short, none equal.
fn consistent(
    clients: u32,
    each: u32,
    seconds: u32,
    tps: f64,
    spread: &[f64],
    version: u32,
) -> String {
    let mut text = String::new();
    for by in spread {
        let length = f64::from(seconds) + 0.004;
        let transactions = (tps * (1.0 + by) * length).round();
        let rate = transactions / length;
        let latency = f64::from(clients) / rate * 1000.0 * 0.998;
        let (equals, tail) = match version {
            0..=9 => (
                ": ",
                format!(
                    "tps = {rate:.6} (including connections establishing)\n\
                     tps = {:.6} (excluding connections establishing)",
                    rate * 1.00001
                ),
            ),
            10..=13 => (
                " = ",
                format!(
                    "tps = {rate:.6} (including connections establishing)\n\
                     tps = {:.6} (excluding connections establishing)",
                    rate * 1.00001
                ),
            ),
            _ => (
                " = ",
                format!(
                    "initial connection time = 4.000 ms\ntps = {rate:.6} (without initial \
                     connection time)"
                ),
            ),
        };
        text += &format!(
            "$ pgbench -c {clients} -j {each} -T {seconds}\ntransaction type: TPC-B (sort of)\n\
             scaling factor: 200\nquery mode: simple\n\
             number of clients: {clients}\nnumber of threads: {each}\nduration: {seconds} s\n\
             number of transactions actually processed: {transactions}\n\
             latency average{equals}{latency:.3} ms\n\
             latency stddev{equals}{:.3} ms\n{tail}\nstatement latencies in milliseconds:\n\
             \t{:.6}\tBEGIN;\n\t{:.6}\tUPDATE t SET a = 1;\n\
             \t{:.6}\tEND;\n\n",
            latency * 0.4,
            latency * 0.1,
            latency * 0.6,
            latency * 0.297
        );
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn no_text_panics(text in pieces(), html in any::<bool>()) {
        let name = if html { "a.html" } else { "a.txt" };
        if let Some(audit) = Audit::from_bytes(name, text.as_bytes()) {
            let lines = text.matches('\n').count() + 1;
            for finding in &audit.findings {
                prop_assert!(finding.line() >= 1 && finding.line() <= lines, "{finding:?}");
                let kind = format!("{:?}", finding.kind);
                prop_assert!(!kind.contains(": NaN") && !kind.contains(": inf"), "{kind}");
            }
            // What is kept reads back as it is.
            let json = serde_json::to_string(&audit.recognised).unwrap();
            let back: pgdyno_audit::Recognised = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(back, audit.recognised);
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Audit::from_bytes("a", &bytes);
        let _ = Audit::from_bytes("a.html", &bytes);
    }

    #[test]
    fn consistent_figures_have_no_finding(
        clients in 1u32..200, seconds in 300u32..7200, tps in 20.0f64..900.0, version in 9u32..19,
        first in -0.02f64..-0.001, second in 0.001f64..0.02,
    ) {
        let threads = clients.min(8);
        let tps = tps * f64::from(clients.min(16));
        let spread = [0.0, first, second];
        let audit = audit_of(&consistent(clients, threads, seconds, tps, &spread, version));
        prop_assert_eq!(audit.recognised.runs.len(), 3);
        prop_assert!(audit.findings.is_empty(), "{:#?}", audit.findings);
        prop_assert_eq!(audit.not_understood, vec![]);
    }

    #[test]
    fn a_planted_mistake_is_found(
        clients in 2u32..64, seconds in 300u32..3600, tps in 50.0f64..800.0, factor in 1.10f64..3.0,
    ) {
        let text = consistent(clients, clients.min(8), seconds, tps, &[0.0, -0.01, 0.01], 16);
        let printed = text.lines().find(|l| l.starts_with("tps = ")).unwrap().to_owned();
        let rate: f64 = printed.split(' ').nth(2).unwrap().parse().unwrap();
        let wrong = text.replacen(&printed, &format!("tps = {:.6} (without initial connection \
            time)", rate * factor), 1);
        let audit = audit_of(&wrong);
        let has = |rule: &str| {
            audit.findings.iter().any(|f| f.rule == rule && f.severity == Severity::Serious)
        };
        prop_assert!(has("transactions") && has("littles-law"));
    }
}
