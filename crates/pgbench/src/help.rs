//! `--help`: pgbench's sections under pgbench's headings, then pgdyno's own options.

use std::fmt::Write as _;

use crate::dialect::Dialect;
use crate::flags::{Arity, FLAGS, Flag, Mode};

/// Where meanings begin (columns).
const INDENT: usize = 27;
/// Where lines end (columns).
const WIDTH: usize = 100;

/// A heading, and which options stand under it.
type Section = (&'static str, fn(&Flag) -> bool);

const SECTIONS: [Section; 5] = [
    ("Initialization options", |flag| {
        flag.long == "initialize" || is_twofold(flag) || flag.mode == Mode::Initialization
    }),
    ("Options to select what to run", selects),
    (BENCHMARKING, |flag| {
        flag.long == "show-script"
            || is_twofold(flag)
            || flag.mode == Mode::Benchmark && !selects(flag)
    }),
    ("Common options", |flag| {
        flag.mode == Mode::Both
            && !is_twofold(flag)
            && !matches!(flag.long, "initialize" | "show-script")
    }),
    ("Options that pgdyno adds", |flag| flag.mode == Mode::Own),
];

const BENCHMARKING: &str = "Benchmarking options";

/// Whether the flag means one thing with `-i` and another without.
fn is_twofold(flag: &Flag) -> bool {
    matches!(flag.long, "no-vacuum" | "scale")
}

fn selects(flag: &Flag) -> bool {
    matches!(flag.long, "builtin" | "file" | "skip-some-updates" | "select-only")
}

/// An option of the newest pgbench, or one that pgdyno adds.
#[derive(Clone, Copy, Debug)]
pub struct OptionHelp {
    /// Heading of the option's section.
    pub heading: &'static str,
    /// Letter of the option, without the dash.
    pub short: Option<char>,
    /// Name of the option, without the dashes.
    pub long: &'static str,
    /// Name of the argument, such as `NUM`; none if the option takes none.
    pub argument: Option<&'static str>,
    /// Effect of the option, in a few words.
    pub meaning: &'static str,
}

/// Returns the options of the newest pgbench and pgdyno's own, for completions and man pages.
pub fn options() -> impl Iterator<Item = OptionHelp> {
    let belongs_to = |flag| SECTIONS.iter().find(|(_, belongs)| belongs(flag));
    FLAGS.iter().filter(|flag| flag.is_in(Dialect::NEWEST)).map(move |flag| OptionHelp {
        heading: belongs_to(flag).map_or(BENCHMARKING, |(heading, _)| heading),
        short: flag.short,
        long: flag.long,
        argument: flag.argument.name(),
        meaning: flag.meaning,
    })
}

/// Returns the help text: the options of pgbench `dialect`, and pgdyno's own.
pub(crate) fn text(dialect: Dialect) -> String {
    let mut text = format!(
        "pgdyno runs PostgreSQL's pgbench: its scripts, its options (of pgbench {dialect}), its \
         report.\n\n\
         Usage:\n  pgbench [OPTION]... [DBNAME]\n"
    );
    for (heading, belongs) in SECTIONS {
        let _ = writeln!(text, "\n{heading}:");
        let known = |flag: &&Flag| flag.is_in(dialect) && belongs(flag);
        let mut flags: Vec<&Flag> = FLAGS.iter().filter(known).collect();
        if heading == BENCHMARKING {
            // By letter, and a small one before its capital; then those that have none.
            flags.sort_by_key(|flag| {
                let letter = flag
                    .short
                    .map(|short| (short.to_ascii_lowercase(), short.is_ascii_uppercase()));
                (letter.is_none(), letter, flag.long)
            });
        }
        flags.into_iter().for_each(|flag| option(&mut text, flag));
    }
    text.push_str(
        "\nExit status: 0 the run is complete; 1 the request cannot be carried out; 2 clients gave \
         up, and\n\
         the report is of what there was; 130 a signal ended it.\n",
    );
    text
}

fn option(text: &mut String, flag: &Flag) {
    let mut left = match flag.short {
        Some(short) => format!("  -{short}, --{}", flag.long),
        None => format!("  --{}", flag.long),
    };
    if let Some(name) = flag.argument.name() {
        left = match flag.argument.arity() {
            Arity::Optional => format!("{left}[={name}]"),
            Arity::None | Arity::One => format!("{left}={name}"),
        };
    }
    if left.len() >= INDENT {
        let _ = writeln!(text, "{left}");
        left.clear();
    }
    let mut line = format!("{left:INDENT$}");
    for word in flag.meaning.split(' ') {
        if line.len() + word.len() > WIDTH {
            let _ = writeln!(text, "{}", line.trim_end());
            line = " ".repeat(INDENT);
        }
        line.push_str(word);
        line.push(' ');
    }
    let _ = writeln!(text, "{}", line.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_stands_in_a_section_and_those_of_a_version_only_there() {
        let newest = text(Dialect::NEWEST);
        for flag in FLAGS.iter().filter(|flag| flag.is_in(Dialect::NEWEST)) {
            assert!(newest.contains(&format!("--{}", flag.long)), "{}", flag.long);
        }
        assert!(newest.contains("  -d, --dbname=DBNAME") && newest.contains("\n  --debug "));
        let old = text(Dialect::BEFORE_DBNAME);
        assert!(old.contains("  -d, --debug ") && !old.contains("--exit-on-abort"));
        assert!(newest.lines().all(|line| line.len() <= WIDTH), "{newest}");
        assert_eq!(newest.matches("--no-vacuum").count(), 2, "as in pgbench's own");
    }
}
