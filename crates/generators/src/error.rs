//! Why a load of several generators is invalid.

use std::fmt;
use std::time::Duration;

use pgdyno_model::{Advice, FailureKind};
use thiserror::Error;

use crate::clock::ClockError;
use crate::generators::DealError;
use crate::join::{GatherError, JoinError};
use crate::protocol::CountsError;

/// When something happened in a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadTime {
    /// Before the load began.
    Before,
    /// In this second of the load, warm-up included, from 0.
    Second(u64),
}

impl fmt::Display for LoadTime {
    /// `before the load began`, `in second 12 of the load`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Before => f.write_str("before the load began"),
            Self::Second(second) => write!(f, "in second {second} of the load"),
        }
    }
}

/// Failure of one generator.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Fault {
    /// The worker could not be started.
    #[error("its worker cannot be started: {0}")]
    Launch(String),
    /// The host has another architecture or system, so that our program does not run there.
    #[error("it is {theirs}, and this pgdyno is made for {ours}")]
    Architecture {
        /// System and architecture of this program, as `uname -s -m` prints them.
        ours: String,
        /// System and architecture of the host.
        theirs: String,
    },
    /// The worker is of another version.
    #[error("its worker is {theirs}, and this is {ours}")]
    Version {
        /// This program's version.
        ours: String,
        /// The worker's version.
        theirs: String,
    },
    /// The worker or the connection to it ended.
    #[error("its worker ended ({0})")]
    Ended(String),
    /// The worker sent nothing for this long.
    #[error("nothing was heard of its worker for {} s", .0.as_secs())]
    Silent(Duration),
    /// The worker sent something that the protocol does not allow.
    #[error("its worker sent {0}")]
    Protocol(String),
    /// A second was lost on the way.
    #[error("its worker sent report {found} where {expected} was next")]
    LostSecond {
        /// Number that was next.
        expected: u64,
        /// Number that came.
        found: u64,
    },
    /// The worker's clock cannot be used.
    #[error("{0}")]
    Clock(ClockError),
    /// The worker began too early or too late, or its clock is not known well enough to tell.
    #[error(
        "it began {:.3} ms from the agreed instant, known to ±{:.3} ms, beyond the {} ms allowed",
        *skew_ns as f64 / 1e6, *uncertainty_ns as f64 / 1e6, allowed.as_secs_f64() * 1e3
    )]
    StartSkew {
        /// Actual start minus the agreed instant (nanoseconds).
        skew_ns: i64,
        /// Uncertainty of `skew_ns`, each way (nanoseconds).
        uncertainty_ns: u64,
        /// Limit of skew and uncertainty together.
        allowed: Duration,
    },
    /// The worker's clock is not known well enough to agree on an instant.
    #[error(
        "its clock is known to ±{:.3} ms, beyond the {} ms allowed",
        *uncertainty_ns as f64 / 1e6,
        allowed.as_secs_f64() * 1e3
    )]
    Uncertain {
        /// Uncertainty of the clock, each way (nanoseconds).
        uncertainty_ns: u64,
        /// Limit of the uncertainty.
        allowed: Duration,
    },
    /// The worker's counts cannot be added to the others'.
    #[error("it counted {0}")]
    Counts(CountsError),
    /// The worker's seconds do not add up to its total.
    #[error("its seconds add up to {seconds} transactions, and it counted {total}")]
    Sum {
        /// Transactions in the seconds (count).
        seconds: u64,
        /// Transactions in the total (count).
        total: u64,
    },
    /// A thread of the worker was busy nearly all the time, so that it, and not the server, may
    /// have limited the throughput.
    #[error("it became saturated: a thread was busy {:.0}% of the window", share * 100.0)]
    Saturated {
        /// CPU time of the thread, as a share of the window.
        share: f64,
        /// First second of the load in which the thread was that busy, if there is one.
        since: Option<u64>,
    },
    /// The worker's share of the load failed.
    #[error("{reason}")]
    Load {
        reason: String,
        /// Advice to the user.
        help: Option<String>,
    },
}

/// Why a load of several generators gave no valid measurement.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum GeneratorsError {
    /// The load cannot be dealt to the generators.
    #[error("{0}")]
    Deal(DealError),
    /// A generator failed; the others were stopped.
    #[error("generator {name} {when}: {fault}")]
    Generator {
        name: String,
        /// When the fault began, or was noticed.
        when: LoadTime,
        fault: Fault,
    },
    /// Workers did not come together.
    #[error("{0}")]
    Gather(GatherError),
    /// The server does not let generators in.
    #[error("the server cannot be told to let generators in: {0}")]
    Admission(String),
    /// The distributions of all seconds differ from those of the totals.
    #[error("the seconds of all generators do not add up to their totals")]
    Totals,
    /// A stop came before the measured window opened.
    #[error("the load was interrupted before the measured window opened")]
    Interrupted,
    /// Something that several generators cannot do.
    #[error("{0} cannot be used with several generators")]
    Unsupported(&'static str),
    /// The server is named by a socket, which other hosts do not have.
    #[error("the server is named by the socket {0}, which generators on other hosts do not have")]
    Socket(String),
}

/// Why a worker served no load to its end.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// The system refuses a thread.
    #[error("cannot start a worker's threads: {0}")]
    Threads(std::io::Error),
    /// The orders ended.
    #[error("the coordinator ended the connection before the load was over")]
    Abandoned,
    /// The load failed.
    #[error("{0}")]
    Load(String),
    /// The worker could not join.
    #[error(transparent)]
    Join(JoinError),
}

impl Advice for WorkerError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Join(error) => error.help(),
            Self::Threads(_) | Self::Abandoned | Self::Load(_) => None,
        }
    }

    fn kind(&self) -> FailureKind {
        FailureKind::Generators
    }
}

impl GeneratorsError {
    /// Tells whether the same load may go better another time: a generator was lost or late, and
    /// neither the load nor the choice of generators is wrong.
    pub fn may_pass(&self) -> bool {
        use Fault::{Clock, Ended, Launch, Silent, StartSkew, Uncertain};
        match self {
            Self::Generator { fault, .. } => matches!(
                fault,
                Launch(_) | Ended(_) | Silent(_) | Clock(_) | StartSkew { .. } | Uncertain { .. }
            ),
            Self::Gather(error) => error.may_pass(),
            _ => false,
        }
    }
}

impl Advice for GeneratorsError {
    fn help(&self) -> Option<String> {
        let words = match self {
            Self::Generator { fault, .. } => return fault.help(),
            Self::Gather(error) => return error.help(),
            Self::Deal(DealError::TooFewClients { .. }) => "use more clients, or fewer generators",
            Self::Socket(_) => "name it by a host that they reach (-h)",
            Self::Totals => "this is a bug: please report it",
            _ => return None,
        };
        Some(words.to_owned())
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Interrupted => FailureKind::Interrupted,
            _ => FailureKind::Generators,
        }
    }
}

impl Fault {
    /// Returns the second of the load in which it began, where that is not when it was noticed.
    pub(crate) fn since(&self) -> Option<u64> {
        match self {
            Self::Saturated { since, .. } => *since,
            _ => None,
        }
    }

    fn help(&self) -> Option<String> {
        let words = match self {
            Self::Load { help, .. } => return help.clone(),
            Self::Architecture { .. } => "use hosts of this architecture",
            Self::Version { .. } => "use the very same pgdyno on all hosts",
            Self::StartSkew { .. } | Self::Uncertain { .. } => {
                "use hosts that are less busy or nearer, or allow more (--max-start-skew)"
            }
            Self::Saturated { .. } => {
                "use more threads, weights or hosts; or allow it (--allow-saturated, or \
                 `generators.allow_saturated = true`)"
            }
            Self::Silent(_) => "see whether the host and the network to it are up",
            Self::LostSecond { .. } | Self::Sum { .. } => "this is a bug: please report it",
            _ => return None,
        };
        Some(words.to_owned())
    }
}
