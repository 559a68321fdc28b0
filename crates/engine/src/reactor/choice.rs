//! Which reactor serves a thread's clients.

use pgdyno_connect::Stream;
use strum::{EnumString, IntoStaticStr, VariantNames};

use super::uring::Uring;

/// Reactor that the user asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum ReactorChoice {
    /// The reactor that costs least: `io_uring` from [`ReactorChoice::URING_FROM`] clients on, else
    /// epoll.
    #[default]
    Auto,
    /// Accepted for older command lines. epoll serves the clients, for it costs less than blocking
    /// reads; the report says so.
    Blocking,
    /// epoll.
    Epoll,
    /// `io_uring`, where the kernel allows it and the connection is not encrypted; else epoll.
    IoUring,
}

impl ReactorChoice {
    /// Clients on a thread from which on `io_uring` costs less than epoll (count).
    ///
    /// Source: the bench `vs_pgbench`.
    pub const URING_FROM: usize = 16;

    /// Names that options accept.
    pub const NAMES: &[&str] = Self::VARIANTS;

    /// Returns the choice called `name`.
    pub fn parse(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

/// Reactor that serves a thread's clients.
#[derive(Clone, Debug, PartialEq, Eq, IntoStaticStr)]
pub(crate) enum ReactorKind {
    /// epoll; `instead` says why another reactor that was asked for does not serve.
    #[strum(serialize = "epoll")]
    Epoll { instead: Option<String> },
    /// `io_uring`.
    #[strum(serialize = "io_uring")]
    Uring,
}

/// Chooses the reactor for `streams`.
///
/// With `reconnects`, each transaction has a connection of its own and there is none yet.
pub(crate) fn choose(choice: ReactorChoice, streams: &[Stream], reconnects: bool) -> ReactorKind {
    let epoll = ReactorKind::Epoll { instead: None };
    let instead = |why: &str| ReactorKind::Epoll { instead: Some(why.to_owned()) };
    let is_encrypted = !streams.iter().all(Stream::is_plain);
    match choice {
        ReactorChoice::Epoll => epoll,
        ReactorChoice::Blocking => instead("it costs less than blocking reads, which are gone"),
        ReactorChoice::IoUring if reconnects => {
            instead("every transaction has a connection of its own")
        }
        ReactorChoice::IoUring if is_encrypted => {
            instead("io_uring does not serve encrypted connections")
        }
        // Making connections costs so much that the reactor makes no difference.
        ReactorChoice::Auto if is_encrypted || reconnects => epoll,
        ReactorChoice::Auto if streams.len() < ReactorChoice::URING_FROM => epoll,
        ReactorChoice::Auto | ReactorChoice::IoUring => match Uring::probe() {
            Ok(()) => ReactorKind::Uring,
            Err(e) => instead(&format!("the kernel refuses io_uring: {e}")),
        },
    }
}
