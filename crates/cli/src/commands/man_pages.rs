//! `pgdyno man-pages`: the man pages of the packages.
//!
//! Options, usage and descriptions come from the declared options, exit statuses from
//! [`MEANINGS`], version and date from CHANGELOG.md. Examples and references stand in [`PAGES`],
//! files and variables in [`FILES`] and [`ENVIRONMENT`].

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Arg, Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::completions::pgbench_options;
use crate::error::CommandError;
use crate::exit_status::{ExitStatus, MEANINGS};

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// An existing folder: it gets a page for pgdyno and one for each command
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

/// Contents of a page beside the command's options.
struct Page {
    name: &'static str,
    /// Exit statuses beyond those of every command.
    statuses: &'static [u8],
    /// Example commands, each with the question that it answers.
    examples: &'static [(&'static str, &'static str)],
    /// Pages to see, beside pgdyno's own.
    see_also: &'static [&'static str],
}

const PAGES: &[Page] = &[
    Page {
        name: "pgdyno",
        statuses: &[2, 3, 4, 5, 130],
        examples: &[
            ("pgdyno doctor /mnt/disk", "Is this machine fit to measure?"),
            (
                "pgdyno run quickstart",
                "What does waiting for the disk at commit cost? Two minutes.",
            ),
            ("pgdyno fsync /mnt/disk", "How often can this disk make a commit durable?"),
            (
                "pgdyno crash --fault process --storage /mnt/disk",
                "Does the server keep every commit that it acknowledged?",
            ),
        ],
        see_also: &["postgres(1)", "pgbench(1)"],
    },
    Page {
        name: "pgdyno-run",
        statuses: &[2, 4, 5, 130],
        examples: &[
            ("pgdyno run quickstart", "Run a recipe in a folder of pgdyno's own."),
            (
                "pgdyno run group-commit --size quick --set storage.disk.directory=/mnt/disk",
                "Run the quick size of a recipe on the storage under /mnt/disk.",
            ),
            (
                "pgdyno run mine.toml --detach",
                "Go on without the terminal. pgdyno stop latest ends the run.",
            ),
            ("pgdyno run mine.toml --dry-run", "Print every trial and every change to the host."),
            (
                "pgdyno run quickstart --progress json",
                "Print what the run does as one JSON object a line, on standard error.",
            ),
            ("pgdyno run --resume latest", "Execute the trials that an interrupted run left."),
        ],
        see_also: &["pgdyno-recipes(1)", "pgdyno-show(1)", "pgdyno-compare(1)", "pgdyno-clean(1)"],
    },
    Page {
        name: "pgdyno-attach",
        statuses: &[2, 4, 5, 130],
        examples: &[
            ("pgdyno attach", "Watch the newest run until it ends, then print its results."),
            ("pgdyno attach --progress json", "Print what it does as one JSON object a line."),
        ],
        see_also: &["pgdyno-run(1)", "pgdyno-show(1)"],
    },
    Page {
        name: "pgdyno-new",
        statuses: &[130],
        examples: &[
            ("pgdyno new", "Ask a few questions, and write experiment.toml."),
            (
                "pgdyno new memory --factor work_mem=4MB,64MB --defaults",
                "Write memory.toml without a question.",
            ),
        ],
        see_also: &["pgdyno-run(1)", "pgdyno-recipes(1)", "pgdyno-schema(1)"],
    },
    Page {
        name: "pgdyno-schema",
        statuses: &[],
        examples: &[("pgdyno schema", "Print the schema; editors read it from a file.")],
        see_also: &["pgdyno-new(1)"],
    },
    Page {
        name: "pgdyno-compare",
        statuses: &[3, 5],
        examples: &[
            ("pgdyno compare latest:1 latest:2", "Compare two treatments of the newest run."),
            (
                "pgdyno compare base head --by 'server build' --fail-if 'tps < -3%'",
                "Fail if two runs show that the second build is slower by more than 3%.",
            ),
        ],
        see_also: &["pgdyno-run(1)", "pgdyno-show(1)"],
    },
    Page {
        name: "pgdyno-show",
        statuses: &[],
        examples: &[("pgdyno show latest --json", "Print the newest run as JSON.")],
        see_also: &["pgdyno-list(1)", "pgdyno-report(1)"],
    },
    Page {
        name: "pgdyno-report",
        statuses: &[],
        examples: &[
            ("pgdyno report -o run.html", "Write the newest run's report to a file."),
            ("pgdyno report RUN_A RUN_B -o compared.html", "Write what differs between two runs."),
        ],
        see_also: &["pgdyno-list(1)", "pgdyno-show(1)"],
    },
    Page {
        name: "pgdyno-verify",
        statuses: &[3],
        examples: &[("pgdyno verify", "Check every row of the store.")],
        see_also: &["pgdyno-list(1)"],
    },
    Page {
        name: "pgdyno-rm",
        statuses: &[130],
        examples: &[
            ("pgdyno rm quickstart-20260131-101500-abcd", "Remove a run; asks first."),
            ("pgdyno rm --yes quickstart-20260131-101500-abcd", "Remove it without a question."),
        ],
        see_also: &["pgdyno-archive(1)", "pgdyno-store-size(1)", "pgdyno-store-thin(1)"],
    },
    Page {
        name: "pgdyno-archive",
        statuses: &[130],
        examples: &[
            ("pgdyno archive latest run.pgdyno", "Write the newest run into a file of its own."),
            ("pgdyno show latest --store run.pgdyno", "Show a run of an archive."),
        ],
        see_also: &["pgdyno-import(1)", "pgdyno-rm(1)"],
    },
    Page {
        name: "pgdyno-import",
        statuses: &[130],
        examples: &[("pgdyno import run.pgdyno", "Take what an archive holds into the store.")],
        see_also: &["pgdyno-archive(1)", "pgdyno-list(1)", "pgdyno-audit(1)"],
    },
    Page {
        name: "pgdyno-store-size",
        statuses: &[],
        examples: &[("pgdyno store size", "Show what takes the room, and the largest runs.")],
        see_also: &["pgdyno-store-thin(1)", "pgdyno-rm(1)"],
    },
    Page {
        name: "pgdyno-store-thin",
        statuses: &[130],
        examples: &[
            (
                "pgdyno store thin --before 2026-01-01",
                "Say what thinning last year's runs would lose, and ask.",
            ),
            (
                "pgdyno store thin --every 10 quickstart-20260131-101500-abcd",
                "Keep a sample of telemetry in ten seconds.",
            ),
        ],
        see_also: &["pgdyno-store-size(1)", "pgdyno-archive(1)", "pgdyno-rm(1)"],
    },
    Page {
        name: "pgdyno-store-merge",
        statuses: &[130],
        examples: &[(
            "pgdyno store merge db1.sqlite3 db2.sqlite3 -o all.sqlite3",
            "Put the runs of two machines into one store.",
        )],
        see_also: &["pgdyno-import(1)", "pgdyno-archive(1)", "pgdyno-verify(1)"],
    },
    Page {
        name: "pgdyno-crash",
        statuses: &[4, 5, 130],
        examples: &[
            (
                "pgdyno crash --fault process --storage /mnt/disk",
                "Kill the server under load. Needs no root.",
            ),
            (
                "pgdyno crash --fault power,torn-write --filesystem ext4 --storage /mnt/disk",
                "Cut the power of an ext4 in a file, as root.",
            ),
        ],
        see_also: &["pgdyno-crash-witness(1)", "pgdyno-filesystems(1)", "pgdyno-clean(1)"],
    },
    Page {
        name: "pgdyno-doctor",
        statuses: &[],
        examples: &[("pgdyno doctor /mnt/disk", "Examine the machine and that storage.")],
        see_also: &["pgdyno-fsync(1)", "pgdyno-disk(1)"],
    },
    Page {
        name: "pgdyno-fsync",
        statuses: &[130],
        examples: &[("pgdyno fsync /mnt/disk --duration 1s", "Measure in half a minute.")],
        see_also: &["pgdyno-disk(1)", "pg_test_fsync(1)"],
    },
    Page {
        name: "pgdyno-disk",
        statuses: &[130],
        examples: &[("pgdyno disk /mnt/disk", "Measure the disk under a folder.")],
        see_also: &["pgdyno-fsync(1)", "fio(1)"],
    },
    Page {
        name: "pgdyno-audit",
        statuses: &[3],
        examples: &[("pgdyno audit report.txt", "Check the figures of somebody's report.")],
        see_also: &["pgdyno-compare(1)"],
    },
    Page {
        name: "pgdyno-load",
        statuses: &[130],
        examples: &[("pgdyno load tpcb-like -s 100 -d bench", "Load 10 million accounts.")],
        see_also: &["pgdyno-run(1)", "pgdyno-pgbench(1)"],
    },
    Page {
        name: "pgdyno-pgbench",
        statuses: &[2, 130],
        examples: &[
            ("pgdyno pgbench -i -s 100 bench", "Make and fill the tables."),
            ("pgdyno pgbench -c 8 -j 2 -T 60 bench", "Offer load with 8 clients for a minute."),
            (
                "pgdyno pgbench -c 8 -T 60 -R 500 -f mine.sql --json=run.json bench",
                "Offer 500 transactions per second of a script, and write JSON.",
            ),
        ],
        see_also: &["pgbench(1)", "pgdyno-load(1)"],
    },
    Page {
        name: "pgdyno-stop",
        statuses: &[],
        examples: &[
            ("pgdyno stop latest", "End the newest run that works, after the trial in progress."),
            ("pgdyno stop latest --now", "End it at once, without the trial in progress."),
        ],
        see_also: &["pgdyno-run(1)"],
    },
];

/// Files, their meanings, and the pages that name them beside pgdyno's.
const FILES: &[(&str, &str, &[&str])] = &[
    (
        "$XDG_DATA_HOME/pgdyno/store.sqlite3",
        "The store: all runs, probes, crash tests and imports. XDG_DATA_HOME is ~/.local/share \
         unless it is set.",
        &[
            "run",
            "list",
            "show",
            "report",
            "export",
            "verify",
            "compare",
            "fsync",
            "disk",
            "crash",
            "audit",
            "rm",
            "archive",
            "import",
            "store-size",
            "store-thin",
            "attach",
        ],
    ),
    (
        "$XDG_DATA_HOME/pgdyno/reports/",
        "HTML reports. They lie beside the store, wherever that is.",
        &["run", "report"],
    ),
    (
        "$XDG_DATA_HOME/pgdyno/store.sqlite3.lock",
        "An empty file. A run that works holds a lock on a byte of it.",
        &["run", "rm"],
    ),
    (
        "$XDG_DATA_HOME/pgdyno/store.sqlite3.live/",
        "Live files of runs that work, and logs of detached runs. The folder lies beside the \
         store.",
        &["run", "stop"],
    ),
    (
        "$XDG_DATA_HOME/pgdyno/crashes/",
        "Images and ledgers of failed crash tests. pgdyno clean --crashes removes them.",
        &["crash", "clean"],
    ),
    (
        "$XDG_DATA_HOME/pgdyno/clusters/, as root /var/lib/pgdyno/",
        "Clusters while a run lasts, if the experiment names no directory.",
        &["run", "crash", "clean"],
    ),
    (
        "$XDG_CACHE_HOME/pgdyno/",
        "Fetched builds of PostgreSQL. XDG_CACHE_HOME is ~/.cache unless it is set.",
        &["run", "crash"],
    ),
    (
        "$XDG_STATE_HOME/pgdyno/",
        "The journal of what has to be taken down. XDG_STATE_HOME is ~/.local/state unless it is \
         set.",
        &["run", "crash", "clean"],
    ),
];

/// Environment variables, their meanings, and the pages that name them beside pgdyno's.
const ENVIRONMENT: &[(&str, &str, &[&str])] = &[
    (
        "PGDYNO_STORE",
        "The store, unless --store names one.",
        &[
            "run",
            "list",
            "show",
            "report",
            "export",
            "verify",
            "compare",
            "fsync",
            "disk",
            "crash",
            "audit",
            "rm",
            "archive",
            "import",
            "store-size",
            "store-thin",
        ],
    ),
    (
        "NO_COLOR, CLICOLOR, CLICOLOR_FORCE, TERM",
        "Whether progress on a terminal has colours; on TERM=dumb it is lines.",
        &["run", "attach", "load", "fsync", "disk", "crash"],
    ),
    (
        "PGDYNO_SSH",
        "The command in place of ssh, with its options, in words.",
        &["run", "crash", "pgbench"],
    ),
    ("PGDYNO_MAVEN", "The address of a mirror for builds of PostgreSQL.", &["run", "crash"]),
    ("PG_CONFIG", "The pg_config of the PostgreSQL to use.", &["run", "crash"]),
    (
        "PGHOST, PGPORT, PGUSER, PGPASSWORD, …",
        "Connections to servers of yours, as libpq has them.",
        &["run", "load", "pgbench"],
    ),
];

/// Writes the man pages of `command` and of its commands: `pgdyno.1`, `pgdyno-run.1` and so on.
pub(crate) fn run(options: &Options, command: Command) -> Result<ExitStatus, CommandError> {
    for (name, page) in pages(command) {
        page.and_then(|page| std::fs::write(options.folder.join(format!("{name}.1")), page))
            .map_err(|source| CommandError::ManPages { folder: options.folder.clone(), source })?;
    }
    Ok(ExitStatus::Success)
}

/// Returns each page's name and text.
fn pages(command: Command) -> Vec<(String, io::Result<String>)> {
    let mut root = command.disable_help_subcommand(true);
    root.build();
    let mut commands = vec![root];
    let mut pages = Vec::new();
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands().filter(|c| !c.is_hide_set()).cloned());
        let name = command.get_display_name().unwrap_or("pgdyno").to_owned();
        let command = if name == "pgdyno-pgbench" { pgbench(&command) } else { command };
        let page = page(&name, command);
        pages.push((name, page));
    }
    pages
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
}

/// Renders the page called `name`.
fn page(name: &str, mut command: Command) -> io::Result<String> {
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
    write!(text, "{}", own_sections(name).render())?;
    Ok(tidy(&String::from_utf8_lossy(&text)))
}

/// Returns the day on which CHANGELOG.md says that `version` was released.
fn release_date(version: &str) -> Option<&'static str> {
    let heading = format!("## {version} — ");
    include_str!("../../../../CHANGELOG.md").lines().find_map(|line| line.strip_prefix(&heading))
}

/// Returns exit statuses, environment, files, examples and references of page `name`.
fn own_sections(name: &str) -> Roff {
    let told = PAGES.iter().find(|page| page.name == name);
    let mut roff = Roff::new();
    let statuses = told.map_or(&[][..], |page| page.statuses);
    let has = |code: &u8| matches!(code, 0 | 1 | 141) || statuses.contains(code);
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in MEANINGS.iter().filter(|(code, _)| has(code)) {
        item(&mut roff, &code.to_string(), &format!("{}.", capitalized(meaning)));
    }
    for (heading, items) in [("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES)] {
        let is_here = |pages: &[&str]| {
            name == "pgdyno" || pages.iter().any(|page| name == format!("pgdyno-{page}"))
        };
        let items: Vec<_> = items.iter().filter(|(.., pages)| is_here(pages)).collect();
        if !items.is_empty() {
            roff.control("SH", [heading]);
        }
        items.iter().for_each(|(what, meaning, _)| item(&mut roff, what, meaning));
    }
    let examples = told.map_or(&[][..], |page| page.examples);
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
    }
    examples.iter().for_each(|(command, meaning)| item(&mut roff, command, meaning));
    let own = (name != "pgdyno").then_some("pgdyno(1)");
    let pages = own.iter().chain(told.map_or(&[][..], |page| page.see_also));
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(pages.copied().collect::<Vec<_>>().join(", "))]);
    roff
}

fn item(roff: &mut Roff, head: &str, body: &str) {
    roff.control("TP", []).text([bold(head)]).text([roman(body)]);
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
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
    use std::collections::BTreeSet;

    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::arguments::Arguments;

    fn names() -> BTreeSet<String> {
        pages(Arguments::command()).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn the_changelog_has_the_date_of_this_version() {
        let date = release_date(env!("CARGO_PKG_VERSION")).unwrap();
        let digits = date.split('-').map(str::len).collect::<Vec<_>>();
        assert_eq!(digits, [4, 2, 2], "{date}");
        assert_eq!(release_date("0.0.0"), None);
    }

    #[test]
    fn every_example_is_a_command_that_pgdyno_takes() {
        for (command, _) in PAGES.iter().flat_map(|page| page.examples) {
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
        let known = names();
        assert!(PAGES.iter().all(|page| known.contains(page.name)));
        let named = PAGES.iter().flat_map(|page| page.see_also);
        for name in named.filter(|name| name.starts_with("pgdyno")) {
            assert!(known.contains(name.trim_end_matches("(1)")), "{name}");
        }
        for page in [FILES, ENVIRONMENT].concat().iter().flat_map(|(.., pages)| pages.iter()) {
            assert!(known.contains(&format!("pgdyno-{page}")), "{page}");
        }
    }

    #[test]
    fn code_is_bold_and_a_lone_backtick_stays() {
        assert_eq!(tidy("see `a` and `b c`\n"), "\nsee \\fBa\\fR and \\fBb c\\fR\n");
        assert_eq!(tidy("one ` only\n"), "\none ` only\n");
    }
}
