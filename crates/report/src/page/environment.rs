//! Machines and storages of a page, and how those of two runs differ.

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_model::facts::{HostFacts, StorageFacts};
use serde::Serialize;

use super::super::fingerprint::{self, Row};
use pgdyno_analysis::comparison::runs::INCIDENTAL;
use pgdyno_analysis::{RunView, SessionView, SettingView};

/// A machine with its storages.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Environment {
    title: String,
    rows: Vec<Row>,
    storages: Vec<StorageRows>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StorageRows {
    name: String,
    rows: Vec<Row>,
}

impl Environment {
    /// Describes a machine.
    pub(super) fn new<'a>(
        title: String,
        host: &HostFacts,
        storages: impl IntoIterator<Item = &'a StorageFacts>,
    ) -> Self {
        let storage = |facts: &StorageFacts| StorageRows {
            name: facts.name.clone(),
            rows: fingerprint::storage(facts),
        };
        let storages = storages.into_iter().map(storage).collect();
        Self { title, rows: fingerprint::host(host), storages }
    }

    /// Describes the machine of each session of a run.
    pub(super) fn of_run(view: &RunView) -> Vec<Self> {
        let session = |(i, session): (usize, &SessionView)| {
            let at = session.started_at;
            Self::new(format!("session {}, begun {at}", i + 1), &session.host, &session.storage)
        };
        view.sessions.iter().enumerate().map(session).collect()
    }
}

/// Something in which the environments of two runs differ.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Difference {
    group: String,
    name: String,
    a: String,
    b: String,
}

/// Names of what is described, with the group that each belongs to, and its texts.
type Facts = BTreeMap<(String, String), String>;

/// Stands for a fact that one side lacks.
const NONE: &str = "–";

/// Returns everything in which the environments of two runs differ: hosts, storages, servers with
/// their settings, and pgdyno itself.
pub(super) fn differences(a: &RunView, b: &RunView) -> Vec<Difference> {
    if a.run.id == b.run.id {
        return Vec::new();
    }
    let (a, b) = (facts(a), facts(b));
    let keys: BTreeSet<_> = a.keys().chain(b.keys()).collect();
    let text = |of: &Facts, key| of.get(key).cloned().unwrap_or_else(|| NONE.to_owned());
    keys.into_iter()
        .filter(|key| a.get(*key) != b.get(*key))
        .map(|key| Difference {
            group: key.0.clone(),
            name: key.1.clone(),
            a: text(&a, key),
            b: text(&b, key),
        })
        .collect()
}

/// Describes the newest session's machine, and every server.
fn facts(view: &RunView) -> Facts {
    let mut facts = Facts::new();
    let mut add = |group: &str, name: &str, text: String| {
        let known = facts.entry((group.to_owned(), name.to_owned())).or_default();
        if !known.split(" | ").any(|part| part == text) {
            known.push_str(if known.is_empty() { "" } else { " | " });
            known.push_str(&text);
        }
    };
    add("pgdyno", "version", view.run.pgdyno_version.clone());
    if let Some(session) = view.sessions.last() {
        for row in fingerprint::host(&lasting(&session.host)) {
            add("host", &row.name, row.text);
        }
        for storage in &session.storage {
            let group = format!("storage {}", storage.name);
            // How much is free differs from day to day.
            for row in fingerprint::storage(storage).into_iter().filter(|row| row.name != "Free") {
                add(&group, &row.name, row.text);
            }
        }
    }
    for server in &view.servers {
        add("server", "version", server.version.clone());
        let is_own = |s: &&SettingView| !INCIDENTAL.contains(&s.name.as_str());
        for setting in server.settings.iter().filter(is_own) {
            add("settings", &setting.name, values(setting));
        }
    }
    facts
}

/// Returns the host without its stolen time and its load, which differ from hour to hour.
fn lasting(host: &HostFacts) -> HostFacts {
    let mut host = HostFacts { load_average: None, ..host.clone() };
    host.virtualization.steal = None;
    host
}

fn values(setting: &SettingView) -> String {
    let mut all = setting.shown.clone();
    all.sort();
    all.join(" and ")
}
