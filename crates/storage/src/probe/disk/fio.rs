//! Load offered by fio: its arguments, and its answer.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pgdyno_exec::journal::Journal;
use pgdyno_exec::tool::ask_tool;
use pgdyno_exec::{ExecContext, Executor, Step};
use pgdyno_model::probe::{DiskPoint, LatencySummary, Pattern, Transfers};
use serde::Deserialize;

use super::point::Planned;
use crate::probe::ProbeError;

/// How long fio may take to print its version.
const VERSION_LIMIT: Duration = Duration::from_secs(15);

/// fio's percentiles, as asked for and as its JSON names them.
const PERCENTILES: &str = "--percentile_list=50:90:95:99:99.9";

/// An installed fio.
pub(super) struct Fio {
    program: PathBuf,
    version: String,
}

impl Fio {
    /// Returns the first fio in `PATH`; none if there is none.
    pub(super) fn find() -> Result<Option<Self>, ProbeError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found =
            std::env::split_paths(&path).map(|folder| folder.join("fio")).find(|p| p.is_file());
        let Some(program) = found else { return Ok(None) };
        let answer = ask_tool(&program, &["--version"], VERSION_LIMIT);
        let answer =
            answer.map_err(std::io::Error::other).map_err(ProbeError::io("run", &program))?;
        let version = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        Ok(Some(Self { program, version }))
    }

    #[cfg(test)]
    pub(super) fn at(program: PathBuf) -> Self {
        Self { program, version: "fio-3.33".into() }
    }

    /// Returns its name for the record.
    pub(super) fn name(&self) -> String {
        format!("{} (libaio)", self.version)
    }

    /// Returns the step that measures `point` on `file`; its output goes into the directory
    /// `place`.
    pub(super) fn step(
        &self,
        point: &Planned,
        file: &Path,
        place: &Path,
        read_only: bool,
        direct: bool,
    ) -> Step {
        let mut args: Vec<OsString> = vec![
            format!("--name={}", point.pattern.name()).into(),
            argument("--filename=", &escaped(file)),
            format!("--rw={}", point.pattern.name()).into(),
            format!("--bs={}", point.block_bytes).into(),
            format!("--iodepth={}", point.queue_depth).into(),
            format!("--offset={}", point.offset).into(),
            format!("--size={}", point.length).into(),
            format!("--direct={}", u8::from(direct)).into(),
        ];
        let mut add = |words: &[&str]| args.extend(words.iter().map(OsString::from));
        add(&["--ioengine=libaio", "--thread", "--fallocate=none", "--refill_buffers"]);
        match point.for_ {
            Some(for_) => add(&["--time_based", &format!("--runtime={}ms", for_.as_millis())]),
            // The flush is part of the time: what a cache took is not yet written.
            None => add(&["--end_fsync=1"]),
        }
        if !matches!(point.pattern, Pattern::Read | Pattern::Write) {
            add(&["--norandommap", "--randrepeat=0"]);
        }
        if point.pattern == Pattern::RandRw {
            add(&["--rwmixread=70"]);
        }
        if read_only {
            add(&["--readonly"]);
        }
        add(&["--lat_percentiles=1", "--clat_percentiles=0", PERCENTILES, "--output-format=json+"]);
        args.push(argument("--output=", answer(place).as_os_str().as_bytes()));
        Step::Run {
            program: self.program.clone(),
            args,
            as_account: None,
            output: place.join("fio.log"),
        }
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn measure(
        &self,
        point: &Planned,
        file: &Path,
        place: &Path,
        read_only: bool,
        direct: bool,
        journal: &Journal,
        stop: &AtomicBool,
    ) -> Result<DiskPoint, ProbeError> {
        let step = self.step(point, file, place, read_only, direct);
        ExecContext::new(journal, stop).execute(&step)?;
        let path = answer(place);
        let text = std::fs::read_to_string(&path);
        parse(point, &text.map_err(ProbeError::io("read", &path))?)
    }
}

/// Where fio writes its answer.
fn answer(place: &Path) -> PathBuf {
    place.join("fio.json")
}

fn argument(name: &str, value: &[u8]) -> OsString {
    let mut bytes = name.as_bytes().to_vec();
    bytes.extend_from_slice(value);
    OsString::from_vec(bytes)
}

/// Returns a path as fio's `filename` wants it: a colon would begin another file's name.
fn escaped(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &byte in path.as_os_str().as_bytes() {
        if byte == b':' {
            bytes.push(b'\\');
        }
        bytes.push(byte);
    }
    bytes
}

#[derive(Deserialize)]
struct Answer {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    error: i32,
    read: Side,
    write: Side,
}

#[derive(Deserialize)]
struct Side {
    total_ios: u64,
    iops: f64,
    /// Bytes per second.
    bw_bytes: f64,
    /// Milliseconds.
    runtime: f64,
    lat_ns: Latency,
}

#[derive(Deserialize)]
struct Latency {
    mean: f64,
    max: f64,
    #[serde(default)]
    percentile: BTreeMap<String, f64>,
}

/// Parses fio's JSON into the measurement at `point`.
pub(super) fn parse(point: &Planned, text: &str) -> Result<DiskPoint, ProbeError> {
    let wrong = |found: String| ProbeError::Fio { point: point.label(), found };
    // What fio has to note stands before its JSON.
    let json = text.find('{').map_or(text, |begin| &text[begin..]);
    let answer: Answer = serde_json::from_str(json).map_err(|e| wrong(e.to_string()))?;
    let [job] = answer.jobs.as_slice() else {
        return Err(wrong(format!("{} jobs", answer.jobs.len())));
    };
    if job.error != 0 {
        return Err(wrong(std::io::Error::from_raw_os_error(job.error).to_string()));
    }
    let (read, write) = (transfers(&job.read), transfers(&job.write));
    if read.is_none() && write.is_none() {
        return Err(wrong("no request was done".into()));
    }
    let seconds = job.read.runtime.max(job.write.runtime) / 1000.0;
    Ok(point.measured(seconds, read, write))
}

fn transfers(side: &Side) -> Option<Transfers> {
    // fio's percentiles are upper ends of its buckets, which may lie above the longest latency.
    let of = |name: &str| side.lat_ns.percentile.get(name).copied().unwrap_or_default();
    let percentile = |name: &str| of(name).min(side.lat_ns.max) / 1000.0;
    (side.total_ios > 0).then(|| Transfers {
        operations: side.total_ios,
        iops: side.iops,
        bytes_per_second: side.bw_bytes,
        latency: LatencySummary {
            us_mean: side.lat_ns.mean / 1000.0,
            us_p50: percentile("50.000000"),
            us_p90: percentile("90.000000"),
            us_p95: percentile("95.000000"),
            us_p99: percentile("99.000000"),
            us_p999: percentile("99.900000"),
            us_max: side.lat_ns.max / 1000.0,
        },
    })
}
