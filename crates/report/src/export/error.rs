//! Errors of an export.

use std::io;
use std::path::PathBuf;

use pgdyno_model::Advice;
use pgdyno_store::StoreError;

/// Why a run could not be exported.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ExportError {
    /// The run cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file or folder cannot be written.
    #[error("cannot write the export to {}", path.display())]
    Write {
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The folder for tables is not empty.
    #[error("cannot export tables to {}: the folder is not empty", folder.display())]
    NotEmpty { folder: PathBuf },
    /// A table cannot be written.
    #[error("cannot write a table")]
    Table(#[source] io::Error),
    /// A table cannot be written as Parquet.
    #[cfg(feature = "parquet")]
    #[error("cannot write a table as Parquet")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// This build has no Parquet.
    #[error("cannot write Parquet: this build of pgdyno has none")]
    NoParquet,
    /// A value cannot be written as JSON.
    #[error("cannot write JSON")]
    Json(#[from] serde_json::Error),
    /// A histogram cannot be written.
    #[error("cannot write a histogram: {0}")]
    Histogram(String),
}

impl Advice for ExportError {
    fn help(&self) -> Option<String> {
        let help = match self {
            Self::Store(error) => return error.help(),
            Self::Write { .. } => "name a place that you may write to with `-o`",
            Self::NotEmpty { .. } => "name a new or an empty folder with `-o FOLDER`",
            Self::NoParquet => {
                "released packages have it; from source: `cargo install --features full …`. \
                 `--format csv` writes the same tables"
            }
            _ => return None,
        };
        Some(help.to_owned())
    }
}
