//! Built-in scripts and script files, by name and weight.

use std::fmt::Write as _;
use std::io::Read as _;
use std::sync::Arc;

use pgdyno_engine::script::{Op, Script, ScriptError};

use super::flags::Dialect;
use super::refused::Refused;

/// A script that pgbench has built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Builtin {
    TpcbLike,
    SimpleUpdate,
    SelectOnly,
}

impl Builtin {
    const ALL: [Self; 3] = [Self::TpcbLike, Self::SimpleUpdate, Self::SelectOnly];

    fn name(self) -> &'static str {
        match self {
            Self::TpcbLike => "tpcb-like",
            Self::SimpleUpdate => "simple-update",
            Self::SelectOnly => "select-only",
        }
    }

    /// What reports call it.
    fn title(self) -> &'static str {
        match self {
            Self::TpcbLike => "<builtin: TPC-B (sort of)>",
            Self::SimpleUpdate => "<builtin: simple update>",
            Self::SelectOnly => "<builtin: select only>",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::TpcbLike => include_str!("../../../../workloads/tpcb-like/tpcb-like.sql"),
            Self::SimpleUpdate => include_str!("../../../../workloads/simple-update/simple-update.sql"),
            Self::SelectOnly => include_str!("../../../../workloads/select-only/select-only.sql"),
        }
    }

    /// The one whose name begins with `prefix`.
    pub(super) fn find(prefix: &str) -> Result<Self, Refused> {
        let found: Vec<Self> = Self::ALL.into_iter().filter(|b| b.name().starts_with(prefix)).collect();
        match found.as_slice() {
            [one] => Ok(*one),
            [] => Err(Refused::new(format!(
                "no builtin script found for name \"{prefix}\"\n{}",
                list().trim_end()
            ))),
            several => Err(Refused::new(format!(
                "ambiguous builtin name: {} builtin scripts found for prefix \"{prefix}\"\n{}",
                several.len(),
                list().trim_end()
            ))),
        }
    }

    /// `--show-script`.
    pub(super) fn shown(self) -> String {
        format!("-- {}: {}\n{}\n\n", self.name(), self.title(), self.text().trim_end())
    }
}

/// `-b list`.
pub(super) fn list() -> String {
    let mut text = String::from("Available builtin scripts:\n");
    for builtin in Builtin::ALL {
        let _ = writeln!(text, "  {:>13}: {}", builtin.name(), builtin.title());
    }
    text.push('\n');
    text
}

/// A script that was asked for.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    /// Whether it is built in: then the tables are pgbench's own.
    pub(super) is_builtin: bool,
    pub(super) script: Arc<Script>,
    pub(super) weight: u32,
    /// The script as it was given.
    text: Arc<str>,
}

impl Chosen {
    /// A built-in one.
    pub(super) fn builtin(builtin: Builtin, weight: u32) -> Result<Self, Refused> {
        let parsed = Script::parse(builtin.title(), builtin.text());
        Ok(Self { is_builtin: true, ..Self::of(parsed, builtin.text(), weight)? })
    }

    /// Reads `file`, in the language of `asked` or whichever it is in, with a note where that is the old one; `-` is
    /// standard input.
    pub(super) fn file(
        file: &str,
        weight: u32,
        asked: Option<Dialect>,
    ) -> Result<(Self, Option<String>), Refused> {
        let mut bytes = Vec::new();
        let read = if file == "-" {
            std::io::stdin().read_to_end(&mut bytes).map(|_| ())
        } else {
            std::fs::read(file).map(|read| bytes = read)
        };
        read.map_err(|e| Refused::new(format!("could not open file \"{file}\": {}", system_words(&e))))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Refused::new(format!("could not read file \"{file}\": it is not UTF-8")))?;
        let (parsed, note) = match asked {
            Some(dialect) if dialect.has_old_language() => (Script::parse_old(file, &text), None),
            Some(_) => (Script::parse(file, &text), None),
            None => match Script::parse_auto(file, &text) {
                Ok((script, note)) => (Ok(script), note),
                Err(error) => (Err(error), None),
            },
        };
        let chosen = Self::of(parsed, &text, weight)?;
        if asked.is_some_and(|dialect| !dialect.has_sync_pipeline())
            && let Some(command) = chosen.script.commands.iter().find(|c| matches!(c.op, Op::SyncPipeline))
        {
            let (line, text) = (command.line, &command.text);
            return Err(Refused::new(format!(
                "{file}:{line}: invalid command in command \"syncpipeline\"\n  {text}"
            ))
            .hint("it is of pgbench 17 and later: --dialect=17"));
        }
        Ok((chosen, note))
    }

    fn of(parsed: Result<Script, ScriptError>, text: &str, weight: u32) -> Result<Self, Refused> {
        let script = parsed.map_err(|e| {
            let refused = Refused::new(e.to_string());
            match e.help() {
                Some(help) => refused.hint(help),
                None => refused,
            }
        })?;
        Ok(Self { is_builtin: false, script: Arc::new(script), weight, text: text.into() })
    }

    /// The first line of each of `commands` (with white space folded), as the script has it.
    pub(super) fn first_lines<'a>(&self, commands: impl Iterator<Item = &'a str>) -> Vec<String> {
        let mut rest: &str = &self.text;
        commands
            .map(|folded| match found(rest, folded) {
                Some((begin, end)) => {
                    // The semicolon is shown, too.
                    let after = rest[end..].trim_start();
                    let end = if after.starts_with(';') { rest.len() - after.len() + 1 } else { end };
                    let line = rest[begin..end].lines().next().unwrap_or(folded).trim_end();
                    rest = &rest[end..];
                    line.replace("\\;", ";")
                }
                None => folded.to_owned(),
            })
            .collect()
    }
}

/// Where `text` first holds what is `folded` once white space is folded.
fn found(text: &str, folded: &str) -> Option<(usize, usize)> {
    let first = folded.chars().next()?;
    text.match_indices(first).find_map(|(begin, _)| {
        let mut wanted = folded.chars().peekable();
        let mut is_space = false;
        for (at, c) in text[begin..].char_indices() {
            // Of `\;` the command has only the semicolon.
            if c == '\\' && wanted.peek() == Some(&';') {
                continue;
            }
            if wanted.peek().is_none() {
                return Some((begin, begin + at));
            }
            match (c.is_whitespace(), is_space) {
                (true, true) => {}
                (true, false) if wanted.next() == Some(' ') => {}
                (false, _) if wanted.next() == Some(c) => {}
                _ => return None,
            }
            is_space = c.is_whitespace();
        }
        wanted.peek().is_none().then_some((begin, text.len()))
    })
}

/// The system's words for an error, without the number that Rust appends.
pub(super) fn system_words(error: &std::io::Error) -> String {
    let words = error.to_string();
    match words.find(" (os error") {
        Some(end) => words[..end].to_owned(),
        None => words,
    }
}

/// Takes `NAME@WEIGHT` apart.
pub(super) fn weighted(text: &str) -> Result<(&str, u32), Refused> {
    let Some(at) = text.rfind('@') else { return Ok((text, 1)) };
    let (name, weight) = (&text[..at], &text[at + 1..]);
    let digits = weight.strip_prefix(['+', '-']).unwrap_or(weight);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Refused::new(format!("invalid weight specification: {}", &text[at..])));
    }
    match weight.parse::<i64>().ok().and_then(|n| u32::try_from(n).ok()).filter(|n| *n <= i32::MAX as u32) {
        Some(weight) => Ok((name, weight)),
        None => Err(Refused::new(format!("weight specification out of range (0 .. {}): {weight}", i32::MAX))),
    }
}

/// Whether pgbench takes `name` as a variable's.
pub(crate) fn is_variable_name(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
    name.chars().all(word) && name.starts_with(|c: char| !c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_by_their_first_line() {
        let text = "-- a\n\\set x  random(1,\\\n 2)\nSELECT  1\n FROM t;SELECT 2;\nSELECT 2;\nSELECT 3 \\; SELECT 4;";
        let chosen = Chosen {
            is_builtin: false,
            script: Arc::new(Script::parse("x", "SELECT 1;").unwrap()),
            weight: 1,
            text: text.into(),
        };
        let folded = ["SELECT 1 FROM t;", "SELECT 2", "SELECT 2;", "SELECT 3 ; SELECT 4", "not there"];
        let lines = chosen.first_lines(folded.into_iter());
        assert_eq!(lines, ["SELECT  1", "SELECT 2;", "SELECT 2;", "SELECT 3 ; SELECT 4;", "not there"]);
    }

    #[test]
    fn a_command_of_pgbench_17_is_not_one_of_16() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        std::fs::write(path, "\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2;\n\\endpipeline\n")
            .unwrap();
        for (dialect, taken) in [(None, true), (Some("18"), true), (Some("17"), true), (Some("16"), false)] {
            let dialect = dialect.and_then(Dialect::parse);
            let read = Chosen::file(path, 1, dialect);
            assert_eq!(read.is_ok(), taken, "{dialect:?}");
        }
    }

    #[test]
    fn weights_and_prefixes_are_judged() {
        assert_eq!(weighted("a@b@3").unwrap(), ("a@b", 3));
        assert!(weighted("a@x").is_err() && weighted("a@-1").is_err() && weighted("a@").is_err());
        assert_eq!(Builtin::find("t").unwrap(), Builtin::TpcbLike);
        assert!(Builtin::find("s").is_err() && Builtin::find("").is_err() && Builtin::find("x").is_err());
        assert!(is_variable_name("_a1") && !is_variable_name("1a") && !is_variable_name("a-b"));
    }
}
