//! Redacts an export for publishing.
//!
//! Texts lose what names the machine, its places and people: paths, addresses, connection strings,
//! user names, serial numbers, UUIDs. They are recognised by their form, and those that the run's
//! records hold are recognised wherever they stand. Of the records, only what is listed here is
//! kept: a field that a later version adds is left out until it is listed.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Map, Value as Json};

use pgdyno_analysis::RunView;

/// Keys of the run's JSON that are kept whole, but for their texts.
const RUN: &[&str] = &[
    "answer",
    "best",
    "capacity",
    "comparisons",
    "courses",
    "effect",
    "interactions",
    "noise_floor",
    "run",
    "scaling",
    "stopping",
    "treatments",
    "why",
];
/// Keys of each host, of each storage, of each server and of each trial that are kept.
const HOST: &[&str] = &["cpu_model", "cpus", "kernel", "memory", "os"];
const STORAGE: &[&str] =
    &["filesystem", "model", "mount_options", "rotational", "scheduler", "size", "write_cache"];
const SERVER: &[&str] = &["trials", "version", "version_num"];
const TRIAL: &[&str] = &[
    "block",
    "connect_s",
    "factors",
    "generator_cpus",
    "latency_us",
    "measured_at",
    "measured_s",
    "ordinal",
    "repeat",
    "service_us",
    "started_at",
    "state",
    "tps",
    "transactions",
    "failed",
    "treatment",
    "warm_up_s",
];

/// Keywords of a connection string whose values are left out.
const CONNECTION: &[&str] = &[
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "hostname",
    "passfile",
    "password",
    "port",
    "service",
    "user",
    "username",
];
/// Beginnings of a device's unique name.
const DEVICE_IDS: &[&str] = &["ata-", "eui.", "naa.", "nvme-", "scsi-", "t10.", "uuid.", "wwn-"];

/// Shorter texts are not looked for: they stand in ordinary words.
const SHORTEST: usize = 3;

/// Names that the records hold, and that are left out wherever they stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Redaction {
    /// Levels that name hosts as generators, which may be short.
    generators: BTreeSet<String>,
    /// Names to be redacted, the longer first, so that none hides a part of another.
    names: Vec<String>,
}

impl Redaction {
    /// Collects the names in the records of a run; `folder` is where its experiment lay.
    pub(super) fn new(view: &RunView, folder: &str) -> Self {
        let mut names = BTreeSet::from([folder.to_owned()]);
        let mut add = |value: Option<&str>| {
            names.extend(value.map(str::to_owned));
        };
        // A run is mostly exported where it was measured.
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        add(host.as_deref().map(str::trim));
        view.sessions.iter().for_each(|session| add(session.host.name.as_deref()));
        let sessions = view.sessions.iter().filter_map(|s| serde_json::to_value(&s.storage).ok());
        let generators = view.treatments.iter().flat_map(|treatment| &treatment.generators);
        generators.for_each(|generator| add(Some(&generator.name)));
        let mut found = Vec::new();
        sessions.for_each(|storage| secrets(&storage, &mut found));
        for server in &view.servers {
            if let Ok(build) = serde_json::to_value(&server.build) {
                secrets(&build, &mut found);
            }
        }
        found.iter().for_each(|name| add(Some(name)));
        for text in [&view.experiment].into_iter().chain(&view.overrides) {
            connection_values(text).iter().for_each(|name| add(Some(name)));
        }
        // Whose home it is.
        let people: Vec<String> = names.iter().filter_map(|path| owner(path)).collect();
        names.extend(people);
        let mut names: Vec<String> = names
            .into_iter()
            .filter(|name| name.trim().len() >= SHORTEST && !is_common(name))
            .collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        let levels = view.plan.treatments.iter().filter_map(|t| t.generators.clone());
        let names_hosts =
            |launch: &String| launch.starts_with("ssh:") || launch.contains("listen=");
        Self { generators: levels.filter(names_hosts).collect(), names }
    }

    /// `text` with `[path]`, `[address]`, `[id]` and `[name]` in place of what is left out.
    pub(super) fn text(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for level in &self.generators {
            out = replace_word(&out, level);
        }
        out = by_form(&out);
        for name in &self.names {
            out = replace_word(&out, name);
        }
        out
    }

    /// Returns the run's JSON with the keys listed above only.
    pub(super) fn json(&self, run: &Json) -> Json {
        let mut kept = pick(run, RUN);
        let treatments = kept.get_mut("treatments").and_then(Json::as_array_mut);
        treatments.into_iter().flatten().for_each(number_generators);
        kept.insert("trials".into(), each(&run["trials"], |trial| pick(trial, TRIAL)));
        kept.insert(
            "servers".into(),
            each(&run["servers"], |server| {
                let mut kept = pick(server, SERVER);
                let settings = server["settings"].as_array().into_iter().flatten();
                kept.insert(
                    "settings".into(),
                    settings.filter(|s| is_public(s)).cloned().collect(),
                );
                kept
            }),
        );
        kept.insert(
            "sessions".into(),
            each(&run["sessions"], |session| {
                let mut kept = Map::new();
                kept.insert("host".into(), Json::Object(pick(&session["host"], HOST)));
                kept.insert("storage".into(), each(&session["storage"], |s| pick(s, STORAGE)));
                kept
            }),
        );
        self.texts(Json::Object(kept))
    }

    fn texts(&self, value: Json) -> Json {
        match value {
            Json::String(text) => self.text(&text).into(),
            Json::Array(all) => all.into_iter().map(|value| self.texts(value)).collect(),
            Json::Object(all) => {
                all.into_iter().map(|(key, value)| (self.text(&key), self.texts(value))).collect()
            }
            other => other,
        }
    }
}

/// Stands for the name of a treatment's or trial's `number`th generator, which is often its host's
/// and may be too short to be looked for.
pub(super) fn generator(number: usize) -> String {
    format!("generator-{number}")
}

fn number_generators(treatment: &mut Json) {
    let generators = treatment["generators"].as_array_mut();
    for (item, number) in generators.into_iter().flatten().zip(1..) {
        item["name"] = generator(number).into();
    }
}

fn pick(object: &Json, keys: &[&str]) -> Map<String, Json> {
    let object = object.as_object().into_iter().flatten();
    object
        .filter(|(key, _)| keys.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn each(array: &Json, pick: impl Fn(&Json) -> Map<String, Json>) -> Json {
    array.as_array().into_iter().flatten().map(|item| Json::Object(pick(item))).collect()
}

/// Returns whether a setting's value is a number or a switch, which name nothing. A port is an
/// address.
fn is_public(setting: &Json) -> bool {
    let value = setting["value"].as_str().unwrap_or_default();
    setting["name"] != "port"
        && (value.parse::<f64>().is_ok()
            || matches!(value, "on" | "off" | "minimal" | "replica" | "logical"))
}

/// Collects the values of keys that name a machine's parts.
fn secrets(value: &Json, into: &mut Vec<String>) {
    const KEYS: &[&str] = &[
        "address",
        "bindir",
        "directory",
        "file",
        "label",
        "mount_point",
        "serial",
        "source",
        "wwn",
    ];
    match value {
        Json::Array(all) => all.iter().for_each(|value| secrets(value, into)),
        Json::Object(all) => {
            for (key, value) in all {
                match value {
                    Json::String(text) if KEYS.contains(&key.as_str()) => {
                        into.push(text.clone());
                        // An address has a port behind it.
                        into.extend(text.rsplit_once(':').map(|(host, _)| host.to_owned()));
                    }
                    other => secrets(other, into),
                }
            }
        }
        _ => {}
    }
}

/// Host, user and database of every connection string in `text`.
fn connection_values(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut before: Option<String> = None;
    for (separator, token) in tokens(text) {
        if before.as_deref().is_some_and(|key| CONNECTION.contains(&key)) && separator.trim() == "="
        {
            found.push(token.to_owned());
        }
        if let Some((_, rest)) = token.split_once("://") {
            found.extend(rest.split(['/', '@', ':', '?', '&']).map(str::to_owned));
        }
        before = Some(token.to_ascii_lowercase());
    }
    found.retain(|value| value.parse::<u32>().is_err());
    found
}

/// Finds the user whose home holds `path`.
fn owner(path: &str) -> Option<String> {
    let rest = path.strip_prefix("/home/")?;
    Some(rest.split('/').next()?.to_owned())
}

/// Names that every machine has, and that tell nothing.
fn is_common(name: &str) -> bool {
    const COMMON: &[&str] = &[
        "localhost",
        "postgres",
        "postgresql",
        "pgbench",
        "pgdyno",
        "none",
        "overlay",
        "tmpfs",
        "root",
    ];
    COMMON.contains(&name) || name.starts_with('[')
}

/// Cuts `text` into tokens, each with the separators before it; the last has those at the end.
fn tokens(text: &str) -> impl Iterator<Item = (&str, &str)> {
    const SEPARATORS: &[char] =
        &[' ', '\t', '\n', '\r', '\'', '"', '`', '(', ')', ',', ';', '=', '|', '<', '>', '{', '}'];
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let begin = rest.find(|c| !SEPARATORS.contains(&c)).unwrap_or(rest.len());
        let (separator, token) = rest.split_at(begin);
        let (token, after) = token.split_at(token.find(SEPARATORS).unwrap_or(token.len()));
        rest = after;
        Some((separator, token))
    })
}

/// Replaces what has the form of a path, an address or an identifier.
fn by_form(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = String::new();
    for (separator, token) in tokens(text) {
        out.push_str(separator);
        let is_value = separator.trim() == "=" && CONNECTION.contains(&before.as_str());
        // A sentence's full stop, or the colon of a message, is no part of it.
        let core = token.trim_end_matches(['.', ':']);
        let mark = match () {
            () if core.is_empty() => None,
            () if is_value => Some("[name]"),
            () => form(core),
        };
        out.push_str(mark.unwrap_or(core));
        out.push_str(&token[core.len()..]);
        before = token.to_ascii_lowercase();
    }
    out
}

fn form(token: &str) -> Option<&'static str> {
    let lower = token.to_ascii_lowercase();
    if is_address(token) {
        return Some("[address]");
    }
    if is_path(token) {
        return Some("[path]");
    }
    let is_id = is_grouped(&lower, '-', &[8, 4, 4, 4, 12])
        || is_grouped(&lower, ':', &[2; 6])
        || DEVICE_IDS.iter().any(|start| lower.starts_with(start))
        || lower.strip_prefix("0x").is_some_and(|hex| is_hex(hex, 16));
    is_id.then_some("[id]")
}

fn is_address(token: &str) -> bool {
    let host = token.trim_start_matches('[');
    let host = host.split_once(']').map_or(host, |(host, _)| host);
    let host = host.split_once('/').map_or(host, |(host, _)| host);
    let v4 = host.split_once(':').map_or(host, |(host, _)| host);
    let at = token.split_once('@').is_some_and(|(a, b)| !a.is_empty() && !b.is_empty());
    let is_ip = |text: &str| text.parse::<IpAddr>().is_ok_and(|ip| !ip.is_unspecified());
    token.contains("://") || at || is_ip(host) || is_ip(v4)
}

fn is_path(token: &str) -> bool {
    let from = |token: &str| {
        let rest = token.strip_prefix('/');
        rest.is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_alphanumeric() || "._-".contains(c))
        })
    };
    from(token)
        || ["~/", "./", "../"].iter().any(|start| token.starts_with(start))
        || token.split_once(':').is_some_and(|(_, rest)| from(rest))
}

fn is_grouped(text: &str, between: char, lengths: &[usize]) -> bool {
    let groups: Vec<&str> = text.split(between).collect();
    groups.len() == lengths.len()
        && groups.iter().zip(lengths).all(|(g, n)| g.len() == *n && is_hex(g, *n))
}

fn is_hex(text: &str, least: usize) -> bool {
    text.len() >= least && text.chars().all(|c| c.is_ascii_hexdigit())
}

/// Replaces `name` where it is not a part of a longer word.
fn replace_word(text: &str, name: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, after) = (&rest[..at], &rest[at + name.len()..]);
        let joined = out.chars().chain(before.chars()).last().is_some_and(is_word)
            && name.starts_with(is_word)
            || after.starts_with(is_word) && name.ends_with(is_word);
        out.push_str(before);
        out.push_str(if joined { name } else { "[name]" });
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_a_machine_is_recognised_by_its_form() {
        for (text, expected) in [
            ("storage=/mnt/new-disk/pg clients=8", "storage=[path] clients=8"),
            ("cannot open `/var/lib/x.db`: denied", "cannot open `[path]`: denied"),
            ("~/x.sql and ../y.sql", "[path] and [path]"),
            ("nas:/export/pg", "[path]"),
            ("host=db7.acme.example user=anna port=5433", "host=[name] user=[name] port=[name]"),
            ("dsn \"postgres://anna:pw@db7:5432/shop\"", "dsn \"[address]\""),
            ("at 192.168.7.12:5432 and fe80::1.", "at [address] and [address]."),
            ("root=UUID=0b5e4ad6-97e0-4d0c-a1c6-1f2e3d4c5b6a", "root=UUID=[id]"),
            ("52:54:00:ab:cd:ef wwn-0x5000c500a1b2c3d4", "[id] [id]"),
            ("0x5000c500a1b2c3d4, mail ops@acme.example", "[id], mail [address]"),
        ] {
            assert_eq!(by_form(text), expected);
        }
        let plain =
            "UPDATE t SET a = a / 2 WHERE id = :aid; -- 1,203 tps (95%: 1,100 to 1,300) at 15.18";
        assert_eq!(by_form(plain), plain);
        assert_eq!(by_form("storage.disk.filesystem=ext4"), "storage.disk.filesystem=ext4");
    }

    #[test]
    fn names_of_the_records_are_replaced_wherever_they_stand_as_words() {
        let redaction = Redaction {
            generators: BTreeSet::from(["ssh:b,anna@c".into()]),
            names: vec!["S4EVNX0R".into(), "anna".into()],
        };
        assert_eq!(redaction.text("anna's S4EVNX0R, savanna"), "[name]'s [name], savanna");
        let levels = redaction.text("generators=ssh:b,anna@c clients=2, generators=local:2");
        assert_eq!(levels, "generators=[name] clients=2, generators=local:2");
    }

    #[test]
    fn connection_strings_in_a_file_tell_host_user_and_database() {
        let text = "[target]\ndsn = \"host=db7 user=anna dbname=shop port=5433\"\n# \
                    postgres://bo:pw@db8/x1?y=z\n";
        let found = connection_values(text);
        for name in ["db7", "anna", "shop", "bo", "pw", "db8", "x1"] {
            assert!(found.iter().any(|value| value == name), "{name}: {found:?}");
        }
        assert!(!found.iter().any(|value| value == "5433"), "{found:?}");
    }
}
