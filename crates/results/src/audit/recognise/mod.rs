//! What a document holds that can be recognised: each kind of figure by a recogniser of its own.

mod claims;
mod command;
mod pgbench;
mod probes;
mod settings;
mod storage;
mod table;

use serde::{Deserialize, Serialize};

use super::NotUnderstood;
use super::document::{Document, Line};
use super::figure::{Decimals, proof};

pub(crate) use claims::{RatioClaim, SpreadClaim};
pub(crate) use command::Command;
pub use pgbench::{PgbenchRun, Progress, Script, Statement};
pub use probes::{CpuLine, DeviceLine, FsyncLine};
pub use settings::Setting;
pub use storage::{StorageFact, StorageWhat};
pub use table::{Meaning, Row, Table};
pub(crate) use table::{mean_holds, numbered};

/// What was recognised in one document: what is imported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recognised {
    /// Reports of pgbench.
    pub runs: Vec<PgbenchRun>,
    /// Tables of tps, or of what their authors computed.
    pub tables: Vec<Table>,
    /// Lines of pg_test_fsync.
    pub fsync: Vec<FsyncLine>,
    /// CPU lines of iostat.
    pub cpus: Vec<CpuLine>,
    /// Device lines of iostat.
    pub devices: Vec<DeviceLine>,
    /// Settings of PostgreSQL.
    pub settings: Vec<Setting>,
    /// What is said of the storage.
    pub storage: Vec<StorageFact>,
}

/// What the rules judge: what was recognised, and what only they need.
pub(crate) struct Evidence {
    pub(crate) recognised: Recognised,
    pub(crate) commands: Vec<Command>,
    /// Runs that follow each other without a word between: indices into the runs.
    pub(crate) groups: Vec<Vec<usize>>,
    pub(crate) ratios: Vec<RatioClaim>,
    pub(crate) spreads: Vec<SpreadClaim>,
}

/// A document while recognisers go over it.
pub(super) struct Scan<'a> {
    lines: &'a [Line],
    /// Which lines a recogniser has read.
    read: Vec<bool>,
    /// What numbers of several groups of thousands prove about the whole document.
    decimals: Option<Decimals>,
    not_understood: Vec<NotUnderstood>,
}

impl Scan<'_> {
    fn not_understood(&mut self, line: usize, why: String) {
        self.not_understood.push(NotUnderstood { line, quoted: String::new(), why });
    }
}

/// All that is recognised, and what looks like a figure and is not.
pub(super) fn recognise(document: &Document) -> (Evidence, Vec<NotUnderstood>) {
    let read = vec![false; document.lines.len()];
    let mut scan =
        Scan { lines: &document.lines, read, decimals: thousands(document), not_understood: Vec::new() };
    let scan = &mut scan;
    let mut runs = pgbench::find(scan);
    let commands = command::find(scan);
    // While only these have read: a setting or a caption between two runs parts them.
    let groups = groups(scan, &runs, &commands);
    let fsync = probes::fsync(scan);
    let (cpus, devices) = probes::iostat(scan);
    let settings = settings::find(scan);
    let storage = storage::find(scan);
    let tables = table::find(scan);
    for run in &mut runs {
        run.label = label(scan, run.line);
    }
    let spreads = claims::spreads(scan);
    let names = claims::names(scan, &runs, &tables);
    let ratios = claims::ratios(scan, &names);
    leftover(scan);
    let recognised = Recognised { runs, tables, fsync, cpus, devices, settings, storage };
    let mut not_understood = std::mem::take(&mut scan.not_understood);
    for one in &mut not_understood {
        document.quote(one.line).clone_into(&mut one.quoted);
    }
    not_understood.sort_by_key(|one| one.line);
    (Evidence { recognised, commands, groups, ratios, spreads }, not_understood)
}

/// What numbers such as `24,242,107` prove of the whole document.
fn thousands(document: &Document) -> Option<Decimals> {
    let words = document.lines.iter().flat_map(|line| line.text.split_whitespace());
    let mut proofs = words
        .filter(|word| {
            word.matches(['.', ',']).count() >= 2 && word.starts_with(|c: char| c.is_ascii_digit())
        })
        .filter_map(|word| proof(word.trim_end_matches([',', '.', ')', ';'])));
    let first = proofs.next()?;
    proofs.all(|other| other == first).then_some(first)
}

/// What stands above a run and may be its name: a short line right over it.
fn label(scan: &Scan<'_>, line: usize) -> Option<String> {
    const NEAR: usize = 6;
    let first = scan.lines.iter().position(|l| l.number == line)?;
    let near = (0..first).rev().take(NEAR);
    let over = near.into_iter().find(|i| !scan.lines[*i].text.trim().is_empty() && !is_command(scan, *i))?;
    if scan.read[over] {
        return None;
    }
    let name = claims::name_of(&scan.lines[over].text);
    let short = name.chars().count() <= 40 && name.chars().any(char::is_alphabetic);
    (short && !name.ends_with(['.', '。', ',', ';', '!', '?'])).then(|| name.to_owned())
}

/// A line that only starts what follows: a command, a prompt, a fence.
fn is_command(scan: &Scan<'_>, at: usize) -> bool {
    let text = scan.lines[at].text.trim();
    let prompt = text.starts_with("```")
        || text.starts_with("$ ")
        || text.contains("$ pgbench")
        || text.contains("> cat ");
    prompt || text.contains("pgbench ") || text.starts_with('\\') || text.ends_with(';')
}

/// Runs of the same parameters with nothing but commands and blank lines between them: repeats, as a loop prints them.
fn groups(scan: &Scan<'_>, runs: &[PgbenchRun], commands: &[Command]) -> Vec<Vec<usize>> {
    let started_by = |run: &PgbenchRun| commands.iter().rev().find(|c| c.line < run.line);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let follows = i.checked_sub(1).is_some_and(|before| {
            let before = &runs[before];
            let between = scan
                .lines
                .iter()
                .enumerate()
                .filter(|(_, l)| l.number > before.last_line && l.number < run.line);
            let options = |run| started_by(run).map(|c| c.words.as_str());
            before.parameters() == run.parameters()
                && options(before) == options(run)
                // What else stands there, and be it SQL, may have changed something.
                && between.into_iter().all(|(at, l)| {
                    let text = l.text.trim();
                    text.is_empty() || scan.read[at] || text.starts_with("```") || counts_runs(text)
                })
        });
        match groups.last_mut() {
            Some(group) if follows => group.push(i),
            _ => groups.push(vec![i]),
        }
    }
    groups
}

/// `Run 2`, `=== 3rd repeat ===`: a heading that only counts.
fn counts_runs(text: &str) -> bool {
    const NAMES: &[&str] =
        &["run", "repeat", "iteration", "round", "pass", "trial", "durchlauf", "lauf", "прогон"];
    let lower = claims::name_of(text).to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let number = |word: &str| {
        let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
        !digits.is_empty() && digits.len() <= 2 && digits.bytes().all(|b| b.is_ascii_digit())
    };
    words.len() == 2 && words.iter().any(|w| number(w)) && words.iter().any(|w| NAMES.contains(w))
}

/// Tells lines that seem to hold a figure of a benchmark and that no recogniser read.
fn leftover(scan: &mut Scan<'_>) {
    const SIGNS: &[&str] = &["tps", "ops/sec", "latency average", "latency stddev"];
    let mut told = Vec::new();
    for (line, read) in scan.lines.iter().zip(&scan.read) {
        let lower = line.text.to_lowercase();
        let number = lower.contains(|c: char| c.is_ascii_digit());
        if *read || !number || lower.len() > 2000 {
            continue;
        }
        let words = || lower.split(|c: char| !(c.is_alphanumeric() || c == '/'));
        if table::names_tps(&lower) || SIGNS[1..].iter().any(|sign| lower.contains(sign)) {
            told.push((line.number, "it seems to hold a figure, and no recogniser reads it".to_owned()));
        } else if lower.contains('%')
            && words()
                .any(|w| matches!(w, "performance" | "výkonu" | "leistung" | "性能" | "производительность"))
        {
            told.push((line.number, "a percentage, and it is not clear of what".to_owned()));
        }
    }
    for (line, why) in told {
        scan.not_understood(line, why);
    }
}
