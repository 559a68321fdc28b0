//! A server with a data set in it: pgdyno's own, or an external one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pgdyno_connect::control::Client;
use pgdyno_model::facts::ServerFacts;
use pgdyno_model::target::Target;
use pgdyno_observe::telemetry::MonitoredServer;
use pgdyno_postgres::{Cluster, StopMode};

use super::external_server::ExternalSchema;
use pgdyno_provision::BenchError;
use pgdyno_provision::provisioner::DATABASE;

/// A server that load can be offered to.
pub(super) enum Server {
    Managed(Box<Cluster>),
    External(Box<ExternalSchema>),
}

impl Server {
    /// Opens a connection for SQL of the workload, whose names stand for those of its schema.
    pub(super) fn connect_to_data(&self) -> Result<Client, BenchError> {
        match self {
            Self::Managed(cluster) => Ok(cluster.control(DATABASE)?),
            Self::External(external) => external.connect_to_data(),
        }
    }

    /// Returns the schema that the workload's tables lie in.
    pub(super) fn schema(&self) -> &str {
        match self {
            Self::Managed(_) => "public",
            Self::External(external) => external.schema(),
        }
    }

    /// Returns the mark of everything that this run makes in an external server's database.
    pub(super) fn mark(&self) -> Option<String> {
        match self {
            Self::Managed(_) => None,
            Self::External(external) => external.mark(),
        }
    }

    /// Opens a connection to another database than the loaded one, if there is a choice: the loaded
    /// one's counters do not count it.
    pub(super) fn connect_aside(&self) -> Result<Client, BenchError> {
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

    /// Returns `PGDATA` on the server's own host, if it is known.
    pub(super) fn data_there(&self) -> Option<PathBuf> {
        match self {
            Self::Managed(cluster) => Some(cluster.data()),
            Self::External(external) => external.data_directory_there(),
        }
    }

    /// Returns the target of load.
    pub(super) fn load_target(&self, settings: &BTreeMap<String, String>) -> Target {
        match self {
            Self::Managed(cluster) => cluster.target(DATABASE),
            Self::External(external) => external.target(settings),
        }
    }

    /// Returns `target`, of a server beside this one, with the same schema and `settings`.
    pub(super) fn prepared(&self, target: Target, settings: &BTreeMap<String, String>) -> Target {
        match self {
            Self::Managed(_) => target,
            Self::External(external) => external.prepared(target, settings),
        }
    }

    /// Returns the address on which the server listens for generators on other hosts, if they have
    /// to be admitted.
    pub(super) fn listens_on(&self) -> Option<SocketAddr> {
        match self {
            Self::Managed(cluster) => cluster.listens_on(),
            Self::External(_) => None,
        }
    }

    /// Admits generators from `addresses`, and no others. The error says why they cannot be
    /// admitted.
    pub(super) fn admit(
        &self,
        addresses: &BTreeSet<IpAddr>,
        stop: &AtomicBool,
    ) -> Result<(), String> {
        match self {
            Self::Managed(cluster) => {
                cluster.admit(addresses, stop).map_err(|e| BenchError::from(e).message())
            }
            Self::External(_) => Ok(()),
        }
    }

    /// Returns the target of pgdyno's own connections to the loaded database.
    pub(super) fn control_target(&self) -> Target {
        match self {
            Self::Managed(cluster) => cluster.control_target(DATABASE),
            Self::External(external) => external.target(&BTreeMap::new()),
        }
    }

    /// Returns the name of the loaded database.
    pub(super) fn database(&self) -> String {
        self.load_target(&BTreeMap::new()).database
    }

    /// Applies `settings`: in the configuration of a managed server, or session by session on an
    /// external one.
    pub(super) fn apply(
        &mut self,
        settings: &BTreeMap<String, String>,
        stop: &AtomicBool,
    ) -> Result<(), BenchError> {
        match self {
            Self::Managed(cluster) => {
                cluster.apply(settings, stop).map(drop).map_err(BenchError::from)
            }
            Self::External(external) => external.apply(settings),
        }
    }

    /// Stops a managed server until it is needed again, or puts back the settings of an external
    /// one.
    pub(super) fn rest(&mut self) -> Result<(), BenchError> {
        match self {
            // An idle server would still write, vacuum and hold memory.
            Self::Managed(cluster) => cluster.stop(StopMode::Fast),
            // Another data set may lie on this server: its settings must not stay in force.
            Self::External(external) => external.reset_settings()?,
        }
        Ok(())
    }

    /// Returns why a managed server died, as the explanation of an error that was just met. Clients
    /// may notice before the end can be seen, so this waits up to a second for it. Returns none for
    /// an external server.
    pub(super) fn death(&mut self) -> Option<BenchError> {
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

    pub(super) fn facts(&self) -> Result<ServerFacts, BenchError> {
        match self {
            Self::Managed(cluster) => Ok(cluster.facts()?),
            Self::External(external) => external.facts(),
        }
    }

    /// Returns the place in the server's log from which [`Server::log_since`] reads.
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
