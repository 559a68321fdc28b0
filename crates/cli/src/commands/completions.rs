//! `pgdyno completions` and the man pages of the packages, both made from the declared options.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Args, Command};
use clap_complete::Shell;

use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The shell: its completions are printed
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

#[derive(Args, Debug)]
pub(crate) struct ManPagesOptions {
    /// An existing folder: it gets a page for pgdyno and one for each command
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

/// Prints the completions of `command`, whose options are all declared but pgbench's.
pub(crate) fn run(options: &Options, command: Command) -> ExitStatus {
    // Every command has `--quiet` and `--verbose`; a letter can be described once only.
    let pgbench = pgbench_options().filter(|option| option.get_long() != Some("quiet"));
    let pgbench: Vec<Arg> = pgbench
        .map(|option| match option.get_short() {
            Some('q' | 'v') => option.short(None),
            _ => option,
        })
        .collect();
    let command = command.mut_subcommand("pgbench", |command| command.args(pgbench));
    // What is hidden in the help is hidden here, too.
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    let mut command = Command::new("pgdyno")
        .version(env!("CARGO_PKG_VERSION"))
        .args(command.get_arguments())
        .subcommands(shown);
    // It panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, "pgdyno", &mut script);
    print(&String::from_utf8_lossy(&script));
    ExitStatus::Success
}

/// Refuses to write man pages: this build cannot.
#[cfg(not(feature = "man-pages"))]
pub(crate) fn write_man_pages(_: &ManPagesOptions, _: Command) -> Result<ExitStatus, CommandError> {
    Err(CommandError::NoManPages)
}

/// Writes the man pages of `command` and of its commands: `pgdyno.1`, `pgdyno-run.1` and so on.
#[cfg(feature = "man-pages")]
pub(crate) fn write_man_pages(
    options: &ManPagesOptions,
    command: Command,
) -> Result<ExitStatus, CommandError> {
    let failed = |source| CommandError::ManPages { folder: options.folder.clone(), source };
    clap_mangen::generate_to(command, &options.folder).map_err(failed)?;
    // It reads its options itself, so that clap does not know them.
    let pgbench = Command::new("pgdyno-pgbench")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Run pgbench's scripts, with pgbench's options and report")
        .disable_help_flag(true)
        .disable_version_flag(true)
        .arg(Arg::new("dbname-operand").value_name("DBNAME").help("the database"))
        .args(pgbench_options());
    clap_mangen::Man::new(pgbench).generate_to(&options.folder).map_err(failed)?;
    Ok(ExitStatus::Success)
}

/// Declares pgbench's options for clap.
fn pgbench_options() -> impl Iterator<Item = Arg> {
    pgdyno_pgbench::options().map(|option| {
        let arg = Arg::new(option.long).short(option.short).long(option.long).help(option.meaning);
        match option.argument {
            Some(name) => arg.value_name(name).action(ArgAction::Append),
            None => arg.action(ArgAction::SetTrue),
        }
    })
}
