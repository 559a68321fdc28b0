//! Options as `getopt_long` reads them: bundles, abbreviations, options after operands.

use crate::flags::{Argument, Dialect, FLAGS, Flag, Mode, Opt};

/// A command line taken apart.
#[derive(Debug, PartialEq)]
pub(crate) struct Parsed {
    /// Options in order, with their arguments.
    pub(crate) options: Vec<(Opt, Option<String>)>,
    /// Arguments that are not options.
    pub(crate) operands: Vec<String>,
    /// Where it could not be read to its end, the reason: an option that this version does not
    /// have, or one whose argument is missing or superfluous. What stands before it counts, as in
    /// pgbench, which acts as it reads.
    pub(crate) error: Option<OptionError>,
}

/// Why a command line cannot be read, in the words of `getopt_long`.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum OptionError {
    #[error("unrecognized option '--{0}'")]
    Unrecognized(String),
    #[error("invalid option -- '{0}'")]
    InvalidLetter(char),
    #[error("option '--{text}' is ambiguous; possibilities: {}", names.iter().map(|name| format!("'--{name}'")).collect::<Vec<_>>().join(" "))]
    Ambiguous { text: String, names: Vec<&'static str> },
    #[error("option '--{0}' doesn't allow an argument")]
    SuperfluousArgument(&'static str),
    #[error("option '--{0}' requires an argument")]
    MissingArgument(&'static str),
    #[error("option requires an argument -- '{0}'")]
    MissingArgumentOfLetter(char),
    #[error("unknown dialect \"{asked}\"; known are {}", Dialect::ALL.iter().rev().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    UnknownDialect { asked: String },
}

/// Takes `args` apart as pgbench of version `dialect` does.
pub(crate) fn parse(args: &[String], dialect: Dialect) -> Parsed {
    let mut parsed = Parsed { options: Vec::new(), operands: Vec::new(), error: None };
    parsed.error = read(args, dialect, &mut parsed).err();
    parsed
}

fn read(args: &[String], dialect: Dialect, parsed: &mut Parsed) -> Result<(), OptionError> {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--" {
            parsed.operands.extend(args.cloned());
            break;
        } else if let Some(long) = arg.strip_prefix("--") {
            parsed.options.push(long_option(long, dialect, &mut args)?);
        } else if let Some(bundle) = arg.strip_prefix('-').filter(|b| !b.is_empty()) {
            short_options(bundle, dialect, &mut args, &mut parsed.options)?;
        } else {
            parsed.operands.push(arg.clone());
        }
    }
    Ok(())
}

fn known(dialect: Dialect) -> impl Iterator<Item = &'static Flag> {
    // Help and version are looked for before options are.
    FLAGS
        .iter()
        .filter(move |f| f.since <= dialect && dialect <= f.until)
        .filter(|f| !matches!(f.opt, Opt::Help | Opt::Version))
}

fn long_option<'a>(
    text: &str,
    dialect: Dialect,
    rest: &mut impl Iterator<Item = &'a String>,
) -> Result<(Opt, Option<String>), OptionError> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    let flag = match known(dialect).find(|f| f.long == name) {
        Some(flag) => flag,
        None => {
            let prefixed: Vec<&'static Flag> = known(dialect)
                .filter(|f| f.mode != Mode::Own && f.long.starts_with(name))
                .collect();
            match prefixed.as_slice() {
                [one] => *one,
                [] => return Err(OptionError::Unrecognized(text.to_owned())),
                several => {
                    let names = several.iter().map(|f| f.long).collect();
                    return Err(OptionError::Ambiguous { text: text.to_owned(), names });
                }
            }
        }
    };
    let value = match (flag.argument, value) {
        (Argument::None, Some(_)) => return Err(OptionError::SuperfluousArgument(flag.long)),
        (Argument::Required(_), None) => {
            Some(rest.next().cloned().ok_or(OptionError::MissingArgument(flag.long))?)
        }
        (_, value) => value,
    };
    Ok((flag.opt, value))
}

fn short_options<'a>(
    bundle: &str,
    dialect: Dialect,
    rest: &mut impl Iterator<Item = &'a String>,
    options: &mut Vec<(Opt, Option<String>)>,
) -> Result<(), OptionError> {
    for (at, letter) in bundle.char_indices() {
        let flag = known(dialect)
            .find(|f| f.short == Some(letter))
            .ok_or(OptionError::InvalidLetter(letter))?;
        if flag.argument == Argument::None {
            options.push((flag.opt, None));
            continue;
        }
        let attached = &bundle[at + letter.len_utf8()..];
        let value = if attached.is_empty() {
            rest.next().cloned().ok_or(OptionError::MissingArgumentOfLetter(letter))?
        } else {
            attached.to_owned()
        };
        options.push((flag.opt, Some(value)));
        break;
    }
    Ok(())
}

/// Takes `args` apart as the dialect that they name does, or where they name none as the newest
/// pgbench that accepts them, or the newest of all where none does; with a note where the choice
/// matters.
///
/// # Errors
/// A dialect that is none.
pub(crate) fn choose(args: &[String]) -> Result<(Dialect, Parsed, Option<String>), OptionError> {
    let mut refused: Option<(Dialect, String)> = None;
    for dialect in Dialect::ALL {
        let parsed = parse(args, dialect);
        if let Some((_, Some(asked))) = parsed.options.iter().rfind(|(opt, _)| *opt == Opt::Dialect)
        {
            let asked = Dialect::parse(asked)
                .ok_or_else(|| OptionError::UnknownDialect { asked: asked.clone() })?;
            return Ok((asked, parse(args, asked), None));
        }
        if let Some(error) = parsed.error {
            refused.get_or_insert((dialect, error.to_string()));
            continue;
        }
        // `-d -c 4`: nobody's database is called `-c`.
        if let Some((_, Some(name))) = parsed.options.iter().find(|(opt, name)| {
            *opt == Opt::Dbname && name.as_ref().is_some_and(|n| n.starts_with('-'))
        }) {
            refused
                .get_or_insert_with(|| (dialect, format!("-d would name a database \"{name}\"")));
            continue;
        }
        // Two databases: the older meaning of -d is the one that leaves one.
        let named = parsed.options.iter().any(|(opt, _)| *opt == Opt::Dbname);
        if named
            && !parsed.operands.is_empty()
            && is_read_by(args, Dialect::BEFORE_DBNAME, |older| older.operands.len() == 1)
        {
            refused.get_or_insert_with(|| (dialect, "two databases would be named".to_owned()));
            continue;
        }
        let note = match refused {
            Some((newer, why)) => Some(format!(
                "options read as pgbench {dialect} reads them (--dialect={dialect}); for pgbench {newer}: {why}"
            )),
            None if named && is_read_by(args, Dialect::BEFORE_DBNAME, |_| true) => Some(format!(
                "-d read as the database's name, as from pgbench 17 on; --dialect={} reads it as debug",
                Dialect::BEFORE_DBNAME
            )),
            None => None,
        };
        return Ok((dialect, parsed, note));
    }
    Ok((Dialect::NEWEST, parse(args, Dialect::NEWEST), None))
}

/// Returns whether `dialect` accepts `args`, and `is_right` holds of the result.
fn is_read_by(args: &[String], dialect: Dialect, is_right: impl Fn(&Parsed) -> bool) -> bool {
    let parsed = parse(args, dialect);
    parsed.error.is_none() && is_right(&parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn chosen(line: &str) -> (String, Parsed, bool) {
        let (dialect, parsed, note) = choose(&args(line)).unwrap();
        (dialect.to_string(), parsed, note.is_some())
    }

    #[test]
    fn options_are_read_in_every_form_that_getopt_reads() {
        let (_, expected, _) = chosen("-n -c 10 --time=5 db");
        for same in [
            "db -nc10 -T5",
            "-nc 10 --ti 5 db",
            "--no-vacuum --cl=10 -T 5 -- db",
            "-n --client 10 db --time 5",
        ] {
            let (dialect, mut parsed, _) = chosen(same);
            parsed.options.sort_by_key(|(o, _)| *o as u8);
            let mut sorted = expected.options.clone();
            sorted.sort_by_key(|(o, _)| *o as u8);
            assert_eq!(
                (parsed.options, parsed.operands),
                (sorted, vec!["db".to_owned()]),
                "{same}"
            );
            assert_eq!(dialect, "18");
        }
        let wrong = |line| choose(&args(line)).unwrap().1.error.unwrap();
        assert!(matches!(wrong("--c=3"), OptionError::Ambiguous { .. }));
        assert!(wrong("--c=3").to_string().contains("'--client' '--connect'"));
        assert_eq!(wrong("-Z"), OptionError::InvalidLetter('Z'));
        assert_eq!(wrong("-nc"), OptionError::MissingArgumentOfLetter('c'));
        assert_eq!(wrong("--connect=3"), OptionError::SuperfluousArgument("connect"));
        // pgdyno's own options do not make pgbench's abbreviations ambiguous.
        assert_eq!(chosen("--j=3").1.options, [(Opt::Jobs, Some("3".to_owned()))]);
    }

    #[test]
    fn the_newest_dialect_that_accepts_the_line_is_taken() {
        assert_eq!(chosen("-d mydb -c 2").1.options[0], (Opt::Dbname, Some("mydb".to_owned())));
        assert!(chosen("-d mydb").2, "it is said: the older meaning would do too");
        let (dialect, parsed, said) = chosen("-d -c 2 mydb");
        assert_eq!(
            (dialect.as_str(), parsed.options[0].clone(), said),
            ("16", (Opt::Debug, None), true)
        );
        assert_eq!(chosen("-d mydb otherdb -c 3").0, "18", "for 16 that would be two databases");
        assert_eq!(chosen("--report-latencies").0, "14");
        assert_eq!(chosen("--exit-on-abort --dialect 17").0, "17");
        assert!(choose(&args("--exit-on-abort --dialect 16")).unwrap().1.error.is_some());
        assert!(choose(&args("--dialect 8.4")).unwrap_err().to_string().contains("9.4"));
        assert!(!chosen("-c 2 mydb").2);
    }
}
