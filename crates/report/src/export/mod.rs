//! Exports: a run as tables for other programs.
//!
//! [`Export::new`] analyses a run; with a redaction nothing of the export names the machine.
//! [`Export::json`], [`Export::hdr`] and [`Export::markdown`] make one document each;
//! [`Export::csv`] and [`Export::parquet`] write one file for each [`TableName`]. Trials are read
//! one at a time.

mod csv;
mod error;
mod hdr;
mod json;
mod markdown;
#[cfg(feature = "parquet")]
mod parquet;
mod redaction;
mod table;
mod tables;

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

pub use error::ExportError;
use redaction::Redaction;
use strum::VariantArray as _;
pub use table::TableName;
use table::{Column, TableSink};

use crate::RunReport;
use pgdyno_store::{Store, StoreError};

/// A run that is to be exported.
#[derive(Debug)]
pub struct Export<'a> {
    store: &'a Store,
    report: RunReport,
    redaction: Option<Redaction>,
}

impl<'a> Export<'a> {
    /// Analyses `run`. With `redact`, texts lose what names the machine, its places and people.
    ///
    /// # Errors
    /// The run is not there, is damaged or cannot be read.
    pub fn new(store: &'a Store, run: &str, redact: bool) -> Result<Self, StoreError> {
        let report = RunReport::read(store, run)?;
        let folder = store.run(run)?.folder;
        let redaction = redact.then(|| Redaction::new(&report.view, &folder));
        Ok(Self { store, report, redaction })
    }

    /// Writes each table as `TABLE.csv` into `folder`, which must be new or empty.
    pub fn csv(&self, folder: &Path) -> Result<(), ExportError> {
        self.files(folder, "csv", |file, _, columns| {
            Ok(Box::new(csv::Csv::new(BufWriter::new(file), columns)?))
        })
    }

    /// Writes each table as `TABLE.parquet` into `folder`, which must be new or empty.
    ///
    /// # Errors
    /// [`ExportError`]; [`ExportError::NoParquet`] in a build without Parquet.
    #[cfg_attr(not(feature = "parquet"), allow(unused_variables))]
    pub fn parquet(&self, folder: &Path) -> Result<(), ExportError> {
        #[cfg(not(feature = "parquet"))]
        return Err(ExportError::NoParquet);
        #[cfg(feature = "parquet")]
        self.files(folder, "parquet", |file, table, columns| {
            Ok(Box::new(parquet::ParquetFile::new(file, table, columns)?))
        })
    }

    fn files(
        &self,
        folder: &Path,
        extension: &str,
        open: impl Fn(File, TableName, &[Column]) -> Result<Box<dyn TableSink>, ExportError>,
    ) -> Result<(), ExportError> {
        prepare(folder)?;
        let mut sinks = Vec::new();
        for table in TableName::VARIANTS {
            let path = folder.join(format!("{table}.{extension}"));
            let write = |source| ExportError::Write { path: path.clone(), source };
            let file = File::create_new(&path).map_err(write)?;
            sinks.push(open(file, *table, &self.columns(*table))?);
        }
        self.rows(&mut |table, row| sinks[table as usize].row(row))?;
        sinks.into_iter().try_for_each(TableSink::finish)
    }

    /// `text` as it is exported.
    fn text(&self, text: &str) -> String {
        self.redaction.as_ref().map_or_else(|| text.to_owned(), |redaction| redaction.text(text))
    }
}

/// Writes `document` to `path`, whole or not at all.
///
/// # Errors
/// [`ExportError::Write`].
pub fn write(document: &str, path: &Path) -> Result<(), ExportError> {
    crate::replace(path, document.as_bytes())
        .map_err(|source| ExportError::Write { path: path.into(), source })
}

/// Makes `folder` if it is missing, and refuses one that holds something.
fn prepare(folder: &Path) -> Result<(), ExportError> {
    let write = |source| ExportError::Write { path: folder.into(), source };
    std::fs::create_dir_all(folder).map_err(write)?;
    match std::fs::read_dir(folder).map_err(write)?.next() {
        None => Ok(()),
        Some(_) => Err(ExportError::NotEmpty { folder: folder.into() }),
    }
}
