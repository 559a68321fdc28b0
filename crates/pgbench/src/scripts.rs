//! Built-in scripts and script files, by name and weight.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use pgdyno_dataset::trust::{self, Purpose, Trust};
use pgdyno_engine::program::MAX_PARAMETERS;
use pgdyno_engine::script::{Command, Op, Script, ScriptError};
use pgdyno_model::experiment::Protocol;

use crate::dialect::Dialect;
use crate::server_messages::system_words;
use crate::usage_error::UsageError;

/// A script that pgbench has built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
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

    /// Returns its name in reports.
    fn title(self) -> &'static str {
        match self {
            Self::TpcbLike => "<builtin: TPC-B (sort of)>",
            Self::SimpleUpdate => "<builtin: simple update>",
            Self::SelectOnly => "<builtin: select only>",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::TpcbLike => include_str!("../../../workloads/tpcb-like/tpcb-like.sql"),
            Self::SimpleUpdate => {
                include_str!("../../../workloads/simple-update/simple-update.sql")
            }
            Self::SelectOnly => include_str!("../../../workloads/select-only/select-only.sql"),
        }
    }

    /// Returns the script whose name begins with `prefix`.
    pub(crate) fn find(prefix: &str) -> Result<Self, UsageError> {
        let found: Vec<Self> =
            Self::ALL.into_iter().filter(|b| b.name().starts_with(prefix)).collect();
        match found.as_slice() {
            [one] => Ok(*one),
            [] => Err(UsageError::new(format!(
                "no builtin script found for name \"{prefix}\"\n{}\n",
                list().trim_end()
            ))),
            several => Err(UsageError::new(format!(
                "ambiguous builtin name: {} builtin scripts found for prefix \"{prefix}\"\n{}\n",
                several.len(),
                list().trim_end()
            ))),
        }
    }

    /// `--show-script`.
    pub(crate) fn render(self) -> String {
        format!("-- {}: {}\n{}\n\n", self.name(), self.title(), self.text().trim_end())
    }
}

/// `-b list`.
pub(crate) fn list() -> String {
    let mut text = String::from("Available builtin scripts:\n");
    for builtin in Builtin::ALL {
        let _ = writeln!(text, "  {:>13}: {}", builtin.name(), builtin.title());
    }
    text.push('\n');
    text
}

/// A script with its weight.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// Whether it is built in: then the tables are pgbench's own.
    pub(crate) is_builtin: bool,
    pub(crate) script: Arc<Script>,
    pub(crate) weight: u32,
    /// The file that it was read from and what that held, where it runs commands of its own.
    commands_of: Option<(PathBuf, String)>,
}

impl Chosen {
    /// Parses a built-in script.
    pub(crate) fn builtin(builtin: Builtin, weight: u32) -> Result<Self, UsageError> {
        let parsed = Script::parse(builtin.title(), builtin.text());
        Ok(Self { is_builtin: true, ..Self::new(parsed, weight)? })
    }

    /// Reads `file`, or standard input for `-`.
    ///
    /// Without a dialect that is `asked` for, the old language is recognised; a note tells of it.
    pub(crate) fn file(
        file: &OsStr,
        weight: u32,
        asked: Option<Dialect>,
    ) -> Result<(Self, Option<String>), UsageError> {
        let name = file.to_string_lossy();
        let name = name.as_ref();
        let mut bytes = Vec::new();
        let read = if file == "-" {
            std::io::stdin().read_to_end(&mut bytes).map(|_| ())
        } else {
            std::fs::read(file).map(|read| bytes = read)
        };
        read.map_err(|e| {
            // Opening a directory succeeds.
            let what = if e.kind() == std::io::ErrorKind::IsADirectory { "read" } else { "open" };
            UsageError::new(format!("could not {what} file \"{name}\": {}", system_words(&e)))
        })?;
        let whole = String::from_utf8(bytes).map_err(|_| {
            UsageError::new(format!("could not read file \"{name}\": it is not UTF-8"))
        })?;
        // pgbench reads it as a C string.
        let text = whole.split('\0').next().unwrap_or_default();
        let (parsed, note) = match asked {
            Some(_) => (Script::parse(name, text), None),
            None => match Script::parse_auto(name, text) {
                Ok((script, note)) => (Ok(script), note),
                Err(error) => (Err(error), None),
            },
        };
        let mut chosen = Self::new(parsed, weight)?;
        chosen.check_copies(name)?;
        if file != "-" && trust::has_commands(&chosen.script) {
            chosen.commands_of = Some((PathBuf::from(file), whole.clone()));
        }
        if asked.is_some_and(|dialect| !dialect.has_sync_pipeline())
            && let Some(command) =
                chosen.script.commands.iter().find(|c| matches!(c.op, Op::SyncPipeline))
        {
            let (line, text) = (command.line, &command.text);
            return Err(UsageError::new(format!(
                "{name}:{line}: invalid command in command \"syncpipeline\"\n  {text}"
            ))
            .hint("it is of pgbench 17 and later: --dialect=17"));
        }
        Ok((chosen, note))
    }

    /// Refuses `\copyfrom` of file `name`: pgbench has no description of rows.
    fn check_copies(&self, name: &str) -> Result<(), UsageError> {
        match self.script.copied_tables().next() {
            None => Ok(()),
            Some((line, table)) => Err(UsageError::new(format!(
                "{name}:{line}: invalid command in command \"copyfrom\": pgbench has \
                 none of that name"
            ))
            .hint(format!(
                "a workload that describes `{table}` may have it: `pgdyno run`, docs/workloads.md"
            ))),
        }
    }

    /// Refuses, as root, commands of a file that another account may change, unless `trust` names
    /// it.
    pub(crate) fn check_trust(&self, trust: &Trust) -> Result<(), UsageError> {
        let Some((file, text)) = &self.commands_of else { return Ok(()) };
        Ok(trust.check_text(file, text, Purpose::ShellCommands)?)
    }

    /// Refuses a statement that has more variables than can be sent as parameters.
    pub(crate) fn check_parameters(&self, protocol: Protocol) -> Result<(), UsageError> {
        let too_many = |command: &&Command| command.op.parameters() > MAX_PARAMETERS;
        match self.script.commands.iter().find(too_many) {
            Some(command) if protocol != Protocol::Simple => Err(UsageError::new(format!(
                "statement has too many arguments (maximum is {MAX_PARAMETERS}): {}",
                command.text
            ))),
            _ => Ok(()),
        }
    }

    fn new(parsed: Result<Script, ScriptError>, weight: u32) -> Result<Self, UsageError> {
        let script = parsed?;
        Ok(Self { is_builtin: false, script: Arc::new(script), weight, commands_of: None })
    }
}

/// Splits `NAME@WEIGHT`; the weight is 1 unless given.
pub(crate) fn weighted(text: &OsStr) -> Result<(&OsStr, u32), UsageError> {
    let bytes = text.as_bytes();
    let Some(at) = bytes.iter().rposition(|byte| *byte == b'@') else { return Ok((text, 1)) };
    let name = OsStr::from_bytes(&bytes[..at]);
    let shown = String::from_utf8_lossy(&bytes[at..]);
    let weight = shown[1..].trim_start();
    let digits = weight.strip_prefix(['+', '-']).unwrap_or(weight);
    let invalid = || UsageError::new(format!("invalid weight specification: {shown}"));
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(invalid());
    }
    match weight
        .parse::<i64>()
        .ok()
        .and_then(|n| u32::try_from(n).ok())
        .filter(|n| *n <= i32::MAX as u32)
    {
        Some(weight) => Ok((name, weight)),
        None if digits.parse::<i64>().is_err() => Err(invalid()),
        None => Err(UsageError::new(format!(
            "weight specification out of range (0 .. {}): {weight}",
            i32::MAX
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_pgbench_17_is_not_one_of_16() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().as_os_str();
        std::fs::write(
            path,
            "\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2;\n\\endpipeline\n",
        )
        .unwrap();
        for (dialect, taken) in
            [(None, true), (Some("18"), true), (Some("17"), true), (Some("16"), false)]
        {
            let dialect = dialect.and_then(Dialect::parse);
            let read = Chosen::file(path, 1, dialect);
            assert_eq!(read.is_ok(), taken, "{dialect:?}");
        }
    }

    #[test]
    fn weights_and_prefixes_are_judged() {
        let weighted = |text: &'static str| weighted(OsStr::new(text));
        assert_eq!(weighted("a@b@3").unwrap(), (OsStr::new("a@b"), 3));
        assert!(weighted("a@x").is_err() && weighted("a@-1").is_err() && weighted("a@").is_err());
        assert_eq!(Builtin::find("t").unwrap(), Builtin::TpcbLike);
        assert!(
            Builtin::find("s").is_err()
                && Builtin::find("").is_err()
                && Builtin::find("x").is_err()
        );
    }
}
