//! Probes that never happened.

use pgdyno_model::ProbeRecord;
use pgdyno_model::probe::{
    DiskPoint, DiskProbe, Flushes, FsyncGroup, FsyncOutcome, FsyncProbe, FsyncTest, LatencySummary,
    Pattern, ProbeResult, Transfers,
};
use pgdyno_model::units::{Bytes, Epoch};

use super::{RUN, START, session_record};

/// An fsync probe in the run, complete.
pub fn fsync_probe() -> ProbeRecord {
    let latency = LatencySummary {
        us_mean: 980.0,
        us_p50: 910.4,
        us_p90: 1300.0,
        us_p95: 1_420.0,
        us_p99: 1_650.9,
        us_p999: 12_700.1,
        us_max: 90_112.0,
    };
    let measured =
        |operations: u64| FsyncOutcome::Measured(Flushes { operations, seconds: 5.0, latency });
    let test =
        |group, name: &str, files, outcome| FsyncTest { group, name: name.into(), files, outcome };
    let tests = vec![
        test(
            FsyncGroup::OneBlock,
            "open_datasync",
            1,
            FsyncOutcome::NotAvailable("O_DIRECT is refused".into()),
        ),
        test(FsyncGroup::OneBlock, "fdatasync", 1, measured(5_102)),
        test(FsyncGroup::OpenSyncSizes, " 1 * 16kB open_sync write", 1, measured(4_700)),
        test(FsyncGroup::OtherDescriptor, "write, close, fsync", 1, measured(5_000)),
        test(FsyncGroup::NotSynced, "write", 1, measured(2_400_123)),
        test(FsyncGroup::Concurrent, "fdatasync", 64, measured(20_480)),
    ];
    let warnings =
        vec!["sda is a disk of this test, and what it says is not to be believed at all".into()];
    let probe = FsyncProbe {
        block_bytes: 8192,
        seconds_per_test: 5.0,
        tests,
        complete: true,
        warnings,
        suspicions: Vec::new(),
    };
    ProbeRecord {
        id: "fsync-20261121-064813-abcd".into(),
        run: Some(RUN.into()),
        name: "here".into(),
        started_at: Epoch(START - 1),
        pgdyno_version: "0.1.0".into(),
        host: session_record().host,
        storage: session_record().storage.swap_remove(0),
        result: ProbeResult::Fsync(probe),
    }
}

/// A disk probe by itself, interrupted.
pub fn disk_probe() -> ProbeRecord {
    let side = |iops: f64, block: u32| Transfers {
        operations: 3_000,
        iops,
        bytes_per_second: iops * f64::from(block),
        latency: LatencySummary {
            us_p50: 85.5,
            us_p99: 220.0,
            us_p999: 1_900.0,
            us_max: 4_000.0,
            ..Default::default()
        },
    };
    let point = |pattern: Pattern, block_bytes, queue_depth, offset, iops: f64| DiskPoint {
        pattern,
        block_bytes,
        queue_depth,
        offset: Bytes(offset),
        length: Bytes(2_000_000_000),
        seconds: 3.0,
        read: (pattern != Pattern::Write).then(|| side(iops, block_bytes)),
        write: pattern.writes().then(|| side(iops / 2.0, block_bytes)),
    };
    let points = vec![
        point(Pattern::Write, 1 << 20, 4, 0, 900.0),
        point(Pattern::Write, 1 << 20, 4, 2_000_000_000, 800.0),
        point(Pattern::Read, 1 << 20, 4, 0, 2_500.0),
        point(Pattern::RandRead, 8192, 1, 0, 11_000.0),
        point(Pattern::RandRead, 8192, 64, 0, 240_000.0),
        point(Pattern::RandRw, 8192, 16, 0, 50_000.0),
    ];
    ProbeRecord {
        id: "disk-20261121-064813-efgh".into(),
        run: None,
        name: "/mnt/ssd".into(),
        started_at: Epoch(START + 9),
        result: ProbeResult::Disk(DiskProbe {
            trimmed: false,
            driver: "fio-3.33 (libaio)".into(),
            direct: true,
            span: Bytes(4_000_000_000),
            seconds_per_point: 3.0,
            points,
            not_measured: vec!["randwrite, queue depth 8: it went wrong".into()],
            complete: false,
            warnings: Vec::new(),
        }),
        ..fsync_probe()
    }
}
