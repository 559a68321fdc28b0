//! The server under observation, and the connections that its probes use.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pgdyno_model::experiment::Telemetry;
use pgdyno_model::target::Target;

use super::cost::ObserverCost;
use super::probe::{ProbeError, ProbeResult};
use super::session::TelemetrySession;

/// The server under observation.
pub struct MonitoredServer {
    /// `PGDATA`, or another directory on its device. None if it is on another host.
    pub data: Option<PathBuf>,
    /// Connection for the probes. Name another database than `loaded`, so that the probes'
    /// transactions do not count in the loaded one.
    pub control: Target,
    /// The database under load.
    pub loaded: Target,
    /// Whether pgdyno runs the server, so that it may create extensions beside the loaded database.
    pub managed: bool,
}

/// Ingredients of probes: the server, the wanted telemetry, and a session that most of the server's
/// probes share.
pub struct TelemetryContext {
    pub(super) server: MonitoredServer,
    pub(super) wanted: Telemetry,
    session: Result<TelemetrySession, ProbeError>,
    pub(super) cost: Arc<ObserverCost>,
}

impl TelemetryContext {
    /// Connects to `server` once, for its cheap probes.
    pub fn new(server: MonitoredServer, wanted: Telemetry) -> Self {
        let cost = Arc::new(ObserverCost::new(server.data.clone()));
        let session = TelemetrySession::open(&server.control, &cost);
        Self { server, wanted, session, cost }
    }

    /// Returns the session that probes share.
    pub(super) fn session(&self) -> Result<&TelemetrySession, ProbeError> {
        self.session.as_ref().map_err(Clone::clone)
    }

    /// Returns a session with a database that has the extension `name`, and the extension's schema.
    /// On a managed server the extension is created beside the loaded database, which stays
    /// unchanged.
    pub(super) fn with_extension(
        &self,
        name: &'static str,
    ) -> Result<(TelemetrySession, String), ProbeError> {
        let control = self.session()?.clone();
        if let Some(schema) = control.extension(name, self.server.managed)? {
            return Ok((control, schema));
        }
        let loaded = self.own_session(&self.server.loaded)?;
        match loaded.extension(name, false)? {
            Some(schema) => Ok((loaded, schema)),
            None => {
                let database = self.server.loaded.database.clone();
                Err(ProbeError::NoExtension { name, database })
            }
        }
    }

    /// Opens a session for one probe alone.
    pub(super) fn own_session(&self, target: &Target) -> Result<TelemetrySession, ProbeError> {
        TelemetrySession::open(target, &self.cost)
    }
}

/// Function that creates a probe of the host from `PGDATA`, or another directory on its device, if
/// that is on this host. Returns none where this kernel has no such source.
pub(super) type MakeHostProbe = fn(Option<&Path>) -> ProbeResult;

/// Function that creates a probe of the server. Returns none where this kernel or server version
/// has no such source.
pub(super) type MakeProbe = fn(&TelemetryContext) -> ProbeResult;
