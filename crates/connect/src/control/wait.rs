//! Waits of control sessions' statements at the server.
//!
//! A working statement may take any time. One that waits for another session is reported to the
//! listener ([`listen`]), and given up after [`LIMIT`].

use std::error::Error as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, io};

/// Longest wait for another session before the statement is given up.
pub const LIMIT: Duration = Duration::from_secs(20);

/// Reason why a statement waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A lock.
    Lock {
        /// The kind of the lock, as in `pg_stat_activity.wait_event`: `relation`.
        kind: String,
        /// Processes of the server that hold the lock or stand before the statement in its queue.
        holders: Vec<u32>,
    },
    /// A standby's confirmation of a commit.
    Standby {
        /// The setting `synchronous_standby_names`.
        names: String,
    },
    /// Another process of the server; the wait event, as `BufferPin: BufferPin`.
    Process {
        /// The wait event.
        event: String,
    },
    /// An answer of any kind: the server takes no other session either.
    Answer,
}

impl Wait {
    /// Returns how to end the wait, where that is known.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Lock { holders, .. } => holders.first().map(|pid| {
                format!(
                    "see in pg_stat_activity what process {pid} does, and end it or wait for it: \
                     SELECT pg_terminate_backend({pid})"
                )
            }),
            Self::Standby { .. } => Some(
                "start a standby that `synchronous_standby_names` names, or empty the setting"
                    .into(),
            ),
            Self::Process { .. } => None,
            Self::Answer => Some("is the server, or its machine, paused or out of disk?".into()),
        }
    }

    /// Whether two waits have the same reason, apart from the holders of a lock.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Lock { kind: one, .. }, Self::Lock { kind: other, .. }) => one == other,
            (one, other) => one == other,
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock { kind, holders } if holders.is_empty() => {
                write!(f, "a lock ({kind}) of the server")
            }
            Self::Lock { kind, holders } => {
                let noun = if holders.len() == 1 { "process" } else { "processes" };
                let holders: Vec<String> = holders.iter().map(u32::to_string).collect();
                write!(f, "a lock ({kind}) that the server's {noun} {} holds", holders.join(", "))
            }
            Self::Standby { names } => {
                write!(f, "a standby to confirm its commit (synchronous_standby_names = '{names}')")
            }
            Self::Process { event } => write!(f, "another process of the server ({event})"),
            Self::Answer => f.write_str("the server, which answers no other session either"),
        }
    }
}

/// A statement that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Reason of the wait.
    pub wait: Wait,
    /// Length of the wait so far.
    pub since: Duration,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "waited {} s for {}", self.since.as_secs(), self.wait)
    }
}

impl std::error::Error for Waiting {}

/// Returns the wait for which a statement was given up, if `error` stems from one.
pub fn wait_of(error: &tokio_postgres::Error) -> Option<&Waiting> {
    error.source()?.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref()
}

/// Callback for each reported wait.
pub type WaitListener = Arc<dyn Fn(&Waiting) + Send + Sync>;

static LISTENER: Mutex<Option<WaitListener>> = Mutex::new(None);
static IS_PATIENT: AtomicBool = AtomicBool::new(false);

/// Sets the listener for waits that last longer than a few seconds, in place of the one before.
pub fn listen(listener: Option<WaitListener>) {
    *LISTENER.lock().unwrap_or_else(PoisonError::into_inner) = listener;
}

/// Lifts the limit on waits for this process, as pgbench has none.
pub fn be_patient() {
    IS_PATIENT.store(true, Ordering::Relaxed);
}

pub(super) fn is_patient() -> bool {
    IS_PATIENT.load(Ordering::Relaxed)
}

pub(super) fn tell(waiting: &Waiting) {
    let listener = LISTENER.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(listener) = listener {
        listener(waiting);
    }
}
