//! `pgdyno new`: writes an experiment file, from options and from answers to a few questions.
//!
//! [`draft`] collects what the options say and asks for the rest, [`write()`] makes the file.

use std::fs::Permissions;
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use pgdyno_experiment::draft::{Draft, DraftFactor, Preset, RunSize};
use pgdyno_model::units::Span;
use pgdyno_provision::ThisHost;
use pgdyno_text::format::counted;

use crate::ask::Answers;
use crate::context::Context;
use crate::duration::parse_duration;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::new_error::NewError;
use crate::output::{print, print_line, print_stderr};

/// The name of the file where none is given.
const FILE: &str = "experiment.toml";
/// Time for the whole run where none is given.
const TIME: Span = Span::from_secs(600);

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pgdyno new  Ask a few questions, and write experiment.toml
  pgdyno new memory --factor work_mem=4MB,64MB --defaults
              Write memory.toml without a question

See also: pgdyno-run(1), pgdyno-recipes(1), pgdyno-schema(1)")]
pub(crate) struct NewArgs {
    /// The file to write; `.toml` is added to a name without it [default: experiment.toml]
    #[arg(value_name = "NAME|FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Begin with the factors of a usual question: commit settings, numbers of clients, settings of
    /// WAL and checkpoints, versions of PostgreSQL, filesystems (needs root)
    #[arg(long, value_parser = presets())]
    pub(crate) preset: Option<Preset>,
    /// Vary KEY, a PostgreSQL setting or one of pgdyno's factors, over these values:
    /// `--factor work_mem=4MB,64MB --factor clients=1,8`
    #[arg(long = "factor", value_name = "KEY=V1,V2", value_parser = parse_factor)]
    pub(crate) factors: Vec<DraftFactor>,
    /// Write TEXT as the question that heads the report
    #[arg(long, value_name = "TEXT")]
    pub(crate) question: Option<String>,
    /// Use another built-in workload than tpcb-like, or a folder of your own
    #[arg(long, value_name = "NAME|FOLDER")]
    pub(crate) workload: Option<String>,
    /// Make the data set of this size [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) scale: Option<NonZeroU32>,
    /// Offer the load by N connections [default: 8]
    #[arg(long, value_name = "N")]
    pub(crate) clients: Option<NonZeroU32>,
    /// Put the data into this existing folder [default: pgdyno's own]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) storage: Option<PathBuf>,
    /// Choose repeats and durations so that the whole run takes at most TIME [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = parse_duration,
          conflicts_with_all = ["duration", "repeats"])]
    pub(crate) time: Option<Span>,
    /// Measure each trial for TIME [default: 10s, with `--repeats`]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Span>,
    /// Run N trials of every treatment [default: 5, with `--duration`]
    #[arg(long, value_name = "N")]
    pub(crate) repeats: Option<NonZeroU32>,
    /// Ask nothing: what no option gives has its default. Without `--preset` and `--factor` the
    /// preset is `commit`
    #[arg(long)]
    pub(crate) defaults: bool,
}

fn presets() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::NAMES)
        .try_map(|name| Preset::parse(&name).ok_or("there is no such preset"))
}

/// Parses `KEY=V1,V2`.
fn parse_factor(given: &str) -> Result<DraftFactor, &'static str> {
    DraftFactor::parse(given).ok_or("there is no `KEY=VALUES` in it")
}

/// Writes the file, then prints its name and the commands that use it.
pub(crate) fn run(options: &NewArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    let is_asking = !options.defaults && io::stdin().is_terminal() && io::stderr().is_terminal();
    let answers = is_asking.then(|| Answers::new(context.stop()));
    let (draft, size) = match draft(options, answers.as_ref()) {
        Err(error) if error.is_interruption() => {
            print_stderr("");
            print_stderr("interrupted: nothing was written");
            return Ok(ExitStatus::Interrupted);
        }
        drafted => drafted?,
    };
    write(&draft.file, &draft.text())?;
    let file = draft.file.display();
    print_line(&format!(
        "{file}: {} x {} of {}, about {} in all",
        counted(size.treatments as u64, "treatment"),
        counted(draft.repeats.get(), "repeat"),
        draft.duration,
        size.time
    ));
    print("");
    print_line(&format!("pgdyno run {file} --dry-run    # the plan; nothing is changed"));
    print_line(&format!("pgdyno run {file}"));
    Ok(ExitStatus::Success)
}

/// Returns the experiment that options and answers describe, and how large its run is. Without
/// `answers` nothing is asked.
fn draft(options: &NewArgs, answers: Option<&Answers>) -> Result<(Draft, RunSize), CommandError> {
    let mut draft = Draft::new(&file(options, answers)?);
    draft.preset = options.preset;
    draft.factors.clone_from(&options.factors);
    draft.question.clone_from(&options.question);
    draft.storage = options.storage.as_deref().map(folder).transpose()?;
    draft.workload = options.workload.clone().unwrap_or(draft.workload);
    draft.scale = options.scale.unwrap_or(draft.scale);
    draft.clients = options.clients.unwrap_or(draft.clients);
    if draft.preset.is_none() && draft.factors.is_empty() {
        match answers {
            Some(answers) => ask_factors(&mut draft, answers)?,
            None if options.defaults => draft.preset = Some(Preset::Commit),
            None => return Err(NewError::NoTerminal.into()),
        }
    }
    // Options are refused before anything else is asked.
    check(&draft)?;
    if let Some(answers) = answers.filter(|_| draft.storage.is_none()) {
        ask_storage(&mut draft, answers)?;
    }
    match (options.time, answers) {
        (None, _) if options.duration.is_some() || options.repeats.is_some() => {
            draft.duration = options.duration.unwrap_or(draft.duration);
            draft.repeats = options.repeats.unwrap_or(draft.repeats);
        }
        (None, Some(answers)) => ask_time(&mut draft, answers)?,
        (time, _) => draft.fit(time.unwrap_or(TIME), &ThisHost)?,
    }
    let size = check(&draft)?;
    Ok((draft, size))
}

/// Checks the draft as `pgdyno run --dry-run` does. Returns how large the run is.
fn check(draft: &Draft) -> Result<RunSize, CommandError> {
    let resolved = draft.prepare(&ThisHost)?;
    pgdyno_lab::dry_run(&resolved)?;
    Ok(RunSize::new(&resolved))
}

/// Returns the file that is to be written. Nothing has its name.
fn file(options: &NewArgs, answers: Option<&Answers>) -> Result<PathBuf, CommandError> {
    match (&options.file, answers) {
        (Some(named), _) => Ok(free(named)?),
        (None, None) => Ok(free(Path::new(FILE))?),
        (None, Some(answers)) => answers
            .until_right(&format!("Name of the file? [{FILE}]"), |answer| {
                Ok(free(Path::new(if answer.is_empty() { FILE } else { answer }))?)
            }),
    }
}

/// Returns `named` with its ending, if nothing has that name.
fn free(named: &Path) -> Result<PathBuf, NewError> {
    let Some(name) = named.file_name() else { return Err(NewError::NoName(named.to_owned())) };
    let mut name = name.to_owned();
    if named.extension().is_none_or(|ending| ending != "toml") {
        name.push(".toml");
    }
    let file = named.with_file_name(name);
    // A link that leads nowhere is there, too.
    if file.symlink_metadata().is_ok() { Err(NewError::Exists(file)) } else { Ok(file) }
}

/// Returns `named` if it is a folder.
fn folder(named: &Path) -> Result<PathBuf, NewError> {
    if named.is_dir() { Ok(named.to_owned()) } else { Err(NewError::NoFolder(named.to_owned())) }
}

/// Asks for a usual question, or for a setting and its values.
fn ask_factors(draft: &mut Draft, answers: &Answers) -> Result<(), CommandError> {
    answers.say("");
    answers.say("What do you want to know?");
    for (number, preset) in Preset::ALL.iter().enumerate() {
        let needs = if *preset == Preset::Filesystems { " (needs root)" } else { "" };
        answers.say(&format!("  {}  {}{needs}", number + 1, preset.question()));
    }
    let own = Preset::ALL.len() + 1;
    answers.say(&format!("  {own}  What does a setting of my choice do?"));
    draft.preset = answers.until_right("Number? [1]", |answer| {
        let number = if answer.is_empty() { Some(1) } else { answer.parse::<usize>().ok() };
        match number {
            Some(number) if number == own => Ok(None),
            Some(number) if (1..own).contains(&number) => Ok(Some(Preset::ALL[number - 1])),
            _ => Err(NewError::NoNumber { answer: answer.to_owned(), most: own }.into()),
        }
    })?;
    if draft.preset.is_none() {
        draft.factors = answers.until_right(
            "\nWhich setting, with which values? Such as work_mem=4MB,64MB",
            |answer| {
                let no_factor = || NewError::NoFactor { answer: answer.to_owned() };
                let factor = DraftFactor::parse(answer).ok_or_else(no_factor)?;
                let tried = Draft { factors: vec![factor], ..draft.clone() };
                check(&tried)?;
                Ok(tried.factors)
            },
        )?;
    }
    Ok(())
}

/// Asks where PGDATA lies.
fn ask_storage(draft: &mut Draft, answers: &Answers) -> Result<(), CommandError> {
    let question = "\nWhich existing folder is on the disk to be measured? [pgdyno's own folder]";
    draft.storage = answers.until_right(question, |answer| {
        let storage = (!answer.is_empty()).then(|| folder(Path::new(answer))).transpose()?;
        let tried = Draft { storage, ..draft.clone() };
        check(&tried)?;
        Ok(tried.storage)
    })?;
    Ok(())
}

/// Asks how long the run may take, and chooses repeats and durations.
fn ask_time(draft: &mut Draft, answers: &Answers) -> Result<(), CommandError> {
    let question = format!("\nHow long may the whole run take? [{TIME}]");
    let fitted = answers.until_right(&question, |answer| {
        let time = if answer.is_empty() { Ok(TIME) } else { parse_duration(answer) };
        let mut fitted = draft.clone();
        fitted.fit(time.map_err(NewError::NoTime)?, &ThisHost)?;
        Ok(fitted)
    })?;
    *draft = fitted;
    Ok(())
}

/// Writes `text` to `file`, whole or not at all. A file that came there meanwhile stays.
fn write(file: &Path, text: &str) -> Result<(), NewError> {
    let failed = |source| NewError::Write { file: file.to_owned(), source };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    // As for any other file, the user's umask takes away from this.
    let mode = Permissions::from_mode(0o666);
    let part =
        tempfile::Builder::new().permissions(mode).tempfile_in(folder.unwrap_or(Path::new(".")));
    let mut part = part.map_err(failed)?;
    part.write_all(text.as_bytes()).map_err(failed)?;
    part.as_file().sync_all().map_err(failed)?;
    part.persist_noclobber(file).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => NewError::Exists(file.to_owned()),
        _ => failed(error.error),
    })?;
    Ok(())
}
