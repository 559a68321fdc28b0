//! `pgdyno clean`: removes what a killed pgdyno left behind.

use std::path::PathBuf;

use clap::Args;
use pgdyno_lab::Bytes;
use pgdyno_lab::clean::{self as lab, Cleaned};

use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::{print, print_line};

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// List what is left behind, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove the loaded clusters that runs keep for later runs (`workload.keep_template`)
    #[arg(long)]
    pub(crate) templates: bool,
    /// Remove the files that failed crash tests left: images of filesystems, copies of PGDATA,
    /// ledgers. Records in the store stay
    #[arg(long, conflicts_with = "templates")]
    pub(crate) crashes: bool,
    /// Search these directories for marks, too
    #[arg(value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
}

/// Removes leftovers, or lists them for `--dry-run`.
pub(crate) fn run(options: &Options, context: &Context) -> Result<ExitStatus, CommandError> {
    const NOTHING: &str = "nothing is left behind";
    if options.templates {
        print_lines(&lab::templates(!options.dry_run)?, "no loaded cluster is kept");
        return Ok(ExitStatus::Success);
    }
    if options.crashes {
        let Cleaned { told, left } = lab::crashes(!options.dry_run);
        print_lines(&told, "nothing of a failed crash test is kept");
        return finish(left);
    }
    if options.dry_run {
        print_lines(&lab::find(&options.directories)?, NOTHING);
        print_kept_crashes();
        return Ok(ExitStatus::Success);
    }
    let cleaned = lab::clean(&options.directories, context.stop())?;
    print_lines(&cleaned.told, NOTHING);
    print_kept_crashes();
    finish(cleaned.left)
}

/// Prints how much room the leftovers of failed crash tests take. Only `--crashes` removes them.
fn print_kept_crashes() {
    let kept = lab::kept_crashes();
    if !kept.is_empty() {
        let bytes = Bytes(kept.iter().map(|kept| kept.bytes).sum());
        print(&format!(
            "kept: what {} failed crash tests left takes {bytes}; `pgdyno clean --crashes` removes it",
            kept.len()
        ));
    }
}

fn finish(left: bool) -> Result<ExitStatus, CommandError> {
    if left { Err(CommandError::NotAllRemoved) } else { Ok(ExitStatus::Success) }
}

/// Prints lines, or `none` if there are none.
fn print_lines(lines: &[String], none: &str) {
    if lines.is_empty() {
        print(none);
    }
    lines.iter().for_each(|line| print_line(line));
}
