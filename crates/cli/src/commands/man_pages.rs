//! `pgdyno man-pages`: the man pages of the packages.
//!
//! Names, options and descriptions come from the declared options. The text below the options in
//! the help, such as examples, becomes sections: [`sections`]. Every page has the exit status of
//! pgdyno's own help; pgdyno's page has the files and variables of all commands. Version and date
//! come from CHANGELOG.md.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Arg, Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::completions::pgbench_options;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;

const SEE_ALSO: &str = "See also";

#[derive(Args, Debug)]
pub(crate) struct ManPagesArgs {
    /// An existing folder: it gets a page for pgdyno and one for each command
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

/// Writes the man pages of `command` and of its commands: `pgdyno.1`, `pgdyno-run.1` and so on. The
/// first one has the examples that are lines of `first_steps`.
pub(crate) fn run(
    options: &ManPagesArgs,
    command: Command,
    first_steps: &str,
) -> Result<ExitStatus, CommandError> {
    for (name, page) in pages(command, first_steps) {
        page.and_then(|page| std::fs::write(options.folder.join(format!("{name}.1")), page))
            .map_err(|source| {
                let message = format!("cannot write man pages to {}", options.folder.display());
                CommandError::with_source(message, source)
                    .with_help("name an existing folder that may be written to")
            })?;
    }
    Ok(ExitStatus::Success)
}

/// Heading and lines of a section.
type Section = (String, String);

/// Returns each page's name and text.
fn pages(command: Command, first_steps: &str) -> Vec<(String, io::Result<String>)> {
    let commands = commands(command);
    let all: Vec<Section> = commands.iter().flat_map(sections).collect();
    let gather = |heading: &str| {
        let sections = all.iter().filter(|(of_section, _)| of_section == heading);
        (heading.to_owned(), sections.map(|(_, lines)| lines.as_str()).collect())
    };
    let page = |command: &Command| {
        let name = command.get_display_name().unwrap_or("pgdyno").to_owned();
        let mut own = sections(command);
        let mut see_also = "pgdyno(1)";
        if name == "pgdyno" {
            own.extend(["Environment", "Files"].map(gather));
            let steps = first_steps.lines().filter(|line| line.starts_with(' '));
            own.push(("Examples".to_owned(), steps.collect::<Vec<_>>().join("\n")));
            see_also = "postgres(1), pgbench(1)";
        } else {
            own.insert(0, gather("Exit status"));
        }
        let others = own.pop_if(|(heading, _)| heading == SEE_ALSO);
        let others = others.map_or_else(String::new, |(_, pages)| format!(",{pages}"));
        own.push((SEE_ALSO.to_owned(), format!("{see_also}{others}")));
        let page = render(&name, command.clone(), &own);
        (name, page)
    };
    commands.iter().map(page).collect()
}

/// Returns `command` and the commands below it, but for those that are hidden.
fn commands(command: Command) -> Vec<Command> {
    let mut root = command.disable_help_subcommand(true);
    root.build();
    let mut commands = vec![root];
    let mut next = 0;
    while let Some(command) = commands.get(next).cloned() {
        commands.extend(command.get_subcommands().filter(|c| !c.is_hide_set()).map(|command| {
            if command.get_name() == "pgbench" { pgbench(command) } else { command.clone() }
        }));
        next += 1;
    }
    commands
}

/// Returns the sections of the text below the options in the help of `command`.
fn sections(command: &Command) -> Vec<Section> {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let sections = text.split("\n\n").filter_map(|section| section.split_once(':'));
    sections.map(|(heading, lines)| (heading.to_owned(), lines.to_owned())).collect()
}

/// Declares pgbench as clap would know it, had it not options of its own.
fn pgbench(command: &Command) -> Command {
    Command::new("pgdyno pgbench")
        .display_name("pgdyno-pgbench")
        .about(command.get_about().cloned().unwrap_or_default())
        .override_usage("pgdyno pgbench [OPTION]... [DBNAME]")
        .disable_help_flag(true)
        .disable_version_flag(true)
        .arg(Arg::new("operand").value_name("DBNAME").help("the database"))
        .args(pgbench_options())
        .after_help(command.get_after_help().cloned().unwrap_or_default())
}

/// Renders the page called `name`: names and options of `command`, then `sections`.
fn render(name: &str, mut command: Command, sections: &[Section]) -> io::Result<String> {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let command = command.override_usage(usage).subcommand_help_heading("COMMANDS");
    let has_commands = command.get_subcommands().any(|command| !command.is_hide_set());
    let man = Man::new(command)
        .title(name.to_uppercase())
        .date(release_date(env!("CARGO_PKG_VERSION")).unwrap_or_default())
        .source(concat!("pgdyno ", env!("CARGO_PKG_VERSION")))
        .manual("pgdyno Manual");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if has_commands {
        man.render_subcommands_section(&mut text)?;
    }
    write!(text, "{}", render_sections(sections).render())?;
    Ok(tidy(&String::from_utf8_lossy(&text)))
}

/// Returns the day on which CHANGELOG.md says that `version` was released.
fn release_date(version: &str) -> Option<&'static str> {
    let heading = format!("## {version} — ");
    include_str!("../../../../CHANGELOG.md").lines().find_map(|line| line.strip_prefix(&heading))
}

/// Renders sections, whose lines begin an item where two blanks precede them: `HEAD  MEANING`.
fn render_sections(sections: &[Section]) -> Roff {
    let mut roff = Roff::new();
    for (heading, lines) in sections {
        roff.control("SH", [heading.to_uppercase().as_str()]);
        for line in lines.lines() {
            let mut text = line;
            if let Some(item) = line.strip_prefix("  ").filter(|item| !item.starts_with(' ')) {
                let (head, meaning) = item.split_once("  ").unwrap_or((item, ""));
                roff.control("TP", []).text([bold(head)]);
                text = meaning;
            }
            if !text.trim().is_empty() {
                roff.text([roman(text.trim())]);
            }
        }
    }
    roff
}

/// Makes one document of sections, each of which defines the apostrophe anew. Sets `code` in bold,
/// turns two line breaks into a blank line, and keeps words whole: names of options and files are
/// not hyphenated.
fn tidy(text: &str) -> String {
    let is_definition = |line: &&str| line.starts_with(".ie ") || line.starts_with(".el ");
    let definition: Vec<&str> = text.lines().take_while(is_definition).collect();
    let body: Vec<String> = text
        .lines()
        .filter(|line| !is_definition(line))
        .map(|line| {
            let parts: Vec<&str> = line.trim_end().split('`').collect();
            if parts.len().is_multiple_of(2) {
                return parts.join("`");
            }
            let set = |(at, part): (usize, &&str)| {
                if at % 2 == 0 { (*part).to_owned() } else { format!("\\fB{part}\\fR") }
            };
            parts.iter().enumerate().map(set).collect()
        })
        .collect();
    let text = format!("{}\n{}\n", definition.join("\n"), body.join("\n"));
    text.replace(".br\n\n.br\n", ".sp\n").replacen(".SH", ".nh\n.ad l\n.SH", 1)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::arguments::{Arguments, FIRST_STEPS};

    #[test]
    fn the_changelog_has_the_date_of_this_version() {
        let date = release_date(env!("CARGO_PKG_VERSION")).unwrap();
        let digits = date.split('-').map(str::len).collect::<Vec<_>>();
        assert_eq!(digits, [4, 2, 2], "{date}");
        assert_eq!(release_date("0.0.0"), None);
    }

    #[test]
    fn every_example_is_a_command_that_pgdyno_takes() {
        let all: Vec<Section> = commands(Arguments::command()).iter().flat_map(sections).collect();
        let lines = all.iter().filter(|(heading, _)| heading == "Examples");
        let lines = lines.flat_map(|(_, lines)| lines.lines()).chain(FIRST_STEPS.lines());
        for line in lines.filter_map(|line| line.strip_prefix("  ")).filter(|l| !l.starts_with(' '))
        {
            let command = line.split("  ").next().unwrap_or_default();
            // As a shell parts it: what is quoted is one word.
            let quoted = command.split('\'').enumerate();
            let words = quoted.flat_map(|(at, part)| match at % 2 {
                0 => part.split_whitespace().collect(),
                _ => vec![part],
            });
            let taken = Arguments::try_parse_from(words);
            assert!(taken.is_ok(), "{command}: {}", taken.unwrap_err());
        }
    }

    #[test]
    fn every_page_that_is_named_exists() {
        let pages = pages(Arguments::command(), FIRST_STEPS);
        let known: Vec<String> = pages.iter().map(|(name, _)| format!("{name}(1)")).collect();
        for (_, named) in commands(Arguments::command()).iter().flat_map(sections) {
            for name in named.split([',', ' ']).filter(|word| word.starts_with("pgdyno-")) {
                assert!(known.iter().any(|page| page == name), "{name}");
            }
        }
    }

    #[test]
    fn code_is_bold_and_a_lone_backtick_stays() {
        assert_eq!(tidy("see `a` and `b c`\n"), "\nsee \\fBa\\fR and \\fBb c\\fR\n");
        assert_eq!(tidy("one ` only\n"), "\none ` only\n");
    }
}
