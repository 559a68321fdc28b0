//! Options that several commands have.

use std::path::{Path, PathBuf};

use clap::Args;
use pgdyno_dataset::trust::Trust;
use pgdyno_store::{Store, StoreError};

use crate::context::Context;
use crate::error::CommandError;

/// `--store FILE`.
#[derive(Args, Debug)]
pub(crate) struct StoreOption {
    /// File that stores all runs [env: PGDYNO_STORE] [default:
    /// $XDG_DATA_HOME/pgdyno/store.sqlite3]
    #[arg(long = "store", value_name = "FILE")]
    path: Option<PathBuf>,
}

impl StoreOption {
    /// Returns the path of the store that `pgbench --store` names: `file`, or else the default.
    pub(crate) fn path_or_default(file: Option<&Path>) -> PathBuf {
        Self { path: file.map(Path::to_owned) }.path()
    }

    /// Returns the store's path: `--store`, else `PGDYNO_STORE` unless it is empty, else the
    /// default.
    pub(crate) fn path(&self) -> PathBuf {
        let by_environment = || std::env::var_os("PGDYNO_STORE").filter(|path| !path.is_empty());
        let named = self.path.clone().or_else(|| by_environment().map(PathBuf::from));
        named.unwrap_or_else(pgdyno_lab::default_store)
    }

    /// Opens the store, which must exist.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub(crate) fn open(&self) -> Result<Store, CommandError> {
        Ok(pgdyno_provision::stores::open_store_existing(&self.path())?)
    }

    /// Opens the store, which must exist, to change what it holds. A signal ends what is under way.
    ///
    /// # Errors
    /// There is none, or it cannot be written.
    pub(crate) fn open_for_change(&self, context: &Context) -> Result<Store, CommandError> {
        let path = self.path();
        if !path.exists() {
            return Err(StoreError::Missing { path }.into());
        }
        self.open_or_make(context)
    }

    /// As [`StoreOption::open_for_change`]; makes the store if there is none.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn open_or_make(&self, context: &Context) -> Result<Store, CommandError> {
        let mut store = pgdyno_provision::stores::open_store(&self.path())?;
        store.stop_by(context.stop_flag())?;
        Ok(store)
    }
}

/// `--trust PATH`.
#[derive(Args, Debug)]
pub(crate) struct TrustOption {
    /// As root: run commands of this experiment or script, or resume a run of this store, although
    /// another account may change it. A folder stands for all files below it. May be repeated
    #[arg(long = "trust", value_name = "PATH")]
    paths: Vec<PathBuf>,
}

impl TrustOption {
    /// Returns the paths that the user trusts.
    pub(crate) fn trust(&self) -> Trust {
        Trust::new(self.paths.clone())
    }
}
