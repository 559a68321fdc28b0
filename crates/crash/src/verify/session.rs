//! The connection by which a server is verified, and its errors as the oracles take them.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pgdyno_connect::control::{Client, ControlError, error_text};
use pgdyno_dataset::workload::{Workload, WorkloadError};
use pgdyno_durability::{Observed, Unseen, is_damage};
use pgdyno_postgres::Cluster;

use super::watchdog::Watchdog;
use crate::workload::CrashLoad;
use pgdyno_provision::provisioner::DATABASE;

/// A session as it was begun, without just-in-time compilation, which takes longer than the short
/// queries that it is begun for: their costs are overrated.
pub(super) const PLAIN: &str = "RESET ALL; SET jit = off";

/// The load that is verified, its scale and the time limits of verification.
#[derive(Debug)]
pub(crate) struct Terms<'a> {
    /// The load that was offered.
    pub(crate) load: &'static CrashLoad,
    /// The workload whose tables it changes.
    pub(crate) workload: Workload,
    /// The data set's scale.
    pub(crate) scale: u32,
    /// How long each step may take.
    pub(crate) limit: Duration,
    pub(crate) stop: &'a AtomicBool,
}

impl<'a> Terms<'a> {
    /// Returns the terms for `load` at `scale`, with `limit` for each step.
    ///
    /// # Errors
    /// The load has no such workload.
    pub(crate) fn new(
        load: &'static CrashLoad,
        scale: u32,
        limit: Duration,
        stop: &'a AtomicBool,
    ) -> Result<Self, WorkloadError> {
        Ok(Self { load, workload: load.workload()?, scale, limit, stop })
    }
}

/// A connection to the server under verification, each question of which has a time limit.
pub(super) struct VerifySession<'a> {
    /// Or why there is none.
    pub(super) client: Observed<Client>,
    pub(super) watchdog: &'a Watchdog<'a>,
}

impl<'a> VerifySession<'a> {
    /// Connects to `cluster`. A connection that broke fails each of what comes after it, as it
    /// should: none of that was seen.
    pub(super) fn open(cluster: &Cluster, watchdog: &'a Watchdog<'a>) -> Self {
        let client = watchdog
            .step("connecting", || cluster.control(DATABASE).map_err(|e| connection_failed(&e)));
        Self { client, watchdog }
    }

    /// Returns the observation of `look`, within the time limit. `name` names it in messages.
    pub(super) fn ask<T>(
        &mut self,
        name: &str,
        look: impl FnOnce(&mut Client) -> Observed<T>,
    ) -> Observed<T> {
        match &mut self.client {
            Ok(client) => self.watchdog.step(name, || look(client)),
            Err(unseen) => Err(unseen.clone()),
        }
    }
}

/// Says what an error means for the verdict: a server that refuses to read durable data is damaged.
/// Anything else, as a lost connection, a lack of memory or an operator, says nothing of it.
pub(super) fn unseen(error: &tokio_postgres::Error) -> Unseen {
    match error.code() {
        Some(code) => {
            let what = format!("{} (SQLSTATE {})", error_text(error), code.code());
            if is_damage(code.code()) { Unseen::Damaged(what) } else { Unseen::CouldNotRun(what) }
        }
        None => Unseen::CouldNotRun(error_text(error)),
    }
}

/// Says what a failed connection means for the verdict.
pub(super) fn connection_failed(error: &ControlError) -> Unseen {
    if error.is_of_database() {
        Unseen::Damaged(error.to_string())
    } else {
        Unseen::CouldNotRun(error.to_string())
    }
}
