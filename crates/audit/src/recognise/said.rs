//! What prose says of runs and settings: `with fsync off`, `best of 3 runs`, `16 GB of memory`,
//! clients that gave up.
//!
//! A sentence is believed only where it is short, states, and neither asks, advises nor makes
//! conditions.

use std::collections::BTreeSet;

use super::columns::{names_time, names_tps};
use super::scan::Scan;
use crate::words::{self, Words};

/// What prose says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Said {
    /// Settings that are off by what is said.
    pub(crate) off: Vec<SettingOff>,
    /// Lines that say that only the best of several runs is shown, with the words.
    pub(crate) best: Vec<(usize, String)>,
    /// Where it is said that each figure is made of several runs.
    pub(crate) repeats: Option<usize>,
    /// Clients of pgbench that were aborted: their lines.
    pub(crate) aborted: Vec<usize>,
    /// The memory of the machine (GB), and where it is said.
    pub(crate) memory: Option<(f64, usize)>,
    /// Scales that `pgbench -i` made.
    pub(crate) scales: Vec<f64>,
    /// Filesystems of which it is told how they were made or mounted, in lower case.
    pub(crate) described: BTreeSet<&'static str>,
}

/// A setting that is off by what is said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SettingOff {
    pub(crate) name: &'static str,
    pub(crate) line: usize,
    /// Whether what stands beside it was measured without.
    pub(crate) varied: bool,
}

/// Settings that are believed in prose, and what people call them.
const SETTINGS: &[(&str, &[&str])] = &[
    ("fsync", &["fsync"]),
    ("synchronous_commit", &["synchronous_commit", "synchronous commit", "sync_commit"]),
    ("full_page_writes", &["full_page_writes", "full page writes", "full-page writes"]),
];

/// Filesystems that reports compare.
const FILESYSTEMS: Words = Words("ext2|ext3|ext4|xfs|btrfs|zfs|jfs|reiserfs|f2fs");

/// Words of a line that tells how a filesystem was made: on which devices, with which options.
const LAYOUT: Words = Words("mkfs|mount|/dev/|mdadm|lvcreate|raid|stripe|fstab|agcount|xfs_info");

/// Returns the filesystems that `lower` names as words of their own.
pub(crate) fn named_filesystems(lower: &str) -> impl Iterator<Item = &'static str> {
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    let words: BTreeSet<&str> = words.collect();
    FILESYSTEMS.iter().filter(move |name| words.contains(name))
}

/// Lines longer than this say too much.
const LONGEST: usize = 200;

pub(super) fn find(scan: &Scan<'_>) -> Said {
    let mut said = Said::default();
    for (at, line) in scan.lines.iter().enumerate() {
        let text = line.text.trim();
        let lower = text.to_lowercase();
        if lower.contains("pgbench")
            && let Some(scale) = super::command::initialised_scale(text)
        {
            said.scales.push(scale);
        }
        if LAYOUT.any_in(&lower) {
            said.described.extend(named_filesystems(&lower));
        }
        let aborted = lower.split_once("client ").is_some_and(|(_, rest)| {
            let (number, rest) = rest.split_once(' ').unwrap_or_default();
            !number.is_empty()
                && number.bytes().all(|b| b.is_ascii_digit())
                && rest.starts_with("aborted in ")
        });
        if aborted {
            said.aborted.push(line.number);
        }
        if said.memory.is_none() {
            said.memory = memory(&lower).map(|gb| (gb, line.number));
        }
        if said.repeats.is_none() && line.cells.is_empty() && repeats(&lower) {
            said.repeats = Some(line.number);
        }
        if scan.read[at] && line.cells.is_empty() {
            continue;
        }
        for (name, aliases) in SETTINGS {
            if let Some(varied) = setting_off(scan, at, &lower, aliases) {
                said.off.push(SettingOff { name, line: line.number, varied });
            }
        }
        if let Some(words) = best_of(&lower) {
            said.best.push((line.number, words));
        }
    }
    said
}

/// Whether the line says that a setting is off; and whether rows beside it, or the sentence itself,
/// say otherwise.
fn setting_off(scan: &Scan<'_>, at: usize, lower: &str, aliases: &[&str]) -> Option<bool> {
    let line = &scan.lines[at];
    let [label, ..] = line.cells.as_slice() else {
        // `#fsync = off` is a comment of a configuration file; `## fsync = off` heads what follows.
        let comment = lower.starts_with('#') && !lower.starts_with("##");
        let said = lower.chars().count() <= LONGEST
            && !comment
            && !is_advice(lower)
            && states_off(lower, aliases);
        return said.then(|| {
            aliases
                .iter()
                .any(|a| lower.contains(&format!("{a} = on")) || lower.contains(&format!("{a}=on")))
        });
    };
    // What a row measured stands in its label.
    let measured = |at: usize| {
        let cells = &scan.lines[at].cells;
        cells.len() >= 2
            && cells[1..].iter().any(|c| c.text.starts_with(|c: char| c.is_ascii_digit()))
    };
    if !measured(at) || !states_off(&label.text.to_lowercase(), aliases) {
        return None;
    }
    let end = |step: &mut dyn Iterator<Item = usize>| {
        step.take_while(|i| !scan.lines[*i].cells.is_empty())
            .filter(|i| measured(*i))
            .collect::<Vec<_>>()
    };
    let head = (0..at).rev().take_while(|i| !scan.lines[*i].cells.is_empty()).last()?;
    let of_figures =
        scan.lines[head].cells[1..].iter().any(|c| names_tps(&c.text) || names_time(&c.text));
    if !of_figures {
        return None;
    }
    let mut rows = end(&mut (0..at).rev());
    rows.extend(end(&mut (at + 1..scan.lines.len())));
    Some(rows.iter().any(|i| !states_off(&scan.lines[*i].cells[0].text.to_lowercase(), aliases)))
}

/// What is conditional, asked, advised or warned of was not done.
fn is_advice(lower: &str) -> bool {
    const WORDS: Words = Words(
        "could|might|recommend|avoid|danger|unsafe|risk|unless|not |n't|when |need|you |must|\
         consider|warning|example|e.g.|instead|option|allow|means|faster than|docs|default|\
         nicht |sollte|kann |не |нельзя|можно|риск|опас|如果|不要|建议|可以|不",
    );
    super::storage::is_conditional(lower) || WORDS.any_in(lower)
}

/// Whether one of the setting's names stands before a word for off, or behind a verb that turned it
/// off.
fn states_off(lower: &str, aliases: &[&str]) -> bool {
    const OFF: Words = Words("off|disabled|выкл|отключ|关闭|aus|ausgeschaltet|désactivé|vypnut");
    const BETWEEN: Words = Words("=|:|to |is |was |set |turned |switched |been ");
    const VERBS: Words = Words(
        "disabled |turned off |switched off |отключили |отключил |выключил |выключили |关闭|\
         vypnul ",
    );
    aliases.iter().any(|alias| {
        lower.match_indices(alias).any(|(start, _)| {
            let (before, after) = (&lower[..start], &lower[start + alias.len()..]);
            let joined = |c: Option<char>| {
                c.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '('))
            };
            if joined(before.chars().next_back().filter(|c| *c != '('))
                || joined(after.chars().next())
            {
                return false;
            }
            let before = before.trim_end_matches(['`', '\'', '"']);
            let mut after = after.trim_start_matches(['`', '\'', '"', ' ']);
            while let Some(rest) = BETWEEN.iter().find_map(|word| after.strip_prefix(word)) {
                after = rest.trim_start_matches(['`', '\'', '"', ' ']);
            }
            let off = OFF.iter().any(|word| {
                let inflected = !word.is_ascii();
                after
                    .strip_prefix(word)
                    .is_some_and(|rest| inflected || !joined(rest.chars().next()))
            });
            off || VERBS.iter().any(|verb| before.ends_with(verb))
        })
    })
}

/// `best of 3`, `the best of three runs`: that only the best was kept.
fn best_of(lower: &str) -> Option<String> {
    const BEST: Words = Words("best|fastest|highest|maximum|лучший|лучшее|лучшие|nejlepší|bester");
    const OF: Words = Words("of|out|from|among|the|all|my|our|из|z|ze|aus|von");
    const NUMBERS: Words = Words("two|three|four|five|six|seven|ten|трёх|трех|пяти|tří|drei|fünf");
    const WHAT: Words = Words("result|results|score|value|run|tps|time|figure|результат|значение");
    if lower.chars().count() > LONGEST || lower.contains('?') || lower.contains("should") {
        return None;
    }
    if let Some(words) = Words("取最好|取最优|取最高").first_in(lower) {
        return Some(words.to_owned());
    }
    let words: Vec<&str> = words::split(lower);
    let at = words.iter().position(|word| BEST.has(word))?;
    let mut rest = words[at + 1..].iter().copied().peekable();
    while rest.next_if(|w| WHAT.has(w)).is_some() {}
    let mut linked = false;
    while rest.next_if(|w| OF.has(w)).is_some() {
        linked = true;
    }
    let number = rest.next().filter(|w| {
        linked && (NUMBERS.has(w) || w.parse().is_ok_and(|n: u32| (2..=100).contains(&n)))
    })?;
    // `best of 2 worlds` and `highest of 3 systems` are of something else.
    let what = rest.next();
    const RUNS: Words = Words(
        "run|runs|repeat|repeats|trial|trials|attempt|attempts|iterations|tests|times|tries|\
         measurements|прогонов|запусков|измерений|läufen|běhů|pokusů|results",
    );
    let fits = what.map_or(lower.ends_with(number) || lower.contains("best of"), |w| RUNS.has(w));
    (fits && (what.is_some() || names_tps(lower) || lower.contains("best of")))
        .then(|| format!("{} of {number}", words[at]))
}

/// `each test was run 3 times`, `the median of five runs`: that figures are made of several
/// measurements.
fn repeats(lower: &str) -> bool {
    const MADE: Words = Words(
        "average of|mean of|median of|averaged over|averaged across|repeated|среднее из|усредн|\
         медиан|mittel aus",
    );
    const RUNS: Words = Words(
        "runs|times|iterations|repeats|repetitions|trials|раз|раза|прогонов|запусков|прогона",
    );
    const NUMBERS: Words = Words("two|three|four|five|six|seven|eight|ten|два|три|пять");
    const EACH: Words =
        Words("each|every|per|ran|run|executed|repeated|каждый|каждая|запускал|запуск|по");
    if lower.chars().count() > LONGEST
        || Words("should|?|faster|slower|higher|recommend|would").any_in(lower)
    {
        return false;
    }
    let words: Vec<&str> = words::split(lower);
    let counted = words.windows(2).any(|pair| {
        RUNS.has(pair[1])
            && (NUMBERS.has(pair[0]) || pair[0].parse().is_ok_and(|n: u32| (2..=100).contains(&n)))
    });
    counted && (MADE.any_in(lower) || words.iter().any(|w| EACH.has(w)))
}

/// `16 GB RAM`, `Memory: 15Gi`: the machine's memory in GB.
fn memory(lower: &str) -> Option<f64> {
    let named =
        ["ram", "memory", "память", "озу", "内存", "speicher", "paměť"].iter().any(|name| {
            lower.split(|c: char| !c.is_alphanumeric()).any(|w| w == *name)
                || !name.is_ascii() && lower.contains(name)
        });
    let other = Words("work_mem|shared|used|maintenance|cache|per ").any_in(lower);
    if !named || other || lower.chars().count() > LONGEST {
        return None;
    }
    let spaced =
        ["gib", "gb", "gi"].iter().fold(lower.to_owned(), |text, unit| text.replace(unit, " gb "));
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let figure = |pair: &&[&str]| pair[1] == "gb" && pair[0].parse::<f64>().is_ok();
    let mut found = words.windows(2).filter(figure).filter_map(|pair| pair[0].parse::<f64>().ok());
    // Of several nobody says which it is.
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_off_where_a_sentence_states_it() {
        let off = |text: &str| !is_advice(text) && states_off(text, SETTINGS[0].1);
        for said in [
            "measured with fsync off",
            "fsync disabled",
            "we disabled fsync for this",
            "run 2: fsync=off",
            "`fsync` = `off`",
        ] {
            assert!(off(said), "{said}");
        }
        for other in [
            "if fsync is off, data is lost",
            "never turn fsync off",
            "pg_test_fsync off",
            "fsync offers safety",
            "fsync on",
            "what with fsync off?",
            "fsync is expensive",
            "fsync-off is dangerous",
        ] {
            assert!(!off(other), "{other}");
        }
    }

    #[test]
    fn the_best_of_several_runs_is_told_from_other_bests() {
        for said in ["best of 3 runs", "the best result of five runs is shown", "tps, best of 5"] {
            assert!(best_of(said).is_some(), "{said}");
        }
        for other in [
            "the best of both worlds",
            "best practices",
            "best of luck",
            "the highest of 3 systems",
            "is it the best of 3 runs?",
        ] {
            assert_eq!(best_of(other), None, "{other}");
        }
    }

    #[test]
    fn figures_of_several_runs_are_told_from_other_numbers() {
        for said in [
            "each test was run 3 times",
            "the median of five runs",
            "3 iterations per configuration",
        ] {
            assert!(repeats(said), "{said}");
        }
        for other in
            ["xfs is 3 times faster", "each run takes 60 s", "should be repeated 3 times", "3 runs"]
        {
            assert!(!repeats(other), "{other}");
        }
    }

    #[test]
    fn the_memory_of_the_machine_is_read_where_one_is_named() {
        assert_eq!(memory("memory: 15gi"), Some(15.0));
        assert_eq!(memory("- 16 gb ram"), Some(16.0));
        assert_eq!(memory("8 gb ram, later 16 gb ram"), None);
        assert_eq!(memory("maintenance memory 2 gb"), None);
    }
}
