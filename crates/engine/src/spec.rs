//! What load is to be offered.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use pgdyno_model::experiment::{Length, LoadOptions, Protocol};
use pgdyno_model::target::Servers;

use crate::client_log::ClientLog;
use crate::ledger::Ledger;
use crate::reactor::choice::ReactorChoice;
use crate::script::{VariableValue, WeightedScript};
use crate::transaction_log::TransactionLog;

/// Says that all randomness is to be pgbench's for `--random-seed`: the same values for one client,
/// and for every client of many; which script a client chooses, and when with a rate, is pgbench's
/// where each thread has one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PgbenchSeeds {
    /// The seed.
    pub seed: u64,
}

/// What load to offer, and where.
#[derive(Clone)]
pub struct LoadSpec {
    /// Where to: each client's connection is to one of them.
    pub servers: Servers,
    /// What clients execute.
    pub scripts: Vec<WeightedScript>,
    /// Connections.
    pub clients: NonZeroU32,
    /// Event loops; more than clients are not used.
    pub threads: NonZeroU32,
    /// How statements are sent.
    pub protocol: Protocol,
    /// Load offered before the window opens.
    pub warm_up: Duration,
    /// The measured window.
    pub length: Length,
    /// Where all randomness comes from.
    pub seed: u64,
    /// Variables that scripts find set, such as `scale`.
    pub variables: Vec<(String, VariableValue)>,
    /// What is done beyond the scripts; its variables win over `variables`.
    pub options: LoadOptions,
    /// Where every transaction is logged.
    pub log: Option<Arc<dyn TransactionLog>>,
    /// Where every transaction is written down before it is sent (see [`crate::ledger`]).
    pub ledger: Option<Arc<dyn Ledger>>,
    /// Is told of clients' errors as they happen, in pgbench's manner.
    pub say: Option<ClientLog>,
    /// Whether `say` is told also of errors that fail a transaction or have it tried again.
    pub say_failures: bool,
    /// Whether `say` is told also of every step that clients take, and of every reply.
    pub say_steps: bool,
    /// pgbench's randomness instead of `seed`'s.
    pub pgbench_seeds: Option<PgbenchSeeds>,
    /// How bytes are carried.
    pub reactor: ReactorChoice,
}

impl LoadSpec {
    /// One client that executes `scripts` for ten seconds, simple protocol, no warm-up, nothing
    /// else.
    #[must_use]
    pub fn new(servers: impl Into<Servers>, scripts: Vec<WeightedScript>) -> Self {
        Self {
            servers: servers.into(),
            scripts,
            clients: NonZeroU32::MIN,
            threads: NonZeroU32::MIN,
            protocol: Protocol::Simple,
            warm_up: Duration::ZERO,
            length: Length::Duration(pgdyno_model::units::Span(Duration::from_secs(10))),
            seed: 0,
            variables: Vec::new(),
            options: LoadOptions::default(),
            log: None,
            ledger: None,
            say: None,
            say_failures: false,
            say_steps: false,
            pgbench_seeds: None,
            reactor: ReactorChoice::default(),
        }
    }

    /// Event loops that run (count): not more than clients.
    pub(crate) fn event_loops(&self) -> u32 {
        self.threads.get().min(self.clients.get())
    }
}
