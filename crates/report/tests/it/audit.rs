//! docs/audit.md: its findings are those of the field reports, in the same words.

use std::fmt::Write as _;

use pgdyno_audit::Audit;
use pgdyno_report::audit::{AuditView, Audited};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The field reports in the order of their numbers.
const REPORTS: [&str; 5] = [
    "experiments/figures/ssd-acceptance.txt",
    "experiments/figures/filesystems.txt",
    "experiments/figures/group-commit.txt",
    "crates/audit/tests/fixtures/audit/billion-rows.txt",
    "experiments/figures/zfs-xfs.txt",
];

fn field_reports() -> Vec<Audited> {
    let read = |path: &str| {
        let bytes = std::fs::read(format!("{ROOT}/{path}")).unwrap();
        let (_, name) = path.rsplit_once('/').unwrap();
        (name.to_owned(), Audit::from_bytes(name, &bytes).unwrap(), None)
    };
    REPORTS.map(read).into()
}

fn findings_table() -> String {
    let mut table =
        String::from("| report:line | severity, sure | rule | finding |\n|---|---|---|---|\n");
    for audited in field_reports() {
        let (name, audit, _) = &audited;
        if audit.findings.is_empty() {
            let recognised = audit.recognised.summary();
            let _ = writeln!(table, "| {name} | | | none: {recognised} was recognised |");
        }
        for finding in AuditView::from(std::slice::from_ref(&audited)).findings {
            let (line, rule) = (finding.line, finding.rule);
            let (severity, sure) = (finding.severity.unwrap(), finding.sure.unwrap());
            let message = finding.message.replace('|', "\\|");
            let _ =
                writeln!(table, "| {name}:{line} | {severity}, {sure} | `{rule}` | {message} |");
        }
    }
    table
}

/// With `AUDIT_DOCS=write` the table is written in place of the one that stands there.
#[test]
fn the_findings_of_the_documentation_are_those_of_the_field_reports() {
    let path = format!("{ROOT}/docs/audit.md");
    let docs = std::fs::read_to_string(&path).unwrap();
    let begin = "<!-- field reports: begin -->\n";
    let from = docs.find(begin).unwrap() + begin.len();
    let to = docs.find("<!-- field reports: end -->").unwrap();
    let table = findings_table();
    if std::env::var_os("AUDIT_DOCS").is_some_and(|value| value == "write") {
        std::fs::write(path, format!("{}{table}{}", &docs[..from], &docs[to..])).unwrap();
    } else {
        assert_eq!(&docs[from..to], table, "`just audit-docs` writes the table of docs/audit.md");
    }
}

/// Reports with a fault of most kinds.
const FAULTS: [&str; 6] = [
    "fsync = off\nfull_page_writes = off\nsynchronous_commit = off\ncheckpoint_timeout = 30min\n\
     shared_buffers = 16GB\nmount -o rw,nobarrier /dev/sda /mnt\nWrite cache is: Enabled\n\
     zfs set sync=always tank/pg\nzfs set logbias=throughput tank/pg\n\n\
     NAME PROPERTY VALUE SOURCE\ntank/pg sync disabled local\n\n\
     $ pgbench -c 65 -j 8 -T 900\ntransaction type: <builtin: TPC-B (sort of)>\n\
     scaling factor: 1\nquery mode: simple\nnumber of clients: 16\nnumber of threads: 40\n\
     duration: 900 s\nnumber of transactions actually processed: 3600000\n\
     number of failed transactions: 400000 (1.000%)\nlatency average = 5.000 ms\n\
     latency stddev = 1.000 ms\ntps = 4400.000000 (without initial connection time)\n",
    "number of clients: 8\nnumber of threads: 1\nnumber of transactions per client: 100\n\
     number of transactions actually processed: 790/900\nlatency average = 0.200 ms\n\
     latency stddev = 0.100 ms\ntps = 30000.000000 (without initial connection time)\n\
     statement latencies in milliseconds:\n 0.300 UPDATE a SET x = 1;\n 0.200 END;\n",
    "progress: 10.0 s, 4000.0 tps, lat 1.0 ms\nprogress: 20.0 s, 4100.0 tps, lat 1.0 ms\n\
     progress: 30.0 s, 900.0 tps, lat 1.0 ms\nprogress: 40.0 s, 4050.0 tps, lat 1.0 ms\n",
    "Number of threads: 16\n\nSQL statistics:\n    transactions:  3125   (52.00 per sec.)\n\
     General statistics:\n    total time:  601.0460s\n\
     Latency (ms):\n    avg:  3076.48\n    95th percentile:  100000.00\n",
    "fs tps tps tps tps mean ratio\next4 100 104 108 112 106.0 100\nxfs 90 95 97 99 95.25 89.9\n\
     zfs 50 51 52 53 54.0 51.0\nufs 101 101 101 101 101.0 95.3\n",
    "Compare file sync methods using one 8kB write:\n fdatasync 12839.525 ops/sec 88 usecs/op\n\n\
     avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n\
     \x20         60.64    0.00   13.89    2.42    0.00   33.06\n\n\
     | event | share |\n|---|---|\n| wal | 60% |\n| lock | 70% |\n\n\
     | fs | tps |\n|---|---|\n| xfs | 10,904 |\n| zfs | 75 |\n\nperformance is 25% of it\n",
];

#[test]
fn every_finding_has_its_sentence() {
    let audits = FAULTS.map(|text| {
        let audit = Audit::from_bytes("report.txt", text.as_bytes()).unwrap();
        ("report.txt".to_owned(), audit, None)
    });
    let view = AuditView::from(audits.as_slice());
    let mut lines = Vec::new();
    for judged in view.findings.iter().chain(&view.checked) {
        let severity = judged.severity.map_or("right".to_owned(), |severity| severity.to_string());
        lines.push(format!("{}, {severity}: {}", judged.rule, judged.message));
    }
    let unread = view.not_understood.iter();
    lines.extend(unread.map(|one| format!("line {}: {}", one.line, one.why)));
    insta::assert_snapshot!(lines.join("\n"));
}
