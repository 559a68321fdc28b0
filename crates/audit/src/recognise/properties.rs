//! Properties of datasets, mounts and servers, each as it is asked for or as a program lists it.
//!
//! Other recognisers have read these lines already; this one reads them once more, and marks none.

use super::scan::Scan;
use super::settings::Setting;
use super::storage::{StorageFact, StorageWhat};
use crate::words::Words;

/// A property's name and value at one place of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Property {
    pub(crate) kind: PropertyKind,
    /// The dataset or the mounted device; empty where the report does not name it.
    pub(crate) subject: String,
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) line: usize,
    pub(crate) origin: Origin,
}

/// Whose property it is. Properties of different kinds are never compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PropertyKind {
    Zfs,
    Mount,
    Postgres,
}

/// How a report comes to name a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A command or a configuration file sets it.
    Set,
    /// A line of the text has `name = value`.
    Stated,
    /// A program lists it.
    Listed,
    /// A program lists it as set on this very subject, so that no parent's value reaches it.
    ListedLocal,
}

impl Origin {
    pub(crate) fn is_listed(self) -> bool {
        matches!(self, Self::Listed | Self::ListedLocal)
    }
}

/// Properties of ZFS that reports state, as `name = value` on a line of its own.
const OF_ZFS: Words = Words(
    "atime|ashift|checksum|compression|copies|dedup|logbias|primarycache|recordsize|\
     redundant_metadata|relatime|secondarycache|sync|xattr",
);

/// Finds all, in the order of lines.
pub(super) fn find(
    scan: &Scan<'_>,
    storage: &[StorageFact],
    settings: &[Setting],
) -> Vec<Property> {
    let mut found: Vec<Property> = storage.iter().filter_map(of_zfs).collect();
    found.extend(settings.iter().map(of_postgres));
    for line in scan.lines.iter().filter(|line| line.cells.is_empty()) {
        let text = line.text.trim().trim_start_matches(['-', '*', '•', '#', '$', ' ']);
        found.extend(read_stated(text, line.number));
        found.extend(read_mount(text, line.number));
    }
    found.sort_by_key(|property| property.line);
    found
}

fn of_zfs(fact: &StorageFact) -> Option<Property> {
    let StorageWhat::Zfs { property, value } = &fact.what else { return None };
    let is_set = fact.words.contains('=');
    let is_action = |word: &&str| matches!(*word, "set" | "create");
    // Behind the command: what is neither an option nor an assignment.
    let mut words = fact.words.split_whitespace().skip_while(|word| is_set && !is_action(word));
    let is_subject =
        |word: &&str| !(is_set && (is_action(word) || word.starts_with('-') || word.contains('=')));
    let origin = if is_set {
        Origin::Set
    } else if fact.words.ends_with(" local") || fact.words.ends_with(" received") {
        Origin::ListedLocal
    } else {
        Origin::Listed
    };
    Some(Property {
        kind: PropertyKind::Zfs,
        subject: words.find(is_subject).unwrap_or_default().to_owned(),
        name: property.clone(),
        value: value.clone(),
        line: fact.line,
        origin,
    })
}

fn of_postgres(setting: &Setting) -> Property {
    Property {
        kind: PropertyKind::Postgres,
        subject: String::new(),
        name: setting.name.to_ascii_lowercase(),
        value: setting.value.clone(),
        line: setting.line,
        origin: if setting.is_shown { Origin::Listed } else { Origin::Set },
    }
}

/// `recordsize = 8K`, alone on its line or with a remark in brackets or behind `#`.
fn read_stated(text: &str, line: usize) -> Option<Property> {
    let (name, rest) = text.split_once('=')?;
    let name = name.trim();
    let value = rest.split(['#', '(', '（']).next()?.trim();
    let is_word =
        !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    (OF_ZFS.has(name) && is_word).then(|| Property {
        kind: PropertyKind::Zfs,
        subject: String::new(),
        name: name.to_owned(),
        value: value.to_owned(),
        line,
        origin: Origin::Stated,
    })
}

/// `mount -o noatime /dev/sdb1 /data`, a line of fstab, and what `mount` prints.
fn read_mount(text: &str, line: usize) -> Vec<Property> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (device, options, origin) = match words.as_slice() {
        ["sudo", "mount", rest @ ..] | ["mount", rest @ ..] => {
            let option = rest.iter().position(|word| *word == "-o").and_then(|at| rest.get(at + 1));
            let device = rest.iter().find(|word| word.starts_with("/dev/"));
            let (Some(option), Some(device)) = (option, device) else { return Vec::new() };
            (*device, *option, Origin::Set)
        }
        [device, "on", _, "type", _, options, ..] if options.starts_with('(') => {
            (*device, options.trim_matches(['(', ')']), Origin::Listed)
        }
        [device, place, _, options, dump, pass]
            if device.starts_with("/dev/")
                && place.starts_with('/')
                && [dump, pass].iter().all(|n| n.parse::<u8>().is_ok()) =>
        {
            (*device, *options, Origin::Set)
        }
        _ => return Vec::new(),
    };
    let property = |(name, value): (&str, &str)| Property {
        kind: PropertyKind::Mount,
        subject: device.to_owned(),
        name: name.to_owned(),
        value: value.to_owned(),
        line,
        origin,
    };
    options.split(',').filter_map(option).map(property).collect()
}

/// A mount option as name and value. Words that exclude each other share a name.
fn option(text: &str) -> Option<(&str, &str)> {
    match text {
        "barrier" | "barrier=1" => Some(("barrier", "1")),
        "nobarrier" | "barrier=0" | "barrier=none" => Some(("barrier", "0")),
        "noatime" | "relatime" | "strictatime" => Some(("access times", text)),
        _ => text.split_once('=').filter(|(_, value)| !value.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_from_commands_fstab_and_the_list_of_mounts() {
        let read = |text: &str| -> Vec<(String, String, Origin)> {
            let all = read_mount(text, 1).into_iter();
            all.map(|p| (p.subject, format!("{}={}", p.name, p.value), p.origin)).collect()
        };
        let device = || "/dev/sdb1".to_owned();
        assert_eq!(
            read("mount -o noatime,data=writeback /dev/sdb1 /data"),
            [
                (device(), "access times=noatime".to_owned(), Origin::Set),
                (device(), "data=writeback".to_owned(), Origin::Set),
            ]
        );
        assert_eq!(
            read("/dev/sdb1 /data ext4 nobarrier 0 2"),
            [(device(), "barrier=0".to_owned(), Origin::Set)]
        );
        assert_eq!(
            read("/dev/sdb1 on /data type ext4 (rw,relatime,barrier=1)"),
            [
                (device(), "access times=relatime".to_owned(), Origin::Listed),
                (device(), "barrier=1".to_owned(), Origin::Listed),
            ]
        );
        assert!(read("mount everything with -o noatime if you can").is_empty());
    }

    #[test]
    fn a_property_is_stated_only_by_a_line_of_its_own() {
        assert_eq!(read_stated("recordsize = 8K", 3).unwrap().value, "8K");
        assert_eq!(
            read_stated("logbias = throughput (no log device)", 3).unwrap().value,
            "throughput"
        );
        for none in ["Is sync=always better?", "we set sync = always", "port = 1921", "sync ="] {
            assert_eq!(read_stated(none, 1), None, "{none}");
        }
    }
}
