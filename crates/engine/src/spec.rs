//! The description of a load.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use pgdyno_model::experiment::{Length, LoadOptions, Protocol};
use pgdyno_model::target::Servers;

use crate::client_log::ClientLog;
use crate::copy::GrowingTable;
use crate::flushes::DiskFlushes;
use crate::group::LoadGroup;
use crate::ledger::Ledger;
use crate::reactor::choice::ReactorChoice;
use crate::schedule::{Moment, Schedule};
use crate::script::{VariableValue, WeightedScript};
use crate::transaction_log::TransactionLog;

/// Time after the last begin of a transaction in which those under way may still end.
const GRACE: Duration = Duration::from_secs(30);

/// End of a measured window whose length is a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowEnd {
    /// Ends when the time is over. A transaction under way then does not count, and the load lasts
    /// to the end even if, with a rate, nothing more is due.
    #[default]
    AtTime,
    /// Ends with the last transaction that began in the time, as in pgbench: whatever began counts,
    /// and the load ends once nothing more is due.
    WithLastTransaction,
}

/// The load to offer, and the servers to offer it to.
///
/// [`LoadSpec::new`] has defaults for everything but servers and scripts.
///
/// ```
/// use std::num::NonZeroU32;
/// use std::sync::Arc;
///
/// use pgdyno_engine::LoadSpec;
/// use pgdyno_engine::script::{Script, WeightedScript};
/// use pgdyno_model::experiment::Protocol;
/// use pgdyno_model::target::{Address, Target};
///
/// let address = Address::Tcp { host: "localhost".into(), port: 5432 };
/// let script = Arc::new(Script::parse("one.sql", "SELECT 1;")?);
/// let script = WeightedScript::new(script, 1);
/// let spec = LoadSpec {
///     clients: NonZeroU32::MIN.saturating_add(15),
///     protocol: Protocol::Prepared,
///     ..LoadSpec::new(Target::new(address, "me", "bench"), vec![script])
/// };
/// assert_eq!(spec.clients.get(), 16);
/// # Ok::<(), pgdyno_engine::script::ScriptError>(())
/// ```
#[derive(Clone)]
pub struct LoadSpec {
    /// Servers. Each client connects to one of them.
    pub servers: Servers,
    /// Scripts that clients choose from.
    pub scripts: Vec<WeightedScript>,
    /// Clients, each with a connection (count).
    pub clients: NonZeroU32,
    /// Groups that the clients and scripts are divided into, in order; empty where all clients run
    /// all scripts. Groups exclude a rate among `options`, and `draws_as_pgbench`. See
    /// [`LoadSpec::with_groups`].
    pub groups: Vec<LoadGroup>,
    /// Threads with an event loop; not more than clients are used.
    pub threads: NonZeroU32,
    /// Protocol that statements are sent with.
    pub protocol: Protocol,
    /// Time of load before the measured window opens.
    pub warm_up: Duration,
    /// Length of the measured window.
    pub length: Length,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Variables that are set before the first transaction, such as `scale`.
    pub variables: Vec<(String, VariableValue)>,
    /// Tables that `\copyfrom` fills. A load of several generators cannot have any.
    pub tables: Vec<Arc<GrowingTable>>,
    /// Rate, retries, reconnections and the like. Its variables win over `variables`.
    pub options: LoadOptions,
    /// Log of every transaction.
    pub log: Option<Arc<dyn TransactionLog>>,
    /// Ledger that records every transaction before it is sent (see [`crate::ledger`]).
    pub ledger: Option<Arc<dyn Ledger>>,
    /// Flushes of the disk under the server's WAL, by which commits are judged
    /// (`pgdyno_model::FlushAccounting`).
    pub flushes: Option<DiskFlushes>,
    /// Takes clients' messages as things happen, worded as pgbench words them.
    pub client_log: Option<ClientLog>,
    /// Whether errors that fail or retry a transaction are logged, too.
    pub log_failures: bool,
    /// Whether every step and every reply is logged, too.
    pub log_steps: bool,
    /// Whether random numbers are drawn as pgbench draws them with `--random-seed`.
    ///
    /// Each client draws pgbench's values. Which script it chooses, and when with a rate, equals
    /// pgbench's if each thread has one client.
    pub draws_as_pgbench: bool,
    /// End of a window whose length is a time.
    pub window_end: WindowEnd,
    /// Reactor that carries the bytes.
    pub reactor: ReactorChoice,
}

impl LoadSpec {
    /// Describes one client that executes `scripts` for ten seconds with the simple protocol and
    /// without a warm-up.
    pub fn new(servers: impl Into<Servers>, scripts: Vec<WeightedScript>) -> Self {
        Self {
            servers: servers.into(),
            scripts,
            clients: NonZeroU32::MIN,
            groups: Vec::new(),
            threads: NonZeroU32::MIN,
            protocol: Protocol::Simple,
            warm_up: Duration::ZERO,
            length: Length::Duration(pgdyno_model::units::Span(Duration::from_secs(10))),
            seed: 0,
            variables: Vec::new(),
            tables: Vec::new(),
            options: LoadOptions::default(),
            log: None,
            ledger: None,
            flushes: None,
            client_log: None,
            log_failures: false,
            log_steps: false,
            draws_as_pgbench: false,
            window_end: WindowEnd::default(),
            reactor: ReactorChoice::default(),
        }
    }

    /// Divides the scripts among `groups`, whose clients are then all clients.
    #[must_use]
    pub fn with_groups(self, groups: Vec<LoadGroup>) -> Self {
        let sizes = groups.iter().map(|g| g.group.clients);
        let clients = sizes.reduce(|a, b| a.saturating_add(b.get())).unwrap_or(self.clients);
        Self { clients, groups, ..self }
    }

    /// Returns the schedule of the load if it begins at `start`.
    pub fn schedule(&self, start: Moment) -> Schedule {
        let opening = start.after(self.warm_up);
        let (last_begin, transactions) = match self.length {
            Length::Duration(span) => (opening.after(span.0), None),
            Length::Transactions(count) => (Moment::NEVER, Some(count)),
        };
        let closing = match self.window_end {
            WindowEnd::AtTime => last_begin,
            WindowEnd::WithLastTransaction => Moment::NEVER,
        };
        Schedule { start, opening, last_begin, closing, transactions, grace: GRACE }
    }

    /// Event loops that run (count): not more than clients.
    pub fn event_loops(&self) -> u32 {
        self.threads.get().min(self.clients.get())
    }
}
