//! Command lines of pgbench.

use serde::Serialize;

use super::scan::Scan;
use crate::document::Line;
use crate::figure::Figure;
use crate::words::Words;

/// A command line of pgbench that runs a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Command {
    pub(crate) line: usize,
    /// Words that decide about the load: those behind a prompt, without where output goes.
    pub(crate) options: String,
    /// Whether the whole command stands there, by itself: no part of a sentence, no variables,
    /// nothing left out.
    pub(crate) is_whole: bool,
    pub(crate) clients: Option<Figure>,
    pub(crate) threads: Option<Figure>,
    /// `-M`: the query mode.
    pub(crate) protocol: Option<String>,
    /// `-R`: transactions in a second.
    pub(crate) rate: Option<Figure>,
    /// Loads that the options ask for, in order.
    pub(crate) kinds: Vec<LoadKind>,
    pub(crate) duration_s: Option<Figure>,
    pub(crate) transactions_per_client: Option<Figure>,
    /// `-s`: the scale.
    pub(crate) scale: Option<Figure>,
    pub(crate) rate_limited: bool,
}

/// Load that a command asks for, or that a report says was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadKind {
    /// Built-in script `tpcb-like`.
    TpcB,
    /// Built-in script `simple-update`.
    SimpleUpdate,
    /// Built-in script `select-only`.
    SelectOnly,
    /// Script that is not built in.
    File,
    /// Several scripts.
    Several,
}

impl LoadKind {
    /// Reads `transaction type`.
    pub(crate) fn from_report(text: &str) -> Self {
        let lower = text.to_lowercase();
        if lower.contains("multiple scripts") {
            Self::Several
        } else if lower.contains("tpc-b") {
            Self::TpcB
        } else if lower.contains("simple update") || lower.starts_with("update only") {
            Self::SimpleUpdate
        } else if lower.contains("select only") {
            Self::SelectOnly
        } else {
            Self::File
        }
    }

    /// Reads the name behind `-b`; none if it is none that is known.
    fn from_builtin(name: &str) -> Option<Self> {
        let all = [
            ("tpcb-like", Self::TpcB),
            ("simple-update", Self::SimpleUpdate),
            ("select-only", Self::SelectOnly),
        ];
        let name = name.split('@').next().unwrap_or_default();
        let mut found = all.into_iter().filter(|(known, _)| known.starts_with(name));
        found.next().filter(|_| found.next().is_none()).map(|(_, kind)| kind)
    }

    /// Whether it changes data; none where its scripts decide.
    pub(super) fn writes(self) -> Option<bool> {
        match self {
            Self::TpcB | Self::SimpleUpdate => Some(true),
            Self::SelectOnly => Some(false),
            Self::File | Self::Several => None,
        }
    }
}

impl Command {
    /// Takes an option; returns whether it is one that runs a load.
    fn take(&mut self, name: &str, value: Option<&str>) -> bool {
        let line = self.line;
        let count = || value.and_then(|text| Figure::count(text, line));
        match name {
            "c" | "--client" => self.clients = count(),
            "T" | "--time" => self.duration_s = count(),
            "t" | "--transactions" => self.transactions_per_client = count(),
            "S" | "--select-only" => self.kinds.push(LoadKind::SelectOnly),
            "N" | "--skip-some-updates" => self.kinds.push(LoadKind::SimpleUpdate),
            "f" | "--file" => self.kinds.push(LoadKind::File),
            "b" | "--builtin" => {
                let name = value.unwrap_or_default().to_ascii_lowercase();
                let kind = LoadKind::from_builtin(&name);
                self.is_whole &= kind.is_some();
                self.kinds.extend(kind);
            }
            "R" | "--rate" => {
                self.rate = value.and_then(|text| Figure::read(text, line));
                self.rate_limited = true;
            }
            "j" | "--jobs" => self.threads = count(),
            "M" | "--protocol" => self.protocol = value.map(str::to_lowercase),
            "s" | "--scale" => self.scale = count(),
            "P" | "--progress" | "L" | "--latency-limit" | "n" | "r" | "C" | "l" => {}
            _ => return false,
        }
        true
    }

    /// Takes what pgbench takes where none of `options` says otherwise.
    fn take_defaults(&mut self, options: &[(&str, Option<&str>)]) {
        let one = |value| Some(Figure { value, half: 0.0, line: self.line });
        let (single, ten) = (one(1.0), one(10.0));
        let has = |names: [&str; 2]| options.iter().any(|(name, _)| names.contains(name));
        if !has(["c", "--client"]) {
            self.clients = single;
        }
        if !has(["j", "--jobs"]) {
            self.threads = single;
        }
        if !has(["M", "--protocol"]) {
            self.protocol = Some("simple".to_owned());
        }
        if !has(["t", "--transactions"]) && !has(["T", "--time"]) {
            self.transactions_per_client = ten;
        }
    }

    /// Returns what it asks to run.
    pub(crate) fn kind(&self) -> LoadKind {
        match self.kinds.as_slice() {
            [] => LoadKind::TpcB,
            [only] => *only,
            _ => LoadKind::Several,
        }
    }

    /// Whether it changes data; none where a script decides.
    pub(crate) fn writes(&self) -> Option<bool> {
        self.kinds.last().map_or(Some(true), |kind| kind.writes())
    }
}

/// Whether the line is the whole command: behind a prompt at most, and with nothing left open.
fn is_whole(text: &str) -> bool {
    const BEFORE: Words = Words("$|#|%|>|❯|sudo|time|nohup|exec|-u|postgres|./");
    let text = text.trim().trim_matches('`').trim();
    let words: Vec<&str> = text.split_whitespace().collect();
    let Some(at) = words.iter().position(|word| *word == "pgbench" || word.ends_with("/pgbench"))
    else {
        return false;
    };
    let is_before = |word: &&str| {
        BEFORE.has(word) || word.ends_with(['$', '#', '%', '>']) || word.contains('=')
    };
    const OPEN: Words = Words("$|…|...|<|[|{|*|`|?");
    words[..at].iter().all(is_before)
        && !words[at..].iter().any(|word| OPEN.any_in(word))
        && !text.ends_with('\\')
}

/// Finds all in the document. Their lines stay open to others: prose may stand on them too.
pub(super) fn find(scan: &mut Scan<'_>) -> Vec<Command> {
    let mut commands = Vec::new();
    for (at, line) in scan.lines.iter().enumerate() {
        if let Some(command) = read(&line.text, line.number) {
            scan.read[at] = true;
            commands.push(command);
        }
    }
    commands
}

/// The words of a command line without its prompt, and without where its output goes.
fn options_of(text: &str) -> String {
    const PROMPTS: Words = Words("$ |# |❯ |% ");
    let start = PROMPTS.iter().filter_map(|p| Some(text.find(p)? + p.len())).min().unwrap_or(0);
    let command = text.find("pgbench").filter(|at| *at >= start).map_or(text, |_| &text[start..]);
    let mut words = Vec::new();
    let mut skip = false;
    for word in command.split_whitespace() {
        if std::mem::take(&mut skip) || matches!(word, "&" | "2>&1" | "time" | "nohup" | "sudo") {
            continue;
        }
        if word == "|" || word.starts_with('#') {
            break;
        }
        let redirects = word.trim_start_matches(['1', '2', '&']).starts_with('>');
        skip = redirects && word.ends_with('>');
        if !redirects {
            words.push(word.trim_matches('`'));
        }
    }
    words.join(" ")
}

/// Returns the scales that lines with `pgbench -i` filled a database with.
pub(super) fn initialised_scales(scan: &Scan<'_>) -> Vec<f64> {
    let scale = |line: &Line| {
        let options = options_of_pgbench(&line.text).filter(|options| initialises(options))?;
        let (_, scale) = options.iter().find(|(name, _)| matches!(*name, "s" | "--scale"))?;
        scale.and_then(|scale| scale.parse().ok())
    };
    scan.lines.iter().filter_map(scale).collect()
}

type Options<'a> = Vec<(&'a str, Option<&'a str>)>;

fn initialises(options: &Options<'_>) -> bool {
    options.iter().any(|(name, _)| matches!(*name, "i" | "--initialize"))
}

/// Options of the first command of pgbench in a line; none of a line without one.
fn options_of_pgbench(text: &str) -> Option<Options<'_>> {
    let mut words = text.split_whitespace();
    words.find(|word| {
        let word = word.trim_start_matches(['`', '"', '(', '$', '#']);
        word == "pgbench" || word.ends_with("/pgbench")
    })?;
    Some(options(words))
}

/// Letters of pgbench's options that take no argument; several may stand behind one dash.
const WITHOUT_ARGUMENT: &str = "CNSilnqrv";

/// The options of a command line up to what the shell does with it, each with its argument.
fn options<'a>(words: impl Iterator<Item = &'a str>) -> Options<'a> {
    let mut words = words.map(|w| w.trim_matches(['`', '"', '\'', ',', ')'])).peekable();
    let mut options = Vec::new();
    while let Some(word) = words.next() {
        if matches!(word, "|" | ";" | "&" | "&&" | "||" | ">" | ">>") {
            break;
        }
        let mut value = || words.next_if(|next| !next.starts_with('-'));
        if word.starts_with("--") {
            options.push(match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, value()),
            });
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| letters.is_ascii()) {
            for at in 0..letters.len() {
                let (letter, rest) = (&letters[at..=at], &letters[at + 1..]);
                if WITHOUT_ARGUMENT.contains(letter) {
                    options.push((letter, None));
                    continue;
                }
                options.push((letter, if rest.is_empty() { value() } else { Some(rest) }));
                break;
            }
        }
    }
    options
}

fn read(text: &str, line: usize) -> Option<Command> {
    let options = options_of_pgbench(text).filter(|options| !initialises(options))?;
    let mut command =
        Command { line, options: options_of(text), is_whole: is_whole(text), ..Command::default() };
    let known = options.iter().filter(|(name, value)| command.take(name, *value)).count();
    if command.is_whole {
        command.take_defaults(&options);
    }
    (known > 0).then_some(command)
}

/// Whether a script of these commands changes data; none without any, or where functions may.
pub(super) fn statements_write<'a>(texts: impl Iterator<Item = &'a str>) -> Option<bool> {
    const WRITE: Words = Words("insert|update|delete|merge|copy|truncate");
    let mut reads = None;
    for text in texts {
        let text = text.trim().to_ascii_lowercase();
        if WRITE.any_starts(&text) {
            return Some(true);
        }
        if text.starts_with("select") && !text.contains('(') {
            reads = Some(reads.unwrap_or(true));
        } else if !text.starts_with('\\')
            && !["begin", "end", "commit"].iter().any(|w| text.starts_with(w))
        {
            reads = Some(false);
        }
    }
    (reads == Some(true)).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_however_they_are_written() {
        let command =
            read("$ nohup pgbench -M prepared -c32 -j 8 --time=120 -r db >>log 2>&1 &", 4).unwrap();
        let value = |f: Option<Figure>| f.map(|f| f.value);
        assert_eq!((value(command.clients), value(command.duration_s)), (Some(32.0), Some(120.0)));
        assert_eq!(command.writes(), Some(true));
        let shell = read("/usr/bin/pgbench -c $i -f a.sql -T 120 -n", 1).unwrap();
        assert_eq!(
            (shell.clients, shell.writes(), value(shell.duration_s)),
            (None, None, Some(120.0))
        );
        assert_eq!(read("pgbench -S -T 60", 1).unwrap().writes(), Some(false));
        let bundled = read("pgbench -nSc 4 -rj2 -T60 db", 1).unwrap();
        assert_eq!(
            (value(bundled.clients), value(bundled.threads), value(bundled.duration_s)),
            (Some(4.0), Some(2.0), Some(60.0))
        );
        assert_eq!(bundled.kinds, [LoadKind::SelectOnly]);
        assert_eq!(read("pgbench -is 32", 1), None);
        for none in ["pgbench -i -s 32", "pgbench is a program", "pgbench", "pgbench |"] {
            assert_eq!(read(none, 1), None, "{none}");
        }
    }

    #[test]
    fn what_writes_is_told_only_where_it_is_known() {
        let of = |texts: &[&str]| statements_write(texts.iter().copied());
        assert_eq!(of(&["BEGIN;", "UPDATE t SET a = 1;", "END;"]), Some(true));
        assert_eq!(of(&["\\set a 1", "SELECT abalance FROM a WHERE aid = :aid;"]), Some(false));
        assert_eq!(of(&["SELECT f_user_login(:userid);"]), None);
        assert_eq!(of(&["SELECT 1;", "DO $$ … $$;"]), None);
        assert_eq!(of(&[]), None);
    }
}
