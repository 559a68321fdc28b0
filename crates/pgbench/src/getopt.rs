//! Options as `getopt_long` reads them: bundles, abbreviations, options after operands.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use crate::dialect::Dialect;
use crate::flags::{Arity, FLAGS, Flag, Mode};

/// A command line taken apart.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// Options in order, with their arguments.
    pub(crate) options: Vec<Given>,
    /// Arguments that are not options.
    pub(crate) operands: Vec<OsString>,
    /// Where it could not be read to its end, the reason: an option that this version does not
    /// have, or one whose argument is missing or superfluous. What stands before it counts, as in
    /// pgbench, which acts as it reads.
    pub(crate) error: Option<OptionError>,
}

/// An option of the command line, and its argument.
pub(crate) type Given = (&'static Flag, Option<OsString>);

/// Why a command line cannot be read, in the words of `getopt_long`.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum OptionError {
    #[error("unrecognized option '--{0}'")]
    Unrecognized(String),
    #[error("invalid option -- '{0}'")]
    InvalidLetter(char),
    #[error(
        "option '--{text}' is ambiguous; possibilities: {}",
        names.iter().map(|name| format!("'--{name}'")).collect::<Vec<_>>().join(" ")
    )]
    Ambiguous { text: String, names: Vec<&'static str> },
    #[error("option '--{0}' doesn't allow an argument")]
    SuperfluousArgument(&'static str),
    #[error("option '--{0}' requires an argument")]
    MissingArgument(&'static str),
    #[error("option requires an argument -- '{0}'")]
    MissingArgumentOfLetter(char),
    #[error(
        "unknown dialect \"{asked}\"; known are {}: the report of an older pgbench is another",
        Dialect::all().rev().map(|known| known.to_string()).collect::<Vec<_>>().join(", ")
    )]
    UnknownDialect { asked: String },
}

/// Takes `args` apart as pgbench of version `dialect` does.
pub(crate) fn parse(args: &[OsString], dialect: Dialect) -> Parsed {
    let mut parsed = Parsed { options: Vec::new(), operands: Vec::new(), error: None };
    parsed.error = read(args, dialect, &mut parsed).err();
    parsed
}

fn read(args: &[OsString], dialect: Dialect, parsed: &mut Parsed) -> Result<(), OptionError> {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"--" => {
                parsed.operands.extend(args.cloned());
                break;
            }
            [b'-', b'-', long @ ..] => {
                parsed.options.push(long_option(long, dialect, &mut args)?);
            }
            [b'-', bundle @ ..] if !bundle.is_empty() => {
                short_options(bundle, dialect, &mut args, &mut parsed.options)?;
            }
            _ => parsed.operands.push(arg.clone()),
        }
    }
    Ok(())
}

fn known(dialect: Dialect) -> impl Iterator<Item = &'static Flag> {
    // Help and version were handled before.
    FLAGS.iter().filter(move |f| f.is_in(dialect) && !matches!(f.long, "help" | "version"))
}

fn owned(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_owned()
}

fn long_option<'a>(
    text: &[u8],
    dialect: Dialect,
    rest: &mut impl Iterator<Item = &'a OsString>,
) -> Result<Given, OptionError> {
    let (name, value) = match text.iter().position(|byte| *byte == b'=') {
        Some(at) => (&text[..at], Some(owned(&text[at + 1..]))),
        None => (text, None),
    };
    let flag = match known(dialect).find(|f| f.long.as_bytes() == name) {
        Some(flag) => flag,
        None => {
            let prefixed: Vec<&'static Flag> = known(dialect)
                .filter(|f| f.mode != Mode::Own && f.long.as_bytes().starts_with(name))
                .collect();
            let text = || String::from_utf8_lossy(text).into_owned();
            match prefixed.as_slice() {
                [one] => *one,
                [] => return Err(OptionError::Unrecognized(text())),
                several => {
                    let names = several.iter().map(|f| f.long).collect();
                    return Err(OptionError::Ambiguous { text: text(), names });
                }
            }
        }
    };
    let value = match (flag.argument.arity(), value) {
        (Arity::None, Some(_)) => return Err(OptionError::SuperfluousArgument(flag.long)),
        (Arity::One, None) => {
            Some(rest.next().cloned().ok_or(OptionError::MissingArgument(flag.long))?)
        }
        (_, value) => value,
    };
    Ok((flag, value))
}

fn short_options<'a>(
    bundle: &[u8],
    dialect: Dialect,
    rest: &mut impl Iterator<Item = &'a OsString>,
    options: &mut Vec<Given>,
) -> Result<(), OptionError> {
    for (at, byte) in bundle.iter().enumerate() {
        let letter = char::from(*byte);
        let Some(flag) = known(dialect).find(|f| f.short == Some(letter)) else {
            let rest = String::from_utf8_lossy(&bundle[at..]);
            return Err(OptionError::InvalidLetter(rest.chars().next().unwrap_or(letter)));
        };
        if flag.argument.arity() == Arity::None {
            options.push((flag, None));
            continue;
        }
        let value = match &bundle[at + 1..] {
            [] => rest.next().cloned().ok_or(OptionError::MissingArgumentOfLetter(letter))?,
            attached => owned(attached),
        };
        options.push((flag, Some(value)));
        break;
    }
    Ok(())
}

/// Takes `args` apart in the dialect that they name, else as the newest pgbench that accepts them.
///
/// If no pgbench accepts them, the newest one's error counts. Returns a note if the choice matters.
///
/// # Errors
/// `--dialect` names an unknown version.
pub(crate) fn choose(args: &[OsString]) -> Result<(Dialect, Parsed, Option<String>), OptionError> {
    let mut refused: Option<(Dialect, String)> = None;
    for dialect in Dialect::all() {
        let parsed = parse(args, dialect);
        if let Some((_, Some(asked))) = parsed.options.iter().rfind(|(f, _)| f.long == "dialect") {
            let asked = asked.to_string_lossy();
            let asked = Dialect::parse(&asked)
                .ok_or_else(|| OptionError::UnknownDialect { asked: asked.into_owned() })?;
            return Ok((asked, parse(args, asked), None));
        }
        if let Some(error) = parsed.error {
            refused.get_or_insert((dialect, error.to_string()));
            continue;
        }
        let mut names = parsed.options.iter().filter(|(f, _)| f.long == "dbname");
        let is_named = names.clone().next().is_some();
        // `-d -c 4`: nobody's database is called `-c`.
        let is_option = |name: &&OsString| name.as_bytes().starts_with(b"-");
        if let Some(name) = names.find_map(|(_, name)| name.as_ref().filter(is_option)) {
            refused.get_or_insert_with(|| {
                (dialect, format!("-d would name a database \"{}\"", name.display()))
            });
            continue;
        }
        // Two databases: the older meaning of -d is the one that leaves one.
        if is_named
            && !parsed.operands.is_empty()
            && is_read_by(args, Dialect::BEFORE_DBNAME, |older| older.operands.len() == 1)
        {
            refused.get_or_insert_with(|| (dialect, "two databases would be named".to_owned()));
            continue;
        }
        let note = match refused {
            Some((newer, why)) => Some(format!(
                "options read as pgbench {dialect} reads them (--dialect={dialect}); for pgbench \
                 {newer}: {why}"
            )),
            None if is_named && is_read_by(args, Dialect::BEFORE_DBNAME, |_| true) => {
                Some(format!(
                    "-d read as the database's name, as from pgbench 17 on; --dialect={} reads \
                     it as debug",
                    Dialect::BEFORE_DBNAME
                ))
            }
            None => None,
        };
        return Ok((dialect, parsed, note));
    }
    Ok((Dialect::NEWEST, parse(args, Dialect::NEWEST), None))
}

/// Returns whether `dialect` accepts `args`, and `is_right` holds of the result.
fn is_read_by(args: &[OsString], dialect: Dialect, is_right: impl Fn(&Parsed) -> bool) -> bool {
    let parsed = parse(args, dialect);
    parsed.error.is_none() && is_right(&parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    /// Names of the options with their arguments.
    fn names(parsed: &Parsed) -> Vec<(&str, Option<&str>)> {
        let given = parsed.options.iter();
        given
            .map(|(flag, value)| (flag.long, value.as_deref().map(|value| value.to_str().unwrap())))
            .collect()
    }

    fn chosen(line: &str) -> (String, Parsed, bool) {
        let (dialect, parsed, note) = choose(&args(line)).unwrap();
        (dialect.to_string(), parsed, note.is_some())
    }

    #[test]
    fn options_are_read_in_every_form_that_getopt_reads() {
        let (_, mut expected, _) = chosen("-n -c 10 --time=5 db");
        for same in [
            "db -nc10 -T5",
            "-nc 10 --ti 5 db",
            "--no-vacuum --cl=10 -T 5 -- db",
            "-n --client 10 db --time 5",
        ] {
            let (dialect, mut parsed, _) = chosen(same);
            parsed.options.sort_by_key(|(flag, _)| flag.long);
            expected.options.sort_by_key(|(flag, _)| flag.long);
            assert_eq!(names(&parsed), names(&expected), "{same}");
            assert_eq!(parsed.operands, ["db"], "{same}");
            assert_eq!(dialect, "18");
        }
        let wrong = |line| choose(&args(line)).unwrap().1.error.unwrap();
        assert!(matches!(wrong("--c=3"), OptionError::Ambiguous { .. }));
        assert!(wrong("--c=3").to_string().contains("'--client' '--connect'"));
        assert_eq!(wrong("-Z"), OptionError::InvalidLetter('Z'));
        assert_eq!(wrong("-nä"), OptionError::InvalidLetter('ä'));
        assert_eq!(wrong("-nc"), OptionError::MissingArgumentOfLetter('c'));
        assert_eq!(wrong("--connect=3"), OptionError::SuperfluousArgument("connect"));
        // pgdyno's own options do not make pgbench's abbreviations ambiguous.
        assert_eq!(names(&chosen("--j=3").1), [("jobs", Some("3"))]);
    }

    #[test]
    fn a_value_may_hold_any_bytes() {
        let name = OsStr::from_bytes(b"a\xff=b.sql");
        let joined = |option: &str| [option.as_bytes(), name.as_bytes()].concat();
        for args in [
            vec![OsString::from("-f"), name.to_owned()],
            vec![owned(&joined("-f"))],
            vec![owned(&joined("--file="))],
        ] {
            let (_, parsed, _) = choose(&args).unwrap();
            assert_eq!(parsed.options[0].1.as_deref(), Some(name), "{args:?}");
        }
        let wrong = choose(&[owned(b"--\xff")]).unwrap().1.error.unwrap();
        assert_eq!(wrong, OptionError::Unrecognized("\u{fffd}".to_owned()));
    }

    #[test]
    fn the_newest_dialect_that_accepts_the_line_is_taken() {
        assert_eq!(names(&chosen("-d mydb -c 2").1)[0], ("dbname", Some("mydb")));
        assert!(chosen("-d mydb").2, "it is said: the older meaning would do too");
        let (dialect, parsed, said) = chosen("-d -c 2 mydb");
        assert_eq!((dialect.as_str(), names(&parsed)[0], said), ("16", ("debug", None), true));
        assert_eq!(chosen("-d mydb otherdb -c 3").0, "18", "for 16 that would be two databases");
        assert_eq!(chosen("--exit-on-abort --dialect 17").0, "17");
        assert!(choose(&args("--exit-on-abort --dialect 16")).unwrap().1.error.is_some());
        // Their reports are others than those that are printed.
        for older in ["9.4", "13", "14"] {
            let refused = choose(&args(&format!("--dialect {older}"))).unwrap_err().to_string();
            assert!(refused.contains("known are 15, 16, 17, 18:"), "{refused}");
        }
        assert!(!chosen("-c 2 mydb").2);
    }
}
