//! The fsync probe beside PostgreSQL's own `pg_test_fsync`: on the same directory, in turn (A B, B
//! A, …). What is printed for each test is the median of operations a second on both sides and the
//! median of the rounds' ratios.
//!
//!     cargo bench -p pgdyno-storage --bench vs_pg_test_fsync -- --help

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Parser;
use pgdyno_exec::journal::Journal;
use pgdyno_model::probe::{Flushes, FsyncTest};
use pgdyno_postgres::{Install, find_all};
use pgdyno_storage::probe::{FsyncOptions, fsync};
use pgdyno_test_support::median;

/// How far a ratio may be from 1 before its line is marked.
const TOLERANCE: f64 = 0.1;

#[derive(Parser)]
struct Options {
    /// Rounds, each with both programs once.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Length of each test (s).
    #[arg(long, default_value_t = 1)]
    seconds: u32,
    /// Where the files are written.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    directory: PathBuf,
    /// Cargo adds this flag.
    #[arg(long, hide = true)]
    bench: bool,
}

type Failure = Box<dyn std::error::Error>;

fn main() {
    if let Err(e) = compare(&Options::parse()) {
        let _ = writeln!(std::io::stderr(), "error: {e}");
        std::process::exit(1);
    }
}

/// Operations a second of one test, none where it is not available.
type Rate = Option<f64>;

fn compare(options: &Options) -> Result<(), Failure> {
    let program = |install: &Install| install.bindir.join("pg_test_fsync");
    let install = find_all()
        .into_iter()
        .find(|i| program(i).is_file())
        .ok_or("no pg_test_fsync is installed here")?;
    let theirs = program(&install);
    let place = tempfile::tempdir_in(&options.directory)?;
    let state = tempfile::tempdir()?;
    let journal = Journal::open(state.path())?;
    let mut names = Vec::new();
    let (mut left, mut right): (Vec<Vec<Rate>>, Vec<Vec<Rate>>) = (Vec::new(), Vec::new());
    for round in 0..options.rounds {
        let ours_first = round % 2 == 0;
        for ours in [ours_first, !ours_first] {
            if ours {
                let (named, rates): (Vec<_>, Vec<_>) =
                    pgdyno(place.path(), options.seconds, &journal)?.into_iter().unzip();
                names = named;
                left.push(rates);
            } else {
                right.push(pg_test_fsync(&theirs, place.path(), options.seconds)?);
            }
        }
        let _ = writeln!(std::io::stderr(), "round {} of {}", round + 1, options.rounds);
    }
    if let Some(other) = right.iter().find(|r| r.len() != names.len()) {
        return Err(
            format!("pg_test_fsync did {} tests, pgdyno {}", other.len(), names.len()).into()
        );
    }
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "pg_test_fsync {}, {} rounds of {} s a test",
        install.version, options.rounds, options.seconds
    )?;
    writeln!(
        out,
        "{:<40}{:>12}{:>15}{:>8}",
        "ops/sec, medians", "pgdyno", "pg_test_fsync", "ratio"
    )?;
    for (test, name) in names.iter().enumerate() {
        let of =
            |side: &[Vec<Rate>]| side.iter().filter_map(|round| round[test]).collect::<Vec<f64>>();
        let (ours, theirs) = (of(&left), of(&right));
        if ours.is_empty() && theirs.is_empty() {
            writeln!(out, "{name:<40}{:>12}{:>15}", "n/a", "n/a")?;
            continue;
        }
        let ratio = median(&ours.iter().zip(&theirs).map(|(a, b)| a / b).collect::<Vec<_>>());
        let mark = if (ratio - 1.0).abs() > TOLERANCE { "  !" } else { "" };
        writeln!(
            out,
            "{name:<40}{:>12.0}{:>15.0}{ratio:>8.2}{mark}",
            median(&ours),
            median(&theirs)
        )?;
    }
    Ok(())
}

fn pgdyno(
    directory: &Path,
    seconds: u32,
    journal: &Journal,
) -> Result<Vec<(String, Rate)>, Failure> {
    let per_test = Duration::from_secs(seconds.into());
    let options = FsyncOptions { per_test, writers: Vec::new(), ..FsyncOptions::default() };
    let (_, probe) = fsync(directory, &options, journal, &|_, _| {}, &AtomicBool::new(false))?;
    let rate = |test: &FsyncTest| test.outcome.flushes().map(Flushes::per_second);
    Ok(probe.tests.iter().map(|t| (format!("{:?}: {}", t.group, t.name), rate(t))).collect())
}

/// One line a test, in the same order as ours: a rate before `ops/sec`, or `n/a`.
fn pg_test_fsync(program: &Path, directory: &Path, seconds: u32) -> Result<Vec<Rate>, Failure> {
    let file = directory.join("pg_test_fsync.out");
    let ran = Command::new(program)
        .args(["-s", &seconds.to_string(), "-f"])
        .arg(&file)
        .env("LC_ALL", "C")
        .output()?;
    if !ran.status.success() {
        return Err(format!("pg_test_fsync: {}", String::from_utf8_lossy(&ran.stderr)).into());
    }
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let mut rates = Vec::new();
    for line in text.lines() {
        if let Some((before, _)) = line.split_once(" ops/sec") {
            rates.push(Some(before.split_whitespace().last().ok_or("no rate")?.parse()?));
        } else if line.contains("n/a") {
            rates.push(None);
        }
    }
    Ok(rates)
}
