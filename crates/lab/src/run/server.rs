//! A server with a data set in it: pgdyno's own, or one that was external.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pgdyno_connect::control::Client;
use pgdyno_exec::directory::too_little_room;
use pgdyno_model::facts::ServerFacts;
use pgdyno_model::target::Target;
use pgdyno_model::units::Bytes;
use pgdyno_observe::telemetry::MonitoredServer;
use pgdyno_postgres::{Cluster, StopMode};

use super::external_server::ExternalSchema;
use crate::LabError;
use crate::provisioner::DATABASE;

/// What a server takes at once for its write-ahead log, unless initdb was told otherwise.
const WAL_SEGMENT: Bytes = Bytes(16 << 20);

/// A server that load can be offered to.
pub(super) enum Server {
    Managed(Box<Cluster>),
    External(Box<ExternalSchema>),
}

impl Server {
    /// A connection for SQL of the workload, whose names mean those of its schema.
    pub(super) fn connect_to_data(&self) -> Result<Client, LabError> {
        match self {
            Self::Managed(cluster) => Ok(cluster.control(DATABASE)?),
            Self::External(external) => external.connect_to_data(),
        }
    }

    /// The schema that the workload's tables lie in.
    pub(super) fn schema(&self) -> &str {
        match self {
            Self::Managed(_) => "public",
            Self::External(external) => external.schema(),
        }
    }

    /// The mark of what this run makes in a database that is not pgdyno's.
    pub(super) fn mark(&self) -> Option<String> {
        match self {
            Self::Managed(_) => None,
            Self::External(external) => external.mark(),
        }
    }

    /// A connection that is not counted among the loaded database's, where there is a choice.
    pub(super) fn connect_aside(&self) -> Result<Client, LabError> {
        match self {
            Self::Managed(cluster) => Ok(cluster.control("postgres")?),
            Self::External(external) => external.control(),
        }
    }

    /// Returns the server that telemetry monitors.
    pub(super) fn subject(&self) -> MonitoredServer {
        match self {
            Self::Managed(cluster) => MonitoredServer {
                data: Some(cluster.data()),
                control: cluster.control_target("postgres"),
                loaded: cluster.control_target(DATABASE),
                managed: true,
            },
            Self::External(external) => {
                let target = external.target(&BTreeMap::new());
                let data = external.data_directory();
                MonitoredServer { data, control: target.clone(), loaded: target, managed: false }
            }
        }
    }

    /// `PGDATA` on the server's own host, wherever that is, if it is known.
    pub(super) fn data_there(&self) -> Option<PathBuf> {
        match self {
            Self::Managed(cluster) => Some(cluster.data()),
            Self::External(external) => external.data_directory_there(),
        }
    }

    /// Where load is offered.
    pub(super) fn load_target(&self, settings: &BTreeMap<String, String>) -> Target {
        match self {
            Self::Managed(cluster) => cluster.target(DATABASE),
            Self::External(external) => external.target(settings),
        }
    }

    /// Where the server listens for generators on other hosts, if it has to be told of them.
    pub(super) fn listens_on(&self) -> Option<SocketAddr> {
        match self {
            Self::Managed(cluster) => cluster.listens_on(),
            Self::External(_) => None,
        }
    }

    /// Lets in generators from `addresses`, and no others; or says why it cannot.
    pub(super) fn admit(
        &self,
        addresses: &BTreeSet<IpAddr>,
        stop: &AtomicBool,
    ) -> Result<(), String> {
        match self {
            Self::Managed(cluster) => {
                cluster.admit(addresses, stop).map_err(|e| LabError::from(e).message())
            }
            Self::External(_) => Ok(()),
        }
    }

    /// How pgdyno itself reaches the loaded database.
    pub(super) fn control_target(&self) -> Target {
        match self {
            Self::Managed(cluster) => cluster.control_target(DATABASE),
            Self::External(external) => external.target(&BTreeMap::new()),
        }
    }

    /// The name of the loaded database.
    pub(super) fn database(&self) -> String {
        self.load_target(&BTreeMap::new()).database
    }

    /// Makes `settings` hold: by the server's configuration, or session by session on a given
    /// server.
    pub(super) fn apply(
        &mut self,
        settings: &BTreeMap<String, String>,
        stop: &AtomicBool,
    ) -> Result<(), LabError> {
        match self {
            Self::Managed(cluster) => {
                cluster.apply(settings, stop).map(drop).map_err(LabError::from)
            }
            Self::External(external) => external.apply(settings),
        }
    }

    /// Ends the server's work until it is needed again.
    pub(super) fn rest(&mut self) -> Result<(), LabError> {
        match self {
            // An idle server would still write, vacuum and hold memory.
            Self::Managed(cluster) => cluster.stop(StopMode::Fast),
            // Another data set may lie on this server: its settings must not stay in force.
            Self::External(external) => external.reset_settings()?,
        }
        Ok(())
    }

    /// Why a managed server is gone, if something that went wrong is explained by that. Its clients
    /// may see it go a moment before its end can be known, so it is given that moment. A given
    /// server answers for itself.
    pub(super) fn death(&mut self) -> Option<LabError> {
        const MOMENT: Duration = Duration::from_secs(1);
        let Self::Managed(cluster) = self else { return None };
        let until = Instant::now() + MOMENT;
        loop {
            if let Some(died) = cluster.death() {
                return Some(died.into());
            }
            if cluster.pid().is_none() || Instant::now() >= until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns `failure`, with the folder of a managed server that has no room left, if one has.
    /// The server itself may have no words for that: its log lies beside its data.
    pub(super) fn with_full_folder(&self, failure: String) -> String {
        let Self::Managed(cluster) = self else { return failure };
        let folders = [cluster.data(), cluster.data().join("pg_wal")];
        let free = |at: &PathBuf| too_little_room(at, WAL_SEGMENT).ok().flatten();
        match folders.iter().find_map(|at| Some((at, free(at)?))) {
            Some((at, free)) => format!("{failure} ({} is full: {free} are free)", at.display()),
            None => failure,
        }
    }

    pub(super) fn facts(&self) -> Result<ServerFacts, LabError> {
        match self {
            Self::Managed(cluster) => Ok(cluster.facts()?),
            Self::External(external) => external.facts(),
        }
    }

    /// The place in the server's log from which [`Server::log_since`] reads.
    pub(super) fn log_mark(&self) -> u64 {
        match self {
            Self::Managed(cluster) => cluster.log_mark(),
            Self::External(_) => 0,
        }
    }

    /// Returns the log of a managed server since `mark`. An external server's log is out of reach.
    pub(super) fn log_since(&self, mark: u64) -> String {
        match self {
            Self::Managed(cluster) => cluster.log_since(mark),
            Self::External(_) => String::new(),
        }
    }
}
