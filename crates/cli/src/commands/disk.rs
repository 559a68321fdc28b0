//! `pgdyno disk`: a disk's raw curves.

use std::path::PathBuf;

use clap::Args;
use pgdyno_lab::probe::{self, DiskOptions};
use pgdyno_model::units::{Bytes, Span};

use crate::context::Context;
use crate::duration::parse_duration;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print;
use crate::probe_result::finish_probe;
use crate::progress::ProgressOption;
use crate::shared_options::StoreOption;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pgdyno disk /mnt/disk  Measure the disk under a folder

See also: pgdyno-fsync(1), fio(1)")]
pub(crate) struct DiskArgs {
    /// A directory, in which a file is created, written and read; or a block device, which is only
    /// read
    #[arg(value_name = "DIR|DEVICE")]
    pub(crate) target: PathBuf,
    /// Size of the file that is created in a directory
    #[arg(long, default_value = "4GiB")]
    pub(crate) size: Bytes,
    /// Duration of each point. The sequential write instead fills the file once
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = parse_duration)]
    pub(crate) duration: Span,
    /// Use pgdyno's own, simpler load even if fio is installed
    #[arg(long)]
    pub(crate) builtin: bool,
    /// Print the plan and change nothing: each point with fio's arguments
    #[arg(long, conflicts_with = "json")]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressOption,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Measures the disk, and stores and prints the result.
pub(crate) fn run(options: &DiskArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    let points = DiskOptions {
        size: options.size,
        per_point: options.duration.0,
        builtin: options.builtin,
        ..DiskOptions::default()
    };
    if options.dry_run {
        print(&probe::disk_dry_run(&options.target, &points)?);
        return Ok(ExitStatus::Success);
    }
    let store = options.store.path();
    let measured = context.with_progress(options.progress, |progress| {
        probe::disk(&options.target, &points, &store, progress, context.stop())
    });
    finish_probe(measured, options.json, context)
}
