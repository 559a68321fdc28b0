//! Storage: mount options, `zfs get`, caches and what protects them.

use serde::{Deserialize, Serialize};

use super::Scan;

/// Something that the report says of its storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageFact {
    /// What.
    pub what: StorageWhat,
    /// The words or the option that say it.
    pub words: String,
    /// Where it stands in the file, from 1.
    pub line: usize,
}

/// What can be said of a storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
        /// Its name.
        property: String,
        /// Its value.
        value: String,
    },
}

/// Finds all.
pub(super) fn find(scan: &mut Scan<'_>) -> Vec<StorageFact> {
    let mut found = Vec::new();
    let mut zfs = false;
    for (at, line) in scan.lines.iter().enumerate() {
        let text = line.text.trim();
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut add = |what, words: &str| {
            found.push(StorageFact { what, words: words.to_owned(), line: line.number });
            scan.read[at] = true;
        };
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
            // `zfs set sync=disabled tank`
            ["zfs", "set", assignments @ ..] | ["#", "zfs", "set", assignments @ ..] => {
                for (property, value) in assignments.iter().filter_map(|w| w.split_once('=')) {
                    add(StorageWhat::Zfs { property: property.to_owned(), value: value.to_owned() }, text);
                }
                continue;
            }
            _ => zfs = false,
        }
        let lower = words.join(" ").to_lowercase();
        if let Some(words) = barriers_off(&lower) {
            add(StorageWhat::BarriersOff, words);
        } else if option(&lower, &["barrier=1", "barrier"]) && lower.contains(" type ") {
            add(StorageWhat::BarriersOn, "barrier=1");
        }
        if let Some((on, words)) = write_cache(&lower) {
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
    const SOURCES: &[&str] = &["-", "local", "default", "temporary", "received"];
    if let Some(at) = words.iter().position(|word| *word == "inherited") {
        return (at > 0).then_some(at);
    }
    let last = words.len().checked_sub(1).filter(|last| *last > 0)?;
    SOURCES.contains(&words[last]).then_some(last)
}

/// Whether one of `options` stands among others, parted by commas or blanks.
fn option(lower: &str, options: &[&str]) -> bool {
    lower
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '=' | '_' | '-')))
        .any(|word| options.contains(&word))
}

fn barriers_off(lower: &str) -> Option<&'static str> {
    for words in ["nobarrier", "barrier=0", "barrier=none"] {
        if option(lower, &[words]) {
            return Some(words);
        }
    }
    const PROSE: &[&str] = &[
        "barriers off",
        "barriers disabled",
        "barriers are off",
        "barriers were off",
        "barriers are disabled",
        "barriers turned off",
        "barriers were disabled",
        "without barriers",
        "no barriers",
        "vypnuté bariéry",
        "bariéry vypnuté",
        "vypnute bariery",
        "ohne barrieren",
        "barrieren aus",
        "барьеры отключены",
        "без барьеров",
        "关闭barrier",
        "关闭 barrier",
    ];
    PROSE.iter().find(|words| lower.contains(**words)).copied()
}

/// Whether a write cache is said to be on or off, and in which words.
fn write_cache(lower: &str) -> Option<(bool, &'static str)> {
    // A journal mode of ext3 and ext4, and a knob of virtual machines, are not the drive's cache.
    let lower = lower.replace("data=writeback", "").replace("cache=writeback", "");
    const ON: &[&str] = &[
        "write cache is: enabled",
        "write-caching = 1",
        "write cache: enabled",
        "write cache enabled",
        "write cache on",
        "write cache is on",
        "current cache policy: writeback",
        "write-back cache",
        "write back cache",
        "writeback cache",
        "write-back mode",
        "write policy: wb",
        "改成write back",
        "启用raid写缓存",
        "开启了raid卡写缓存",
        "启用写缓存",
        "开启写缓存",
        "schreibcache an",
        "schreibcache ein",
        "schreibcache aktiviert",
        "кэш записи включен",
        "zapnutá write cache",
    ];
    const OFF: &[&str] = &[
        "write cache is: disabled",
        "write-caching = 0",
        "write cache: disabled",
        "write cache disabled",
        "write cache off",
        "write cache is off",
        "current cache policy: writethrough",
        "改成write through",
        "不启用raid写缓存",
        "关闭raid cache",
        "关闭写缓存",
        "schreibcache aus",
        "кэш записи выключен",
    ];
    // What turns it off contains some of what turns it on.
    let said = |all: &'static [&'static str]| all.iter().find(|words| lower.contains(**words)).copied();
    said(OFF).map(|words| (false, words)).or_else(|| said(ON).map(|words| (true, words)))
}

/// What keeps a cache's contents, unless the line denies it.
fn protection(lower: &str) -> Option<&'static str> {
    const DENIED: &[&str] = &[
        "no ", "not ", "without", "lack", "ohne ", "kein", "bez ", "без ", "нет ", "没有", "无", "missing",
        "fail",
    ];
    const WORDS: &[&str] = &[
        "battery",
        "batterie",
        "capacitor",
        "supercap",
        "power loss protection",
        "power-loss protection",
        "power-loss-protection",
        "power loss data protection",
        "battery-backed",
        "flash-backed",
        "bbwc",
        "fbwc",
        "bateri",
        "батаре",
        "电池",
        "电容",
        "掉电保护",
        "kondensator",
    ];
    if DENIED.iter().any(|word| lower.contains(word)) {
        return None;
    }
    let short = ["bbu", "plp"].into_iter().find(|word| option(lower, &[word]));
    WORDS.iter().find(|words| lower.contains(**words)).copied().or(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_whole_words() {
        assert_eq!(barriers_off("rw,noatime,nobarrier,logbufs=8"), Some("nobarrier"));
        assert_eq!(barriers_off("/dev/sda1 / ext4 rw,barrier=0 0 0"), Some("barrier=0"));
        assert_eq!(barriers_off("rw,barrier=1"), None);
        assert_eq!(barriers_off("the nobarriers band"), None);
    }

    #[test]
    fn a_journal_mode_is_no_write_cache_and_a_denied_battery_protects_nothing() {
        assert_eq!(write_cache("data=writeback,nobarrier"), None);
        assert!(write_cache("write cache is: enabled").unwrap().0);
        assert!(!write_cache("(改成write through, 相当于不启用raid写缓存)").unwrap().0);
        assert!(write_cache("(改成write back, 相当于启用raid写缓存)").unwrap().0);
        assert!(protection("raid card with bbu").is_some());
        assert_eq!(protection("the controller has no battery"), None);
    }
}
