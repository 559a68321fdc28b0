//! State shared by all requests.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::digest::DigestCache;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use pgdyno_lab::live;
use pgdyno_report::front_end;
use tokio::sync::watch;

use crate::base_path::BasePath;
use crate::listing::{Contents, Listing};
use crate::live::Watched;
use crate::pages::Pages;
use crate::response::ApiError;
use crate::stores::Stores;

/// The store, its pages and watched runs, as all requests share them.
pub(crate) struct App {
    pub(crate) stores: Stores,
    pub(crate) pages: Pages,
    /// Whether runs may be asked to stop.
    pub(crate) allow_control: bool,
    /// The front end, for every path that is not the API's.
    pub(crate) front_end: Bytes,
    /// Runs that are watched.
    pub(crate) watched: Watched,
    ending: watch::Sender<bool>,
    listing: Listing,
    digests: Mutex<DigestCache>,
}

impl App {
    /// Serves the store that `stores` opens, with the digests that are known, under the path
    /// `base`.
    pub(crate) fn new(
        stores: Stores,
        digests: DigestCache,
        allow_control: bool,
        base: &BasePath,
    ) -> Self {
        Self {
            stores,
            pages: Pages::default(),
            allow_control,
            front_end: front_end().html_under(&base.to_string()).into(),
            watched: Watched::default(),
            ending: watch::Sender::new(false),
            listing: Listing::default(),
            digests: Mutex::new(digests),
        }
    }

    /// The store's path.
    pub(crate) fn path(&self) -> &Path {
        self.stores.path()
    }

    /// Tells everything that waits that the server ends.
    pub(crate) fn end(&self) {
        self.ending.send_replace(true);
    }

    /// Whether the server ends.
    pub(crate) fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }

    /// Returns a channel whose value becomes true once the server ends.
    pub(crate) fn ending(&self) -> watch::Receiver<bool> {
        self.ending.subscribe()
    }

    /// Ids of runs whose process is at work and can be watched.
    ///
    /// # Errors
    /// The live files cannot be read.
    pub(crate) fn live_runs(&self) -> Result<BTreeSet<String>, ApiError> {
        let runs = live::runs(self.path())?.into_iter();
        Ok(runs.filter(|run| run.is_alive && run.ended.is_none()).map(|run| run.run).collect())
    }

    /// Returns what the store holds now.
    ///
    /// # Errors
    /// The store cannot be opened or read.
    pub(crate) fn contents(&self) -> Result<Arc<Contents>, ApiError> {
        self.listing.read(self.path())
    }

    /// The digests that are known.
    pub(crate) fn digests(&self) -> MutexGuard<'_, DigestCache> {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state that axum gives each handler.
pub(crate) type Shared = State<Arc<App>>;

/// Does `work` on a thread that may block.
///
/// # Errors
/// Those of `work`, or that it panicked.
pub(crate) async fn blocking<T: Send + 'static>(
    app: &Arc<App>,
    work: impl FnOnce(&App) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let app = Arc::clone(app);
    let failed = |_| {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "cannot answer: the server failed within")
            .with_help("this is a fault in pgdyno; the server's standard error has its place")
    };
    tokio::task::spawn_blocking(move || work(&app)).await.map_err(failed)?
}
