//! Notes on storages that are no real device's, or that keep nothing.

use std::collections::BTreeSet;

use pgdyno_model::facts::MountedFilesystem;

use crate::note::{NoteKind, NoteList};
use pgdyno_analysis::RunView;

/// Names emulated storages, with their latencies.
pub(super) fn emulated(view: &RunView, out: &mut NoteList) {
    let storages = view.sessions.iter().flat_map(|s| &s.storage).filter(|s| s.is_emulated());
    let told: BTreeSet<String> = storages
        .map(|storage| {
            let disks = storage.asked.iter().flat_map(|asked| asked.backing.emulated());
            let latency: BTreeSet<String> =
                disks.map(|d| d.latency.to_string()).filter(|told| !told.is_empty()).collect();
            match latency.into_iter().collect::<Vec<_>>().join("; ") {
                none if none.is_empty() => storage.name.clone(),
                latency => format!("{} ({latency})", storage.name),
            }
        })
        .collect();
    if !told.is_empty() {
        let told: Vec<String> = told.into_iter().collect();
        out.add(NoteKind::Emulated, format!(
            "Emulated by pgdyno, so that nothing measured on it is a real device's: storage {}.",
            told.join(", ")
        ));
    }
}

/// Names storages that lose what was acknowledged in a power cut, whatever the server does.
pub(super) fn not_durable(view: &RunView, out: &mut NoteList) {
    let mut told = BTreeSet::new();
    for storage in view.sessions.iter().flat_map(|session| &session.storage) {
        if let Some(memory) = storage.memory() {
            told.insert(format!(
                "Storage {} is main memory ({memory}): nothing on it survives a power cut, and a \
                 flush costs nothing.",
                storage.name
            ));
        }
        for (MountedFilesystem { mount_point, .. }, option) in storage.unflushed() {
            told.insert(format!(
                "Storage {} lies on {mount_point}, which is mounted with `{option}` and passes no \
                 flush on: a power cut loses acknowledged commits, and a flush costs too little.",
                storage.name
            ));
        }
    }
    out.add_all(NoteKind::NotDurable, told);
}
