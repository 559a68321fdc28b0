//! `pgdyno doctor`: what this machine offers, and what to change.

mod document;
mod page;

use std::path::PathBuf;

use clap::Args;
use pgdyno_lab::Serials;
use pgdyno_lab::doctor::examine;
use pgdyno_model::facts::SmartType;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print;
use pgdyno_report::json::json;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pgdyno doctor /mnt/disk  Examine the machine and that storage

See also: pgdyno-fsync(1), pgdyno-disk(1)")]
pub(crate) struct DoctorArgs {
    /// Directory whose storage is examined [default: where pgdyno would create its clusters]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// How smartctl reaches the disk behind a RAID controller, as its `--device` has it:
    /// `megaraid,3`, `cciss,0`, `3ware,1`, `areca,2/1`
    #[arg(long, value_name = "TYPE")]
    pub(crate) smart: Option<SmartType>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show the serial numbers of disks. By default only their hashes are shown
    #[arg(long)]
    pub(crate) keep_serials: bool,
}

/// Examines the machine and prints the findings. Findings do not change the exit status.
pub(crate) fn run(options: &DoctorArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    let serials = if options.keep_serials { Serials::Kept } else { Serials::Hashed };
    let doctor = examine(options.directory.as_deref(), serials, options.smart.as_ref());
    print(&if options.json {
        json(&document::DoctorDocument::from(&doctor))?
    } else {
        page::render(&doctor, context.is_verbose(), context.prose_width())
    });
    Ok(ExitStatus::Success)
}
