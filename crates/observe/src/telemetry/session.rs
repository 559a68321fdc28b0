//! A probe's connection to the server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pgdyno_connect::control;
use pgdyno_connect::control::Client;
use pgdyno_model::target::Target;
use postgres_protocol::escape::escape_identifier;

use super::cost::ObserverCost;
use super::probe::ProbeError;

/// How long a statement may take (seconds): longer than the server itself lets it run.
const STATEMENT_LIMIT: Duration = Duration::from_secs(15);

/// A connection that several probes may share.
#[derive(Clone)]
pub(super) struct Session(Arc<Mutex<Client>>);

impl Session {
    /// Connects, and has what the backend costs counted among what watching costs.
    pub(super) fn open(target: &Target, cost: &ObserverCost) -> Result<Self, ProbeError> {
        let mut client = control::connect(target)?;
        // A server that hangs, or a table that is locked, must not hold up the other probes for
        // good; nor may watching start parallel workers.
        let ready = "SET statement_timeout = '10s'; SET lock_timeout = '200ms'; \
            SET max_parallel_workers_per_gather = 0";
        client.set_statement_limit(Some(STATEMENT_LIMIT));
        client.batch_execute(ready)?;
        let pid: i32 = client.query_one("SELECT pg_catalog.pg_backend_pid()", &[])?.try_get(0)?;
        cost.add_backend(pid);
        Ok(Self(Arc::new(Mutex::new(client))))
    }

    pub(super) fn client(&self) -> MutexGuard<'_, Client> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the server has a view of that name.
    pub(super) fn has_relation(&self, name: &str) -> Result<bool, ProbeError> {
        let row =
            self.client().query_one("SELECT pg_catalog.to_regclass($1) IS NOT NULL", &[&name]);
        Ok(row?.try_get(0)?)
    }

    /// The schema of an extension that is there; on a server of pgdyno's own it is created if need
    /// be.
    pub(super) fn extension(&self, name: &str, create: bool) -> Result<Option<String>, ProbeError> {
        let mut client = self.client();
        if create {
            client
                .batch_execute(&format!(
                    "SET client_min_messages = 'error'; CREATE EXTENSION IF NOT EXISTS {name} SCHEMA public"
                ))?;
        }
        let row = client.query_opt(
            "SELECT n.nspname::text FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace \
             WHERE e.extname = $1",
            &[&name],
        );
        let schema: Option<String> = row?.map(|r| r.try_get(0)).transpose()?;
        Ok(schema.map(|schema| escape_identifier(&schema)))
    }
}
