//! A storage directory and a journal for one test.

use std::fs;
use std::path::Path;

use pgdyno_exec::Journal;
use pgdyno_postgres::cluster::cluster_directory;
use pgdyno_postgres::{Cluster, ClusterSpec};

use crate::scratch::Scratch;
use crate::server::install;
use crate::wait::RUN;

/// A storage directory and a journal of the test's own.
#[derive(Debug)]
pub struct Place {
    root: Scratch,
    /// The journal, in the directory `state`.
    pub journal: Journal,
}

impl Place {
    /// Creates an empty storage directory, which the server's account can enter, and its journal.
    #[allow(clippy::new_without_default, reason = "a folder is no default value")]
    pub fn new() -> Self {
        let root = Scratch::new();
        let journal = Journal::open(&root.path().join("state")).unwrap();
        Self { root, journal }
    }

    /// Returns the storage directory's path.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// Returns the plan of a cluster in the storage directory.
    pub fn spec(&self) -> ClusterSpec {
        ClusterSpec::new(install(None), cluster_directory(self.path()).unwrap()).unwrap()
    }

    /// Creates a cluster in the storage directory.
    pub fn cluster(&self) -> Cluster {
        Cluster::create(self.spec(), &self.journal, &RUN).unwrap()
    }

    /// Returns whether nothing is left but the journal's own directory.
    pub fn is_clean(&self) -> bool {
        let names: Vec<_> =
            fs::read_dir(self.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
        names == ["state"] && self.journal.entries().unwrap().is_empty()
    }
}
