//! Storage: mount options, `zfs get`, caches and what protects them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::scan::Scan;
use crate::document::Line;
use crate::words::{self, Words};

/// Something that the report says of its storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StorageFact {
    /// Kind of the fact.
    pub what: StorageWhat,
    /// The words or the option that say it.
    pub words: String,
    /// Where it stands in the file, from 1.
    pub line: usize,
}

/// Kind of a fact on storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StorageWhat {
    /// A filesystem without write barriers.
    BarriersOff,
    /// One with them, in so many words.
    BarriersOn,
    /// A cache that holds writes is on.
    WriteCacheOn,
    /// A cache holds no writes.
    WriteCacheOff,
    /// Caches keep their contents through a power loss.
    PowerLossProtection,
    /// A property of ZFS.
    Zfs {
        /// Name of the property.
        property: String,
        /// Value of the property.
        value: String,
    },
}

/// Filesystems that reports compare.
const FILESYSTEMS: Words = Words("ext2|ext3|ext4|xfs|btrfs|zfs|jfs|reiserfs|f2fs");

/// Returns the filesystems that `lower` names as words of their own.
pub(crate) fn named_filesystems(lower: &str) -> impl Iterator<Item = &'static str> {
    let words: BTreeSet<&str> = words::split(lower).into_iter().collect();
    FILESYSTEMS.iter().filter(move |name| words.contains(name))
}

/// Returns the filesystems of which a line tells how they were made: on which devices, with which
/// options.
pub(super) fn described_filesystems(scan: &Scan<'_>) -> BTreeSet<&'static str> {
    const LAYOUT: Words =
        Words("mkfs|mount|/dev/|mdadm|lvcreate|raid|stripe|fstab|agcount|xfs_info");
    let lines = scan.lines.iter().map(|line| line.text.to_lowercase());
    let told = lines.filter(|lower| LAYOUT.any_in(lower));
    told.flat_map(|lower| named_filesystems(&lower).collect::<Vec<_>>()).collect()
}

/// Finds all.
pub(super) fn find(scan: &mut Scan<'_>) -> Vec<StorageFact> {
    let mut found = Vec::new();
    let mut zfs = false;
    for (at, line) in scan.lines.iter().enumerate() {
        if scan.read[at] {
            continue;
        }
        let text = line.text.trim();
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut add = |what, words: &str| {
            found.push(StorageFact { what, words: words.to_owned(), line: line.number });
            scan.read[at] = true;
        };
        // `zfs set sync=disabled tank`, `zfs create -o sync=disabled tank/pg`,
        // `zpool create -O sync=disabled tank disks`
        let prompt = words.iter().take_while(|w| matches!(**w, "#" | "$" | "sudo" | "-")).count();
        if let [program @ ("zfs" | "zpool"), action @ ("set" | "create"), options @ ..] =
            &words[prompt..]
        {
            let flag = if *program == "zfs" { "-o" } else { "-O" };
            let is_property = |at: usize| *action == "set" || at > 0 && options[at - 1] == flag;
            for (at, option) in options.iter().enumerate() {
                if let Some((property, value)) = option.split_once('=').filter(|_| is_property(at))
                {
                    add(
                        StorageWhat::Zfs { property: property.to_owned(), value: value.to_owned() },
                        text,
                    );
                }
            }
            zfs = false;
            continue;
        }
        match words.as_slice() {
            ["NAME", "PROPERTY", "VALUE", ..] => {
                zfs = true;
                scan.read[at] = true;
                continue;
            }
            [_, property, rest @ ..] if zfs && source(rest).is_some() => {
                let value = rest[..source(rest).unwrap_or_default()].join(" ");
                add(StorageWhat::Zfs { property: (*property).to_owned(), value }, text);
                continue;
            }
            _ => zfs = false,
        }
        let lower = words.join(" ").to_lowercase();
        if let Some(words) =
            mounted_without_barriers(&lower).or_else(|| find_stated(line, &lower, BARRIERS_OFF))
        {
            add(StorageWhat::BarriersOff, words);
        } else if option(&lower, &["barrier=1", "barrier"]) && lower.contains(" type ") {
            add(StorageWhat::BarriersOn, "barrier=1");
        }
        let cache = shown_cache(&lower).or_else(|| stated_cache(line, &lower));
        if let Some((on, words)) = cache {
            add(if on { StorageWhat::WriteCacheOn } else { StorageWhat::WriteCacheOff }, words);
        }
        if let Some(words) = protection(&lower) {
            add(StorageWhat::PowerLossProtection, words);
        }
    }
    found
}

/// Where a row of `zfs get` says whence its value is, behind the value.
fn source(words: &[&str]) -> Option<usize> {
    const SOURCES: Words = Words("-|local|default|temporary|received");
    if let Some(at) = words.iter().position(|word| *word == "inherited") {
        return (at > 0).then_some(at);
    }
    let last = words.len().checked_sub(1).filter(|last| *last > 0)?;
    SOURCES.has(words[last]).then_some(last)
}

/// Whether one of `options` stands among others, parted by commas or blanks.
fn option(lower: &str, options: &[&str]) -> bool {
    lower
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '=' | '_' | '-')))
        .any(|word| options.contains(&word))
}

/// An option among others, or behind `-o`: a word in a sentence about such options is none.
fn mounted_without_barriers(lower: &str) -> Option<&'static str> {
    const OPTIONS: Words = Words("nobarrier|barrier=0|barrier=none");
    let mut words = lower.split([' ', '(', ')', '`', '"', '\'', '|']).filter(|w| !w.is_empty());
    let mut before = "";
    words.find_map(|word| {
        let options: Vec<&str> = word.split(',').filter(|o| !o.is_empty()).collect();
        let mounted = options.len() > 1 || before == "-o";
        before = word;
        OPTIONS.iter().find(|option| mounted && options.contains(option))
    })
}

/// Whether a line speaks of what may be, is asked or forbidden, and not of what was done.
pub(super) fn is_conditional(lower: &str) -> bool {
    const WORDS: Words =
        Words("if |should|never|don't|do not|would|may |can |?| or |some |wenn |если ");
    WORDS.any_in(lower)
}

/// Longer lines, tables, and what is conditional or forbidden speak of something else than of what
/// was done.
fn find_stated(line: &Line, lower: &str, phrases: Words) -> Option<&'static str> {
    const LONGEST: usize = 160;
    if !line.cells.is_empty() || lower.chars().count() > LONGEST || is_conditional(lower) {
        return None;
    }
    phrases.first_in(lower)
}

const BARRIERS_OFF: Words = Words(
    "barriers off|barriers disabled|barriers are off|barriers were off|barriers are disabled|\
     barriers turned off|barriers were disabled|without barriers|no barriers|vypnuté bariéry|\
     bariéry vypnuté|vypnute bariery|ohne barrieren|barrieren aus|барьеры отключены|\
     без барьеров|关闭barrier|关闭 barrier",
);

/// Whether a program shows a write cache that is on or off.
fn shown_cache(lower: &str) -> Option<(bool, &'static str)> {
    const ON: Words =
        Words("write cache is: enabled|write-caching = 1|current cache policy: writeback");
    const OFF: Words =
        Words("write cache is: disabled|write-caching = 0|current cache policy: writethrough");
    either(lower, ON, OFF, |phrases| phrases.first_in(lower))
}

/// Whether a sentence says that a write cache was on or off.
fn stated_cache(line: &Line, lower: &str) -> Option<(bool, &'static str)> {
    const ON: Words = Words(
        "write cache: enabled|write cache enabled|write cache on|write cache is on|\
         write cache is enabled|with write-back cache|write-back cache enabled|\
         behind a write-back cache|改成write back|启用raid写缓存|开启了raid卡写缓存|启用写缓存|\
         开启写缓存|schreibcache an|schreibcache ein|schreibcache aktiviert|кэш записи включен|\
         zapnutá write cache",
    );
    const OFF: Words = Words(
        "write cache: disabled|write cache disabled|write cache off|write cache is off|\
         write cache is disabled|改成write through|不启用raid写缓存|关闭raid cache|关闭写缓存|\
         schreibcache aus|кэш записи выключен",
    );
    either(lower, ON, OFF, |phrases| find_stated(line, lower, phrases))
}

/// Reads a switch: phrases that turn a cache off contain some that turn it on. A line that says
/// both says neither.
fn either(
    lower: &str,
    on: Words,
    off: Words,
    said: impl Fn(Words) -> Option<&'static str>,
) -> Option<(bool, &'static str)> {
    if lower.contains("on or off") || lower.contains("on/off") {
        return None;
    }
    said(off).map(|words| (false, words)).or_else(|| said(on).map(|words| (true, words)))
}

/// Finds the thing that keeps a cache's contents, unless the line denies it.
fn protection(lower: &str) -> Option<&'static str> {
    const DENIED: Words =
        Words("no |not |without|lack|ohne |kein|bez |без |нет |没有|无|missing|fail");
    const WORDS: Words = Words(
        "battery|batterie|capacitor|supercap|power loss protection|power-loss protection|\
         power-loss-protection|power loss data protection|battery-backed|flash-backed|bbwc|fbwc|\
         bateri|батаре|电池|电容|掉电保护|kondensator",
    );
    if DENIED.any_in(lower) {
        return None;
    }
    let short = ["bbu", "plp"].into_iter().find(|word| option(lower, &[word]));
    WORDS.first_in(lower).or(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_whole_words_among_options() {
        for off in [
            "rw,noatime,nobarrier,logbufs=8",
            "/dev/sda1 / ext4 rw,barrier=0 0 0",
            "mount -o nobarrier /dev/sda /mnt",
        ] {
            assert!(mounted_without_barriers(off).is_some(), "{off}");
        }
        for other in [
            "rw,barrier=1",
            "xfs refuses nobarrier, barrier, delaylog",
            "mounted `barrier=0` or `nobarrier`",
        ] {
            assert_eq!(mounted_without_barriers(other), None, "{other}");
        }
    }

    #[test]
    fn what_a_sentence_asks_or_advises_was_not_done() {
        let line = Line::default();
        assert!(
            find_stated(&line, "• vypnuté bariéry. lvm je nepodporuje.", BARRIERS_OFF).is_some()
        );
        for other in ["what if barriers are off?", "never run with barriers disabled"] {
            assert_eq!(find_stated(&line, other, BARRIERS_OFF), None, "{other}");
        }
        let row = Line { cells: vec![crate::document::Cell::default(); 2], ..Line::default() };
        assert_eq!(find_stated(&row, "barriers off", BARRIERS_OFF), None);
    }

    #[test]
    fn a_journal_mode_is_no_write_cache_and_a_denied_battery_protects_nothing() {
        let line = Line::default();
        let cache = |lower: &str| {
            shown_cache(lower).or_else(|| stated_cache(&line, lower)).map(|(on, _)| on)
        };
        assert_eq!(cache("rw,data=writeback,nobarrier"), None);
        assert_eq!(cache("some drives are write-through while some are write-back cache"), None);
        assert_eq!(cache("raid write cache on or off"), None);
        assert_eq!(cache("write cache is: enabled"), Some(true));
        assert_eq!(cache("(改成write through, 相当于不启用raid写缓存)"), Some(false));
        assert_eq!(cache("(改成write back, 相当于启用raid写缓存)"), Some(true));
        assert!(protection("raid card with bbu").is_some());
        assert_eq!(protection("the controller has no battery"), None);
    }
}
