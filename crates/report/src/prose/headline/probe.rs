//! The verdict card of a probe.

use pgdyno_model::ProbeRecord;
use pgdyno_model::probe::{
    DiskPoint, DiskProbe, FsyncGroup, FsyncProbe, Pattern, ProbeResult, Suspicion,
};
use pgdyno_text::format;

use super::{figure, joined};
use crate::headline::{Headline, KeyFigure};
use pgdyno_analysis::Badge;

/// Returns the card of the probe `record`.
pub(crate) fn probe_headline(record: &ProbeRecord) -> Headline {
    let badge = if record.result.is_complete() { Badge::Recorded } else { Badge::Unfinished };
    let (answer, figures) = match &record.result {
        ProbeResult::Fsync(probe) => (flushes(record, probe), flush_figures(probe)),
        ProbeResult::Disk(probe) => (transfers(record, probe), transfer_figures(probe)),
    };
    Headline { answer, figures, badge, ..Headline::default() }
}

fn flushes(record: &ProbeRecord, probe: &FsyncProbe) -> String {
    let rate = match probe.flushes(FsyncGroup::OneBlock, "fdatasync") {
        Some(found) => format!("{} flushes/s of one writer", format::rate(found.per_second())),
        None => "fdatasync was not measured".to_owned(),
    };
    let reasons: Vec<&str> = probe.suspicions.iter().copied().map(suspicion).collect();
    match reasons.as_slice() {
        [] => format!("`{}` shows no sign that it acknowledges from a cache: {rate}.", record.name),
        reasons => format!(
            "`{}` acknowledges from a cache, as far as can be seen from here: {rate}; {}.",
            record.name,
            reasons.join("; ")
        ),
    }
}

fn flush_figures(probe: &FsyncProbe) -> Vec<KeyFigure> {
    let Some(found) = probe.flushes(FsyncGroup::OneBlock, "fdatasync") else { return Vec::new() };
    let block = joined([Some(format!("fdatasync, {} bytes", probe.block_bytes))]);
    let latency = |us: f64| format!("{} ms", format::milliseconds(us));
    let rate = format!("{} flushes/s", format::rate(found.per_second()));
    let p50 = joined([Some(format!("p50 {}", latency(found.latency.us_p50)))]);
    let most = probe
        .tests
        .iter()
        .filter(|test| test.group == FsyncGroup::Concurrent)
        .filter_map(|test| Some((test.files, test.outcome.flushes()?.per_second())))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let most = most.map(|(files, rate)| {
        let writers = joined([Some(format::counted(files, "writer"))]);
        figure("most flushes of several writers", format!("{} /s", format::rate(rate)), writers)
    });
    let mut figures = vec![
        figure("flush rate of one writer", rate, block),
        figure("p99 flush latency", latency(found.latency.us_p99), p50),
    ];
    figures.extend(most);
    figures
}

/// Returns the point of `pattern` with the most requests per second.
fn fastest(probe: &DiskProbe, pattern: Pattern) -> Option<(&DiskPoint, f64)> {
    let iops = |point: &DiskPoint| {
        [point.read, point.write].into_iter().flatten().map(|t| t.iops).sum::<f64>()
    };
    let points = probe.points.iter().filter(|point| point.pattern == pattern);
    points.map(|point| (point, iops(point))).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Returns the mean rate of sequential transfers over the measured zones (bytes/s).
fn sequential(probe: &DiskProbe, pattern: Pattern) -> Option<f64> {
    let rates: Vec<f64> = probe
        .points
        .iter()
        .filter(|point| point.pattern == pattern)
        .filter_map(|point| point.write.or(point.read))
        .map(|transfers| transfers.bytes_per_second)
        .collect();
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
}

fn transfers(record: &ProbeRecord, probe: &DiskProbe) -> String {
    let megabytes = |what: &str, pattern| {
        let rate = sequential(probe, pattern)?;
        Some(format!("{what} {} MB/s", format::rate(rate / 1e6)))
    };
    let parts = [
        megabytes("sequential writes", Pattern::Write),
        megabytes("sequential reads", Pattern::Read),
        fastest(probe, Pattern::RandRead)
            .map(|(_, iops)| format!("random reads up to {} IOPS", format::rate(iops))),
    ];
    let found = joined(parts).unwrap_or_else(|| "nothing was measured".to_owned());
    format!("`{}`: {found}, measured by {}.", record.name, probe.driver)
}

fn transfer_figures(probe: &DiskProbe) -> Vec<KeyFigure> {
    let random = |name: &str, pattern| {
        let (point, iops) = fastest(probe, pattern)?;
        let latency = point
            .write
            .or(point.read)
            .map(|transfers| format!("p99 {} ms", format::milliseconds(transfers.latency.us_p99)));
        let depth = Some(format!("queue depth {}", point.queue_depth));
        Some(figure(name, format!("{} IOPS", format::rate(iops)), joined([depth, latency])))
    };
    let writes = sequential(probe, Pattern::Write).map(|rate| {
        figure("sequential writes", format!("{} MB/s", format::rate(rate / 1e6)), None)
    });
    let random_reads = random("random reads", Pattern::RandRead);
    let random_writes = random("random writes", Pattern::RandWrite);
    [writes, random_reads, random_writes].into_iter().flatten().collect()
}

/// Returns a sign of early acknowledgement in a few words.
pub(crate) fn suspicion(suspicion: Suspicion) -> &'static str {
    match suspicion {
        Suspicion::QuickerThanRotation => "more flushes a second than a rotating disk has turns",
        Suspicion::QuickerThanCommands => {
            "a flush takes less time than the commands that it is made of"
        }
        Suspicion::QuickerThanFlash => "a flush takes less time than flash takes to be programmed",
        Suspicion::NoSlowerThanWrites => "a write with a flush takes no longer than one without",
        Suspicion::Memory => "it is memory",
        Suspicion::NoBarriers => "it is mounted so that the disk is sent no flushes",
    }
}
