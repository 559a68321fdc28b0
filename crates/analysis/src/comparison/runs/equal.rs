//! Finds what makes two treatments incomparable.
//!
//! Everything must be equal but what is compared on purpose. [`differences`] lists the differences
//! of two sides, each with the names by which `--by` allows it.

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_model::facts::{BlockDevice, BuildSource, DeviceKind, HostFacts, StorageFacts};
use pgdyno_model::level::Key;
use pgdyno_model::{GeneratorChoice, Plan, Treatment};
use serde::Serialize;
use serde_json::Value;

use crate::records::RunData;
use crate::treatment::TreatmentSamples;
use crate::view::ServerView;

/// Placeholder for an absent value.
const NONE: &str = "–";

/// Settings that say where a server lies and how it is reached, or that pgdyno derives from the
/// whole plan.
pub const INCIDENTAL: &[&str] = &[
    "cluster_name",
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
    "log_directory",
    "log_filename",
    "log_timezone",
    "max_connections",
    "port",
    "superuser_reserved_connections",
    "unix_socket_directories",
];

/// One side of a pair, as far as it must be equal.
pub(crate) struct Side<'a> {
    pub(crate) run: &'a RunData,
    pub(crate) treatment: &'a Treatment,
    pub(crate) index: usize,
}

impl Side<'_> {
    /// Returns the samples of its treatment.
    pub(crate) fn sums(&self) -> &TreatmentSamples {
        &self.run.sums[self.index]
    }
}

/// A difference, and the names under which it can be compared on purpose.
pub(crate) struct Difference {
    pub(super) what: String,
    pub(super) a: String,
    pub(super) b: String,
    names: Vec<String>,
}

impl Difference {
    /// Returns whether `by` names this difference, or something that it is part of. `bundle` tells
    /// whether a name may set anything that a treatment can ([`is_bundle`]).
    pub(super) fn is_named(&self, by: &[String], bundle: impl Fn(&str) -> bool) -> bool {
        let beyond = |name: &String| HOST.contains(&name.as_str()) || LOAD.contains(&name.as_str());
        let of_treatments = !self.names.iter().any(beyond);
        let of_machine = belongs_to_machine(&self.what);
        self.what != GENERATOR
            && by.iter().any(|name| {
                *name == self.what
                    || self.names.contains(name)
                    || (of_machine && name == MACHINE)
                    || (of_treatments && bundle(name))
            })
    }
}

/// Returns the machines of two runs, each run's as one text; none if both ran on the same, or one
/// does not name them.
pub(super) fn machines(a: &RunData, b: &RunData) -> Option<[String; 2]> {
    let (a, b) = (a.hosts(), b.hosts());
    let are_apart = !a.is_empty() && !b.is_empty() && a != b;
    are_apart.then(|| [a, b].map(|hosts| hosts.join(" and ")))
}

/// Parts of a host that must be equal, by the names that `--by` takes.
const HOST: &[&str] = &[
    "operating system",
    "kernel",
    "CPU",
    "memory",
    "hardware",
    "CPU frequency or layout",
    "paging",
    "kernel settings",
    "virtualisation",
    "control group limits",
];

/// Name under which machines are compared: all of [`HOST`] and of [`STORAGE`].
pub(super) const MACHINE: &str = "host";

/// Parts of a storage that must be equal, by the names that `--by` takes.
const STORAGE: [&str; 5] =
    ["filesystem", "mount options", "device", "filesystems beneath", "device settings"];

/// Returns whether the difference `what` is one of machines.
pub(super) fn belongs_to_machine(what: &str) -> bool {
    HOST.contains(&what) || STORAGE.contains(&what)
}

/// Name of the difference that `--by` cannot name.
pub(super) const GENERATOR: &str = "load generator";

/// Returns the names that `--by` takes beside factors.
pub(super) fn names() -> Vec<&'static str> {
    let of_treatments = [MACHINE, "server build", "storage", "workload", "scale", "scripts"];
    HOST.iter().copied().chain(STORAGE).chain(of_treatments).chain(LOAD).collect()
}

/// Parts of the load that must be equal and that no factor sets, by the names that `--by` takes.
const LOAD: [&str; 5] = ["slo", "headline", "warm-up", "window", "conditions"];

/// Lists all differences between the sides other than their results.
pub(crate) fn differences(a: &Side<'_>, b: &Side<'_>) -> Vec<Difference> {
    let mut out = Found(Vec::new());
    if a.run.head.id != b.run.head.id {
        hosts(a.run, b.run, &mut out);
    }
    conditions(a.run, b.run, &mut out);
    servers(a, b, &mut out);
    storages(a, b, &mut out);
    let (x, y) = (a.treatment, b.treatment);
    out.add("workload", &["workload"], Some(x.workload.clone()), Some(y.workload.clone()));
    out.add("scale", &["scale"], Some(x.scale.to_string()), Some(y.scale.to_string()));
    if x.workload == y.workload && !a.sums().scripts.is_empty() && !b.sums().scripts.is_empty() {
        let only = |this: &BTreeSet<String>, that: &BTreeSet<String>| {
            let scripts: Vec<&str> = this.difference(that).map(String::as_str).collect();
            Some(shortened(&scripts.join("; ")))
        };
        out.add(
            "scripts",
            &["workload"],
            only(&a.sums().scripts, &b.sums().scripts),
            only(&b.sums().scripts, &a.sums().scripts),
        );
    }
    load(a, b, &mut out);
    let limited = |side: &Side<'_>| match side.sums().generator_limited {
        0 => "not limited".to_owned(),
        n => format!("may have been the limit in {n} of {} trials", side.sums().tps.len()),
    };
    if a.sums().generator_limited + b.sums().generator_limited > 0 {
        out.0.push(Difference {
            what: GENERATOR.into(),
            a: limited(a),
            b: limited(b),
            names: Vec::new(),
        });
    }
    out.0
}

struct Found(Vec<Difference>);

impl Found {
    /// Adds the difference of `a` and `b`; nothing if they are equal, or one side does not tell its
    /// value.
    fn add(&mut self, what: &str, names: &[&str], a: Option<String>, b: Option<String>) {
        if let (Some(a), Some(b)) = (a, b)
            && a != b
        {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            self.0.push(Difference { what: what.to_owned(), a, b, names });
        }
    }
}

fn hosts(a: &RunData, b: &RunData, out: &mut Found) {
    let pairs = a.sessions.iter().flat_map(|s| b.sessions.iter().map(move |t| (&s.host, &t.host)));
    for (x, y) in pairs {
        for what in x.differences(y) {
            if out.0.iter().any(|known| known.what == what) {
                continue;
            }
            let (of_x, of_y) = host_part(what, x, y);
            out.add(what, &[what], Some(of_x), Some(of_y));
        }
    }
}

/// Renders the part of two machines that [`HostFacts::differences`] calls `what`, as far as they
/// differ.
fn host_part(what: &str, x: &HostFacts, y: &HostFacts) -> (String, String) {
    let cpu = |h: &HostFacts| format!("{} × {}", h.cpus, h.cpu_model);
    match what {
        "operating system" => (x.os.clone(), y.os.clone()),
        "kernel" => (x.kernel.clone(), y.kernel.clone()),
        "CPU" => (cpu(x), cpu(y)),
        "memory" => (x.memory.to_string(), y.memory.to_string()),
        "hardware" => apart(&x.hardware, &y.hardware),
        "CPU frequency or layout" => apart(&x.cpu, &y.cpu),
        "paging" => apart(&x.paging, &y.paging),
        "kernel settings" => apart(&x.settings, &y.settings),
        "virtualisation" => apart(&x.virtualization, &y.virtualization),
        _ => apart(&x.cgroup, &y.cgroup),
    }
}

/// Renders the fields in which two values differ, for each of the values.
fn apart<T: Serialize>(a: &T, b: &T) -> (String, String) {
    let (a, b) = (fields(a), fields(b));
    let names: BTreeSet<&String> =
        a.keys().chain(b.keys()).filter(|name| a.get(*name) != b.get(*name)).collect();
    let show = |of: &BTreeMap<String, String>| {
        let each = names
            .iter()
            .map(|name| format!("{name} = {}", of.get(*name).map_or(NONE, String::as_str)));
        shortened(&each.collect::<Vec<_>>().join(", "))
    };
    (show(&a), show(&b))
}

fn fields<T: Serialize>(value: &T) -> BTreeMap<String, String> {
    fn walk(path: &str, value: &Value, out: &mut BTreeMap<String, String>) {
        match value {
            Value::Null => {}
            Value::Object(map) => {
                for (name, inner) in map {
                    let path =
                        if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    walk(&path, inner, out);
                }
            }
            Value::String(text) => drop(out.insert(path.to_owned(), text.clone())),
            other => drop(out.insert(path.to_owned(), other.to_string())),
        }
    }
    let mut out = BTreeMap::new();
    walk("", &serde_json::to_value(value).unwrap_or_default(), &mut out);
    out
}

fn shortened(text: &str) -> String {
    const MOST: usize = 300;
    if text.is_empty() {
        return NONE.to_owned();
    }
    let mut out: String = text.chars().take(MOST).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
}

/// Compares whether the runs are of experiments or ad hoc. Two ad hoc runs are compared by the
/// server that they measured.
fn conditions(a: &RunData, b: &RunData, out: &mut Found) {
    let are_ad_hoc = a.ad_hoc && b.ad_hoc;
    let of = |run: &RunData| match (run.ad_hoc, run.servers.first().map(|server| &server.build)) {
        (false, _) => Some("of an experiment".to_owned()),
        (true, Some(BuildSource::Given { address })) if are_ad_hoc => {
            Some(format!("ad hoc, server {address}"))
        }
        (true, _) => (!are_ad_hoc).then(|| "ad hoc".to_owned()),
    };
    out.add("conditions", &["conditions"], of(a), of(b));
}

fn servers(a: &Side<'_>, b: &Side<'_>, out: &mut Found) {
    let of = |side: &Side<'_>| {
        let ran = |s: &&ServerView| {
            side.run.trials.iter().any(|t| {
                t.treatment == side.index && t.tps.is_some() && s.trials.contains(&t.ordinal)
            })
        };
        side.run.servers.iter().filter(ran).cloned().collect::<Vec<_>>()
    };
    let (x, y) = (of(a), of(b));
    let build = |servers: &[ServerView]| {
        let each = |s: &ServerView| {
            let from = match &s.build {
                BuildSource::Found { .. } => "found on the machine".to_owned(),
                BuildSource::Fetched { artifact, sha256, .. } => {
                    format!("fetched: {artifact}, SHA-256 {sha256}")
                }
                BuildSource::Given { .. } => "a given server".to_owned(),
            };
            format!("{} ({from})", s.version)
        };
        let all: BTreeSet<String> = servers.iter().map(each).collect();
        (!all.is_empty()).then(|| all.into_iter().collect::<Vec<_>>().join(" and "))
    };
    out.add(
        "server build",
        &["server build", "postgres.version", "postgres.bindir", "postgres.dsn"],
        build(&x),
        build(&y),
    );
    if x.is_empty() || y.is_empty() {
        return;
    }
    let (x, y) = (settings(a, &x), settings(b, &y));
    let names: BTreeSet<&String> = x.keys().chain(y.keys()).collect();
    for name in names {
        let value = |of: &BTreeMap<String, String>| {
            Some(of.get(name).cloned().unwrap_or_else(|| "(default)".into()))
        };
        out.add(&format!("setting {name}"), &[name], value(&x), value(&y));
    }
}

/// Collects the settings that the servers reported in trials of the side's treatment. A setting
/// that varies among trials has all its values.
fn settings(side: &Side<'_>, servers: &[ServerView]) -> BTreeMap<String, String> {
    let mine: Vec<u32> = side
        .run
        .trials
        .iter()
        .filter(|t| t.treatment == side.index && t.tps.is_some())
        .map(|t| t.ordinal)
        .collect();
    let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for setting in servers.iter().flat_map(|s| &s.settings) {
        let asked = side.treatment.settings.contains_key(&setting.name);
        if INCIDENTAL.contains(&setting.name.as_str()) && !asked {
            continue;
        }
        let is_mine = |(place, _): &(usize, &String)| match setting.values.get(*place) {
            Some((_, ordinals)) => ordinals.iter().any(|ordinal| mine.contains(ordinal)),
            None => true,
        };
        let shown = setting.shown.iter().enumerate().filter(is_mine);
        let entry = values.entry(setting.name.clone()).or_default();
        entry.extend(shown.map(|(_, shown)| shown.clone()));
    }
    values.retain(|_, values| !values.is_empty());
    values
        .into_iter()
        .map(|(name, values)| (name, values.into_iter().collect::<Vec<_>>().join(" and ")))
        .collect()
}

/// Facts of the storage that the side's treatment lay on, as its last session that has them found.
fn storage_of<'a>(side: &Side<'a>) -> Option<&'a StorageFacts> {
    let mut all = side.run.sessions.iter().rev().flat_map(|session| &session.storage);
    all.find(|s| s.name == side.treatment.storage && s.failure.is_none())
}

fn storages(a: &Side<'_>, b: &Side<'_>, out: &mut Found) {
    let (Some(x), Some(y)) = (storage_of(a), storage_of(b)) else { return };
    out.add("filesystem", &["filesystem", "storage"], Some(filesystem(x)), Some(filesystem(y)));
    out.add(
        "mount options",
        &["mount options", "storage"],
        Some(x.mount_options.clone()),
        Some(y.mount_options.clone()),
    );
    out.add("device", &["device", "storage"], device(x), device(y));
    // Records of earlier versions know of none.
    if !x.beneath.is_empty() && !y.beneath.is_empty() {
        let names = ["filesystems beneath", "storage"];
        out.add("filesystems beneath", &names, Some(beneath(x)), Some(beneath(y)));
    }
    let queue = |s: &StorageFacts| {
        let each = |d: &&BlockDevice| {
            format!("{:?}", (&d.scheduler, d.read_ahead_kb, d.nr_requests, &d.write_cache))
        };
        let layers = s.layers();
        let disks: Vec<String> =
            layers.iter().filter(|d| d.kind != DeviceKind::Partition).map(each).collect();
        if disks.is_empty() {
            format!("{:?}", (&s.scheduler, &s.write_cache))
        } else {
            disks.join(", ")
        }
    };
    if queue(x) != queue(y) {
        let both = |s: &StorageFacts| {
            let top = s.layers().first().map(|d| {
                [
                    d.scheduler.as_ref().map(|v| format!("scheduler {v}")),
                    d.read_ahead_kb.map(|v| format!("read-ahead {v} KiB")),
                    d.nr_requests.map(|v| format!("{v} requests")),
                    d.write_cache.as_ref().map(|v| format!("cache {v}")),
                ]
            });
            let known = top.into_iter().flatten().flatten().collect::<Vec<_>>();
            let old =
                [&s.scheduler, &s.write_cache].into_iter().flatten().cloned().collect::<Vec<_>>();
            Some(if known.is_empty() { old } else { known }.join(", "))
                .filter(|text| !text.is_empty())
        };
        let names = [
            "storage",
            "device",
            "device.scheduler",
            "device.read_ahead_kb",
            "device.nr_requests",
            "device.write_cache",
        ];
        out.add("device settings", &names, both(x), both(y));
    }
}

fn filesystem(s: &StorageFacts) -> String {
    let geometry: String =
        s.geometry.iter().map(|(name, value)| format!(", {name} {value}")).collect();
    let blocks = s.block_bytes.map_or_else(String::new, |n| format!(", blocks of {n} bytes"));
    let taken_over: String = s.taken_over().iter().map(|what| format!(", {what}")).collect();
    shortened(&format!("{}{blocks}{geometry}{taken_over}", s.filesystem))
}

/// Renders the filesystems beneath, without names that change from mount to mount.
fn beneath(s: &StorageFacts) -> String {
    let each = s.beneath.iter().map(|f| format!("{} ({})", f.filesystem, f.mount_options));
    each.collect::<Vec<_>>().join(", ")
}

/// Renders the devices under the filesystem, without names that change from mount to mount.
fn device(s: &StorageFacts) -> Option<String> {
    let each = |d: &&BlockDevice| {
        let mut words = vec![format!("{} of {}", d.kind.name(), d.size)];
        words.extend(d.model.clone());
        words.extend(d.serial.as_ref().or(d.wwn.as_ref()).map(|serial| format!("serial {serial}")));
        words.extend(
            d.raid
                .as_ref()
                .map(|raid| format!("{} of {}", raid.level, raid.disks.unwrap_or_default())),
        );
        words.extend(
            d.backing.as_ref().and_then(|b| Some(format!("a file on {}", b.filesystem.as_ref()?))),
        );
        words.join(" ")
    };
    let layers = s.layers();
    if layers.is_empty() {
        let model = s.model.as_ref().map_or_else(String::new, |m| format!(" ({m})"));
        return s.disk.as_ref().map(|disk| format!("{disk}{model}"));
    }
    Some(layers.iter().map(each).collect::<Vec<_>>().join(", on "))
}

fn load(a: &Side<'_>, b: &Side<'_>, out: &mut Found) {
    let (x, y) = (a.treatment, b.treatment);
    // Only factors are kept as they were given: without one it is known whether there were any.
    let are_levels = x.generators.is_some() && y.generators.is_some();
    let generators = |side: &Side<'_>| match &side.treatment.generators {
        Some(launch) if are_levels => Some(launch.clone()),
        _ if side.run.treatments[side.index].generators.is_empty() => {
            Some(GeneratorChoice::NONE.to_owned())
        }
        _ => Some("some".to_owned()),
    };
    out.add("generators", &["generators"], generators(a), generators(b));
    let mut add = |what: &str, a: String, b: String| out.add(what, &[what], Some(a), Some(b));
    add("clients", x.clients.to_string(), y.clients.to_string());
    let groups = |t: &Treatment| match &t.groups[..] {
        [] => NONE.to_owned(),
        groups => groups.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
    };
    add("groups", groups(x), groups(y));
    add("threads", x.threads.to_string(), y.threads.to_string());
    add("protocol", x.protocol.name().into(), y.protocol.name().into());
    let options = |t: &Treatment| fields(&t.options);
    let (of_x, of_y) = (options(x), options(y));
    let names: BTreeSet<&String> = of_x.keys().chain(of_y.keys()).collect();
    for name in names {
        let value = |of: &BTreeMap<String, String>| {
            of.get(name).cloned().unwrap_or_else(|| NONE.to_owned())
        };
        add(name, value(&of_x), value(&of_y));
    }
    let length = |plan: &Plan| {
        fields(&plan.length).into_iter().map(|(kind, n)| format!("{kind} {n}")).collect()
    };
    let (p, q) = (&a.run.plan, &b.run.plan);
    add("window", length(p), length(q));
    let slo = |plan: &Plan| {
        plan.find.as_ref().map_or_else(|| "no rate is looked for".to_owned(), |f| f.slo.to_string())
    };
    add("slo", slo(p), slo(q));
    let headline = |plan: &Plan| plan.headline.clone().unwrap_or_else(|| "all scripts".to_owned());
    add("headline", headline(p), headline(q));
    add("warm-up", p.warm_up.to_string(), q.warm_up.to_string());
}

/// Returns whether `name` is a factor that bundles several settings, so that it may set anything
/// that a treatment can.
///
/// A bundle is none of pgdyno's own names, but for the name under which machines are compared, and
/// no setting of either treatment.
pub(super) fn is_bundle(name: &str, a: &Treatment, b: &Treatment) -> bool {
    let own = Key::NAMES.contains(&name) || (name != MACHINE && names().contains(&name));
    let setting = |t: &Treatment| t.settings.contains_key(name);
    let factor = |t: &Treatment| t.levels.get(name).is_some();
    !own && !setting(a) && !setting(b) && (factor(a) || factor(b))
}
