//! Why a data set could not be loaded.

use pgdyno_connect::control::{ControlError, error_text};
use pgdyno_model::units::Bytes;
use thiserror::Error;

use crate::bulk_load::BulkLoad;

/// A data set that could not be loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// The server refused a statement.
    #[error("cannot load {data}: {doing}: {found}")]
    Sql {
        /// The data set.
        data: String,
        /// The attempt, as a verb with its object.
        doing: String,
        /// The server's message.
        found: String,
        /// SQLSTATE, where the server answered.
        sqlstate: Option<String>,
    },
    /// A connection.
    #[error("cannot load {data}")]
    Connect {
        /// The data set.
        data: String,
        /// Why there is none.
        #[source]
        source: Box<ControlError>,
    },
    /// A column that its generator cannot fill.
    #[error("cannot fill column `{column}` of `{table}`: {found}")]
    Column {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// Why not.
        found: String,
    },
    /// A table of that name is there.
    #[error("cannot make table `{table}`: it is there already, {found}")]
    Exists {
        /// The table.
        table: String,
        /// What is known of it.
        found: String,
        /// Whether pgdyno made it.
        ours: bool,
    },
    /// Somebody loads there now.
    #[error("cannot load {data}: another pgdyno is loading into this database at this moment")]
    Busy {
        /// The data set.
        data: String,
    },
    /// Another load was begun there and not ended.
    #[error("cannot load {data}: the load of {found} was begun here and not ended")]
    Unfinished {
        /// The data set.
        data: String,
        /// The other.
        found: String,
    },
    /// A superuser loads into a schema that others may write to.
    #[error(
        "cannot load {data} into schema {schema} as a superuser: {writers} may write to that schema"
    )]
    OpenSchema {
        /// The data set.
        data: String,
        /// The schema.
        schema: String,
        /// Roles that may put objects into it.
        writers: String,
    },
    /// The user's path names no schema.
    #[error("cannot load {data}: the search_path of the session names no schema that is there")]
    NoSchema {
        /// The data set.
        data: String,
    },
    /// The workload has no table to be partitioned.
    #[error("cannot load {data} in partitions: none of its tables has a `partition_by`")]
    NotPartitioned {
        /// The data set.
        data: String,
    },
    /// Not enough room.
    #[error(
        "cannot load {data}: it takes about {needed}, and the server's disk has {available} free"
    )]
    NoRoom {
        /// The data set.
        data: String,
        /// What it takes with its keys, and WAL.
        needed: Bytes,
        /// Room that is free.
        available: Bytes,
    },
    /// Not enough memory.
    #[error(
        "cannot load {data}: {jobs} connections that build keys take about {needed} of memory, and {available} are available"
    )]
    NoMemory {
        /// The data set.
        data: String,
        /// Connections.
        jobs: usize,
        /// What they take.
        needed: Bytes,
        /// The schema's present state.
        available: Bytes,
    },
    /// Stopped by a signal.
    #[error("stopped while {data} was loaded")]
    Interrupted {
        /// The data set.
        data: String,
    },
}

impl DatasetError {
    /// Creates the error of a statement of `load`, which was `doing` something.
    pub(crate) fn sql(load: &BulkLoad<'_>, doing: &str, error: &postgres::Error) -> Self {
        Self::Sql {
            data: load.identity(),
            doing: doing.to_owned(),
            found: error_text(error),
            sqlstate: error.code().map(|c| c.code().to_owned()),
        }
    }

    /// Returns how to mend the error, where that is known.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Sql { sqlstate: Some(s), .. } if s == "53100" => Some(
                "the disk is full: free room, lower the scale, or name another `storage` directory".into(),
            ),
            Self::Sql { sqlstate: Some(s), .. } if s == "57014" => {
                Some("somebody cancelled it; the same load begun again goes on".into())
            }
            Self::Connect { source, .. } => source.help(),
            Self::Exists { ours: true, .. } => Some(
                "`pgdyno load --replace` drops tables that pgdyno made, and only those; or name another database".into(),
            ),
            Self::Exists { ours: false, .. } => Some(
                "pgdyno drops no table that it did not make: name another database, or another search_path in the DSN"
                    .into(),
            ),
            Self::Busy { .. } => Some("wait for it".into()),
            Self::Unfinished { .. } => Some(
                "end that one with the options it was begun with; or `pgdyno load --replace` drops what it made".into(),
            ),
            Self::OpenSchema { schema, .. } => Some(format!(
                "what they put there would run with a superuser's rights: connect as another role, or name a schema of \
                 your own in the search_path, or REVOKE CREATE ON SCHEMA {schema}"
            )),
            Self::NoSchema { .. } => Some("CREATE SCHEMA, or name one that is there in the search_path".into()),
            Self::NotPartitioned { .. } => Some("leave the partitions out".into()),
            Self::NoRoom { .. } => Some("free room, or lower the scale".into()),
            Self::NoMemory { .. } => Some("lower --jobs, or the server's maintenance_work_mem".into()),
            Self::Sql { .. } | Self::Column { .. } | Self::Interrupted { .. } => None,
        }
    }
}
