//! Renders the findings of `pgdyno doctor` as JSON.

use std::path::Path;

use pgdyno_lab::doctor::{Doctor, Install};
use pgdyno_model::Advice;
use pgdyno_model::json::Document;
use serde_json::{Value, json};

use crate::parts;

/// The findings as a JSON document.
#[derive(serde::Serialize)]
#[serde(transparent)]
pub(super) struct DoctorDocument(Value);

impl Document for DoctorDocument {
    const SCHEMA: &'static str = "pgdyno.doctor/1";
}

impl From<&Doctor> for DoctorDocument {
    fn from(doctor: &Doctor) -> Self {
        Self(as_json(doctor))
    }
}

fn as_json(doctor: &Doctor) -> Value {
    let text = |path: &Path| path.display().to_string();
    let installs = |all: &[_]| -> Vec<Value> {
        let install = |i: &Install| json!({ "version": i.version, "bindir": text(&i.bindir) });
        all.iter().map(install).collect()
    };
    let report = &doctor.directory;
    let problem =
        report.problem.as_ref().map(|e| json!({ "what": e.to_string(), "help": e.help() }));
    json!({
        "host": doctor.host,
        "root": doctor.root,
        "server_account": doctor.account.as_ref().ok().map(|a| &a.name),
        "server_account_problem": doctor.account.as_ref().err().map(ToString::to_string),
        "postgresql": {
            "found": installs(&doctor.found),
            "fetched": installs(&doctor.cached),
            "fetchable": doctor.fetchable.iter().map(|(_, version)| version).collect::<Vec<_>>(),
        },
        "directory": {
            "path": text(&report.path),
            "exists": report.exists,
            "storage": report.storage.as_ref().ok(),
            "storage_problem": report.storage.as_ref().err().map(ToString::to_string),
            "problem": problem,
        },
        "advice": doctor.advised.advice,
        "fine": doctor.advised.fine,
        "unseen": doctor.advised.unseen,
        "lacks": parts::missing_parts()
            .map(|part| json!({ "what": part.name, "feature": part.feature }))
            .collect::<Vec<_>>(),
        "missing": doctor.missing.iter().map(|m| json!({
            "what": m.what,
            "why": m.why,
            "how": m.how.iter()
                .map(|(place, command)| json!({ "place": place, "command": command }))
                .collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}
