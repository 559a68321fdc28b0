//! `pgdyno clean`: removes what a killed pgdyno left behind.

use std::path::PathBuf;

use clap::Args;
use pgdyno_lab::clean::{self as lab, Cleaned, KeptCrash};
use pgdyno_model::units::Bytes;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::{print, print_line};

#[derive(Args, Debug)]
#[command(after_help = "\
Files:
  $XDG_STATE_HOME/pgdyno/  The journal of what has to be taken down. XDG_STATE_HOME is
                           ~/.local/state unless it is set

Examples:
  pgdyno clean --dry-run  List what a killed pgdyno left behind

See also: pgdyno-run(1), pgdyno-crash(1)")]
pub(crate) struct CleanArgs {
    /// List what is left behind, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove the loaded clusters that runs keep for later runs (`workload.keep_template`)
    #[arg(long)]
    pub(crate) templates: bool,
    /// Remove the files that crash tests keep: of failed ones images of filesystems, copies of
    /// PGDATA and ledgers, and recorded loads that `pgdyno crash --resume` would go on with.
    /// Records in the store stay
    #[arg(long, conflicts_with = "templates")]
    pub(crate) crashes: bool,
    /// Search these directories for marks, too
    #[arg(value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
}

/// Removes leftovers, or lists them for `--dry-run`.
pub(crate) fn run(options: &CleanArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    const NOTHING: &str = "nothing is left behind";
    if options.templates {
        print_lines(&lab::templates(!options.dry_run)?, "no loaded cluster is kept");
        return Ok(ExitStatus::Success);
    }
    if options.crashes {
        let Cleaned { told, left } = lab::crashes(!options.dry_run);
        print_lines(&told, "nothing of a crash test is kept");
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

/// Prints how much room the files of crash tests take. Only `--crashes` removes them.
fn print_kept_crashes() {
    let (stretches, failed): (Vec<_>, Vec<_>) =
        lab::kept_crashes().into_iter().partition(|kept| kept.has_stretch);
    let bytes = |kept: &[KeptCrash]| Bytes(kept.iter().map(|kept| kept.bytes).sum());
    if !failed.is_empty() {
        print(&format!(
            "kept: what {} failed crash tests left takes {}; `pgdyno clean --crashes` removes it",
            failed.len(),
            bytes(&failed)
        ));
    }
    if let Some(newest) = stretches.last() {
        print(&format!(
            "kept: what {} crash tests recorded and did not judge to the end takes {}; \
             `pgdyno crash --resume {}` goes on, `pgdyno clean --crashes` removes it",
            stretches.len(),
            bytes(&stretches),
            newest.id
        ));
    }
}

fn finish(left: bool) -> Result<ExitStatus, CommandError> {
    if left {
        return Err(CommandError::new(
            "not everything could be removed; what is left is listed above",
        ));
    }
    Ok(ExitStatus::Success)
}

/// Prints lines, or `none` if there are none.
fn print_lines(lines: &[String], none: &str) {
    if lines.is_empty() {
        print(none);
    }
    lines.iter().for_each(|line| print_line(line));
}
