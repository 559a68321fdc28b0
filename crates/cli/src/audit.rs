//! `pgdyno audit`.

use std::path::Path;
use std::time::SystemTime;

use pgdyno_lab::{LabError, run as lab};
use pgdyno_results::audit::{Audit, AuditError, ImportedRun};
use pgdyno_results::report::audit as page;

use crate::Done;
use crate::args;
use crate::commands::{json, store_path, width};
use crate::output::{Failure, print};

/// Audits all files, or none: one that cannot be read is named before anything is stored.
pub(crate) fn audit(options: &args::Audit) -> Result<Done, Failure> {
    let mut read = Vec::new();
    for path in &options.files {
        read.push(one(path).map_err(|e| Failure::of(&e, e.help()))?);
    }
    let mut audits: Vec<page::Audited> = Vec::new();
    let mut unkept = None;
    for (name, bytes, audit) in read {
        let imported = if options.no_store || unkept.is_some() || !audit.recognised.has_figures() {
            None
        } else {
            let import =
                ImportedRun::new(&name, &bytes, audit.recognised.clone(), SystemTime::now());
            keep(&import, options).map_err(|e| unkept = Some(e)).ok()
        };
        audits.push((name, audit, imported));
    }
    if options.json {
        print(&json(&page::AuditView::from(audits.as_slice()))?);
    } else {
        let pages: Vec<String> =
            audits.iter().map(|audited| page::audit(audited, usize::from(width()))).collect();
        print(&pages.join("\n"));
    }
    // What was found is shown also where it cannot be kept.
    if let Some(failure) = unkept {
        return Err(failure);
    }
    let serious = audits.iter().any(|(_, audit, _)| audit.is_serious());
    Ok(if serious { Done::Exceeded } else { Done::Whole })
}

/// Keeps what was recognised; the name under which the store has it.
fn keep(import: &ImportedRun, options: &args::Audit) -> Result<String, Failure> {
    let mut store = lab::open_store(&store_path(&options.store))?;
    Ok(store.add_import(import).map_err(LabError::from)?)
}

/// Puts the figures of the report that recipe `name` asks again into the store at `path`; the name
/// under which it has them. None where there is no such report.
pub(crate) fn keep_figures(name: &str, path: &Path) -> Result<Option<String>, Failure> {
    let Some((source, bytes)) = pgdyno_lab::recipes::figures(name) else { return Ok(None) };
    let Some(audit) = Audit::of(&source, bytes) else { return Ok(None) };
    let import = ImportedRun::new(&source, bytes, audit.recognised, SystemTime::now());
    let mut store = lab::open_store(path)?;
    Ok(Some(store.add_import(&import).map_err(LabError::from)?))
}

fn one(path: &Path) -> Result<(String, Vec<u8>, Audit), AuditError> {
    let bytes =
        std::fs::read(path).map_err(|source| AuditError::Read { path: path.into(), source })?;
    let name = path.display().to_string();
    let audit = Audit::of(&name, &bytes).ok_or_else(|| AuditError::NoText { path: path.into() })?;
    Ok((name, bytes, audit))
}
