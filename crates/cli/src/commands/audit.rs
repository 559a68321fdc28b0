//! `pgdyno audit`: checks the figures of benchmark reports that others wrote.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;
use pgdyno_audit::{Audit, ImportedRun};
use pgdyno_model::Advice;
use pgdyno_provision::stores::open_store;
use pgdyno_report::audit as page;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print;
use crate::shared_options::StoreOption;
use pgdyno_report::json::json;

/// Reason why a file could not be audited.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditError {
    /// The file could not be read.
    #[error("cannot read the report {}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// The file is no text.
    #[error("cannot audit {}: it is no text", path.display())]
    NoText { path: PathBuf },
}

impl Advice for AuditError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Read { .. } => None,
            Self::NoText { .. } => Some(
                "save the report as text, Markdown or HTML; archives and PDF are not read".into(),
            ),
        }
    }
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pgdyno audit report.txt  Check the figures of somebody's report

See also: pgdyno-compare(1)")]
pub(crate) struct AuditArgs {
    /// Reports to audit: text, Markdown or HTML. Each is judged by itself
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not store the recognised figures
    #[arg(long, conflicts_with = "path")]
    pub(crate) no_store: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Audits the files. If one of them cannot be read, none is audited and nothing is stored.
pub(crate) fn run(options: &AuditArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    let mut read = Vec::new();
    for path in &options.files {
        read.push(audit_file(path)?);
    }
    let mut audits: Vec<page::Audited> = Vec::new();
    let mut not_kept = None;
    for (name, bytes, audit) in read {
        let imported = if options.no_store || not_kept.is_some() || !audit.recognised.has_figures()
        {
            None
        } else {
            let import =
                ImportedRun::new(&name, &bytes, audit.recognised.clone(), SystemTime::now());
            keep(&import, options).map_err(|e| not_kept = Some(e)).ok()
        };
        audits.push((name, audit, imported));
    }
    if options.json {
        print(&json(&page::AuditView::from(audits.as_slice()))?);
    } else {
        let pages: Vec<String> = audits
            .iter()
            .map(|audited| page::audit(audited, usize::from(context.width())))
            .collect();
        print(&pages.join("\n"));
    }
    // Findings are printed even if they cannot be stored.
    if let Some(error) = not_kept {
        return Err(error);
    }
    let serious = audits.iter().any(|(_, audit, _)| audit.is_serious());
    Ok(if serious { ExitStatus::Exceeded } else { ExitStatus::Success })
}

/// Stores what was recognised, and returns its id.
fn keep(import: &ImportedRun, options: &AuditArgs) -> Result<String, CommandError> {
    Ok(open_store(&options.store.path())?.add_import(import)?)
}

fn audit_file(path: &Path) -> Result<(String, Vec<u8>, Audit), AuditError> {
    let bytes =
        std::fs::read(path).map_err(|source| AuditError::Read { path: path.into(), source })?;
    let name = path.display().to_string();
    let audit =
        Audit::from_bytes(&name, &bytes).ok_or_else(|| AuditError::NoText { path: path.into() })?;
    Ok((name, bytes, audit))
}
