//! `pgdyno completions`: what shells complete, made from the declared options.

use std::collections::BTreeSet;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Args, Command};
use clap_complete::Shell;
use pgdyno_lab::clean;
use pgdyno_model::Fault;

use super::recipes::recipe_names;
use crate::exit_status::ExitStatus;
use crate::output::print;

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell: its completions are printed
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Prints the completions of `command`, whose options are all declared but pgbench's.
pub(crate) fn run(options: &CompletionsArgs, command: Command) -> ExitStatus {
    // Every command has `--quiet` and `--verbose`; a letter can be described once only. `-?` is a
    // pattern to fish.
    let pgbench = pgbench_options().filter(|option| option.get_long() != Some("quiet"));
    let pgbench: Vec<Arg> = pgbench
        .map(|option| match option.get_short() {
            Some('q' | 'v' | '?') => option.short(None),
            _ => option,
        })
        .collect();
    let command = with_values(command).mut_subcommand("pgbench", |command| command.args(pgbench));
    // What is hidden in the help is hidden here, too.
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    let mut command = Command::new("pgdyno")
        .version(env!("CARGO_PKG_VERSION"))
        .args(command.get_arguments())
        .subcommands(shown);
    // It panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, "pgdyno", &mut script);
    let script = String::from_utf8_lossy(&script);
    print(&match options.shell {
        // No value that is completed by `compgen -W` holds a blank.
        Shell::Bash => format!("# shellcheck disable=SC2207\n{script}"),
        Shell::Zsh => with_files_beside_recipes(&script),
        Shell::Fish => format!("{script}{}", operands_for_fish(&command)),
        _ => script.into_owned(),
    });
    ExitStatus::Success
}

/// Adds the faults and filesystems that `crash` knows.
///
/// clap keeps static strings only, so names that are computed are leaked.
fn with_values(command: Command) -> Command {
    let filesystems = clean::filesystems().into_iter().map(|it| &*it.name.to_string().leak());
    let filesystems = PossibleValuesParser::new(filesystems);
    command.mut_subcommand("crash", |crash| {
        crash
            .mut_arg("fault", |a| a.value_parser(PossibleValuesParser::new(Fault::NAMES)))
            .mut_arg("filesystem", |a| a.value_parser(filesystems))
    })
}

/// Lets zsh complete an experiment's file where it completes a recipe. bash and fish do it anyway.
fn with_files_beside_recipes(script: &str) -> String {
    let recipes = recipe_names().join(" ");
    let function = format!(
        "\n_pgdyno_experiments() {{\n    _alternative 'recipes:recipe:({recipes})' \\\n        \
         'files:experiment file:_files -g \"*.toml\"'\n}}\n"
    );
    let position = script.find("\n_pgdyno() {").unwrap_or(0);
    let (head, body) = script.split_at(position);
    let body = body.replacen(&format!(":({recipes})'"), ":_pgdyno_experiments'", 1);
    format!("{head}{function}{body}")
}

/// Returns what lets fish complete the values of operands, which clap leaves out.
fn operands_for_fish(command: &Command) -> String {
    let values = |command: &Command| {
        let operands = command.get_positionals().flat_map(Arg::get_possible_values);
        let names: BTreeSet<String> = operands.map(|value| value.get_name().to_owned()).collect();
        names.into_iter().collect::<Vec<_>>().join(" ")
    };
    let line = |name: &str, condition: String, values: String| {
        let condition = format!("__fish_pgdyno_using_subcommand {name}{condition}");
        format!("complete -c pgdyno -n \"{condition}\" -a \"{values}\"\n")
    };
    let lines = command.get_subcommands().flat_map(|command| {
        let name = command.get_name();
        let below = command.get_subcommands().map(move |below| {
            let condition = format!("; and __fish_seen_subcommand_from {}", below.get_name());
            (name, condition, values(below))
        });
        std::iter::once((name, String::new(), values(command))).chain(below)
    });
    let lines = lines.filter(|(.., values)| !values.is_empty());
    lines.map(|(name, condition, values)| line(name, condition, values)).collect()
}

/// Declares pgbench's options for clap.
pub(crate) fn pgbench_options() -> impl Iterator<Item = Arg> {
    pgdyno_pgbench::options().map(|option| {
        let arg = Arg::new(option.long).short(option.short).long(option.long).help(option.meaning);
        let arg = arg.help_heading(option.heading);
        let Some(name) = option.argument else { return arg.action(ArgAction::SetTrue) };
        let arg = arg.value_name(name).action(ArgAction::Append);
        // `simple|extended|prepared` lists its values, `never|NUM|always` does not.
        let lists = name.contains('|') && name.chars().all(|c| c == '|' || c.is_ascii_lowercase());
        if lists { arg.value_parser(PossibleValuesParser::new(name.split('|'))) } else { arg }
    })
}
