//! `pgdyno fsync`: how fast a directory's storage makes data durable.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use pgdyno_lab::probe::{self, FsyncOptions};
use pgdyno_model::units::Span;

use crate::context::Context;
use crate::duration::parse_duration;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::probe_result::finish_probe;
use crate::progress::ProgressOption;
use crate::shared_options::StoreOption;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pgdyno fsync /mnt/disk --duration 1s  Measure in half a minute

See also: pgdyno-disk(1), pg_test_fsync(1)")]
pub(crate) struct FsyncArgs {
    /// Directory to write in. The probe uses 80 MB there and frees them afterwards
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Size of each written block
    #[arg(long, value_enum, default_value = "8k")]
    pub(crate) block_size: BlockSize,
    /// Duration of each of the 25 tests
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    pub(crate) duration: Span,
    /// Duration of each test in seconds, as in pg_test_fsync
    #[arg(
        short = 's',
        long,
        value_name = "SECS",
        conflicts_with = "duration",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) secs_per_test: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressOption,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum BlockSize {
    #[value(name = "8k")]
    Kilobytes8,
    #[value(name = "16k")]
    Kilobytes16,
}

/// Measures the directory, and stores and prints the result.
pub(crate) fn run(options: &FsyncArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    let block_bytes = match options.block_size {
        BlockSize::Kilobytes8 => 8192,
        BlockSize::Kilobytes16 => 16384,
    };
    let per_test =
        options.secs_per_test.map_or(options.duration.0, |s| Duration::from_secs(s.into()));
    let tests = FsyncOptions { block_bytes, per_test, ..FsyncOptions::default() };
    let store = options.store.path();
    let measured = context.with_progress(options.progress, |progress| {
        probe::fsync(&options.directory, &tests, &store, progress, context.stop())
    });
    finish_probe(measured, options.json, context)
}
