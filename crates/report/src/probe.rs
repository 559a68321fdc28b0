//! Renders a probe for a terminal: tables of 80 columns in the form of `pg_test_fsync`, and curves
//! in rows.

use std::fmt::Write as _;

use pgdyno_model::ProbeRecord;
use pgdyno_model::facts::StorageFacts;
use pgdyno_model::probe::{
    DiskPoint, DiskProbe, FsyncGroup, FsyncOutcome, FsyncProbe, FsyncTest, LatencySummary, Pattern,
    ProbeResult, Transfers,
};
use pgdyno_text::format;

use super::text::wrap;

/// Width of text and tables (columns).
const WIDTH: usize = 80;

/// Renders the probe's tables and notes as plain text of 80 columns.
pub fn probe(record: &ProbeRecord) -> String {
    let mut out = String::new();
    let state = if record.result.is_complete() { "" } else { ", not complete" };
    paragraph(
        &mut out,
        &format!("{}: {}{}{state}", record.id, record.name, under(&record.storage)),
    );
    let host = &record.host;
    paragraph(
        &mut out,
        &format!("{}, {}, {} CPUs, {}", host.os, host.kernel, host.cpus, host.memory),
    );
    match &record.result {
        ProbeResult::Fsync(probe) => fsync(&mut out, probe),
        ProbeResult::Disk(probe) => disk(&mut out, probe),
    }
    list(&mut out, "Suspect", record.result.warnings());
    out
}

/// Describes filesystem and disk: ` on ext4, disk sda (model, write back)`.
fn under(storage: &StorageFacts) -> String {
    let mut text = String::new();
    if !storage.filesystem.is_empty() {
        let _ = write!(text, " on {}", storage.filesystem);
    }
    if let Some(disk) = &storage.disk {
        let _ = write!(text, ", disk {disk}");
    }
    let more: Vec<&str> =
        [&storage.model, &storage.write_cache].into_iter().filter_map(|t| t.as_deref()).collect();
    if !more.is_empty() {
        let _ = write!(text, " ({})", more.join(", "));
    }
    text
}

fn paragraph(out: &mut String, text: &str) {
    for line in wrap(text, WIDTH, "") {
        let _ = writeln!(out, "{line}");
    }
}

fn list(out: &mut String, title: &str, items: &[String]) {
    if !items.is_empty() {
        let _ = writeln!(out, "\n{title}");
        for line in items.iter().flat_map(|item| wrap(&format!("- {item}"), WIDTH, "  ")) {
            let _ = writeln!(out, "{line}");
        }
    }
}

fn fsync(out: &mut String, probe: &FsyncProbe) {
    let kilobytes = probe.block_bytes / 1024;
    let seconds = format::seconds(probe.seconds_per_test);
    paragraph(
        out,
        &format!(
            "{seconds} s per test; open_datasync and open_sync with O_DIRECT, as pg_test_fsync of \
             PostgreSQL 15 does"
        ),
    );
    for group in [
        FsyncGroup::OneBlock,
        FsyncGroup::TwoBlocks,
        FsyncGroup::OpenSyncSizes,
        FsyncGroup::OtherDescriptor,
        FsyncGroup::NotSynced,
        FsyncGroup::Concurrent,
    ] {
        let tests: Vec<&FsyncTest> = probe.tests.iter().filter(|t| t.group == group).collect();
        if tests.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n{}", heading(group, kilobytes));
        columns(out, "", "ops/sec", "usecs/op");
        for test in tests {
            let label = match group {
                FsyncGroup::Concurrent => {
                    format!("{:>2} file{}", test.files, if test.files == 1 { "" } else { "s" })
                }
                _ => test.name.clone(),
            };
            row(out, test, &label);
        }
    }
    if let Some(rate) = probe.ceiling_for_commits(1) {
        let _ = writeln!(
            out,
            "\nCeiling for commits (synchronous_commit = on, wal_sync_method = fdatasync)"
        );
        for line in wrap(
            &format!(
                "one client: {} a second; n clients: at most n times that, as PostgreSQL flushes \
                 WAL one flush at a time, and each carries at most one commit of every client",
                format::rate(rate)
            ),
            WIDTH - 2,
            "",
        ) {
            let _ = writeln!(out, "  {line}");
        }
    }
}

fn heading(group: FsyncGroup, kilobytes: u32) -> String {
    match group {
        FsyncGroup::OneBlock => {
            format!("One {kilobytes}kB write, by wal_sync_method (Linux's default is fdatasync)")
        }
        FsyncGroup::TwoBlocks => format!("Two {kilobytes}kB writes, by wal_sync_method"),
        FsyncGroup::OpenSyncSizes => "16kB through open_sync, in writes of different sizes".into(),
        FsyncGroup::OtherDescriptor => {
            "Does fsync cover what another descriptor wrote? (Yes, if the times are alike.)".into()
        }
        FsyncGroup::NotSynced => format!("{kilobytes}kB writes that nothing flushes"),
        FsyncGroup::Concurrent => {
            format!(
                "Concurrent writers, a file each: {kilobytes}kB and fdatasync; ops/sec of all \
                 together"
            )
        }
    }
}

/// Writes the header of a table: a label, two figures, latencies.
fn columns(out: &mut String, label: &str, first: &str, second: &str) {
    let _ = writeln!(
        out,
        "  {label:<26}{first:>11}{second:>9}{:>8}{:>8}{:>8}{:>8}",
        "p50", "p99", "p99.9", "max"
    );
}

fn row(out: &mut String, test: &FsyncTest, label: &str) {
    let _ = match &test.outcome {
        FsyncOutcome::NotAvailable(why) => writeln!(out, "  {label:<26}{:>11}  {why}", "n/a"),
        FsyncOutcome::Measured(found) => {
            // Of one writer: what it waits for each, however many others there are.
            let us = f64::from(test.files) * 1e6 / found.per_second();
            let latency = latencies(&found.latency);
            writeln!(out, "  {label:<26}{:>11.3}{us:>9.0}{latency}", found.per_second())
        }
    };
}

fn latencies(latency: &LatencySummary) -> String {
    [latency.us_p50, latency.us_p99, latency.us_p999, latency.us_max]
        .map(|us| format!(" {us:>7.0}"))
        .concat()
}

fn disk(out: &mut String, probe: &DiskProbe) {
    let cache = if probe.direct { "O_DIRECT" } else { "through the page cache" };
    paragraph(
        out,
        &format!(
            "{} over {}, {} s per point, {cache}; latencies in microseconds",
            probe.driver,
            probe.span,
            format::seconds(probe.seconds_per_point)
        ),
    );
    for (pattern, title) in [
        (Pattern::Write, "Sequential writes, 1 MiB each, 4 at a time: each zone once, and flushed"),
        (Pattern::Read, "Sequential reads, 1 MiB each, 4 at a time"),
        (Pattern::RandRead, "Random reads, 8 kB"),
        (Pattern::RandWrite, "Random writes, 8 kB"),
        (Pattern::RandRw, "Random reads and writes, 8 kB, 70 to 30"),
    ] {
        let points: Vec<&DiskPoint> =
            probe.points.iter().filter(|p| p.pattern == pattern).collect();
        if points.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n{title}");
        columns(out, "", "IOPS", "MB/s");
        for point in points {
            let label = match pattern {
                Pattern::Write | Pattern::Read => format!("at {}", point.offset),
                _ => format!("queue depth {:>2}", point.queue_depth),
            };
            let sides = [(&point.read, "read"), (&point.write, "write")];
            for (side, name) in sides {
                let Some(transfers) = side else { continue };
                let label = if pattern == Pattern::RandRw {
                    format!("{label}, {name}")
                } else {
                    label.clone()
                };
                transferred(out, &label, transfers);
            }
        }
    }
    list(out, "Not measured", &probe.not_measured);
}

fn transferred(out: &mut String, label: &str, transfers: &Transfers) {
    let latency = latencies(&transfers.latency);
    let megabytes = transfers.bytes_per_second / 1e6;
    let _ = writeln!(out, "  {label:<26}{:>11.0}{megabytes:>9.1}{latency}", transfers.iops);
}
