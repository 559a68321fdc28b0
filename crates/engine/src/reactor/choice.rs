//! Which reactor serves a thread's clients.

use std::fmt;

use super::uring::Uring;
use crate::connect::Stream;

/// What the user asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReactorChoice {
    /// Whatever costs least here.
    #[default]
    Auto,
    /// Accepted for older command lines: serves clients as [`ReactorChoice::Epoll`] does, which
    /// costs less than blocking reads, and says so.
    Blocking,
    /// epoll, always.
    Epoll,
    /// `io_uring`, wherever the kernel lets this process use it and the connection is not
    /// encrypted.
    IoUring,
}

impl ReactorChoice {
    /// From how many clients on a thread `io_uring` costs less than epoll (count), by the bench
    /// `vs_pgbench`.
    pub const URING_FROM: usize = 16;

    /// The names that options accept.
    pub const NAMES: &[&str] = &["auto", "blocking", "epoll", "io_uring"];

    /// The choice of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "blocking" => Some(Self::Blocking),
            "epoll" => Some(Self::Epoll),
            "io_uring" => Some(Self::IoUring),
            _ => None,
        }
    }
}

/// What serves a thread's clients, and why it is not what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReactorKind {
    Epoll { instead: Option<String> },
    Uring,
}

impl fmt::Display for ReactorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Epoll { instead: None } => f.write_str("epoll"),
            Self::Epoll { instead: Some(why) } => write!(f, "epoll ({why})"),
            Self::Uring => f.write_str("io_uring"),
        }
    }
}

/// What serves `streams`; `renewed` where every transaction has a connection of its own, and there
/// is none yet.
pub(crate) fn choose(choice: ReactorChoice, streams: &[Stream], renewed: bool) -> ReactorKind {
    let encrypted = !streams.iter().all(Stream::is_plain);
    match choice {
        ReactorChoice::Epoll => ReactorKind::Epoll { instead: None },
        ReactorChoice::Blocking => ReactorKind::Epoll {
            instead: Some("it costs less than blocking reads, which are gone".to_owned()),
        },
        ReactorChoice::IoUring if renewed => ReactorKind::Epoll {
            instead: Some("every transaction has a connection of its own".to_owned()),
        },
        // Making connections costs so much more that nothing is gained.
        ReactorChoice::Auto if encrypted || renewed => ReactorKind::Epoll { instead: None },
        ReactorChoice::Auto if streams.len() < ReactorChoice::URING_FROM => {
            ReactorKind::Epoll { instead: None }
        }
        ReactorChoice::IoUring if encrypted => ReactorKind::Epoll {
            instead: Some("io_uring does not serve encrypted connections".to_owned()),
        },
        ReactorChoice::Auto | ReactorChoice::IoUring => match Uring::probe() {
            Ok(()) => ReactorKind::Uring,
            Err(e) => {
                ReactorKind::Epoll { instead: Some(format!("the kernel refuses io_uring: {e}")) }
            }
        },
    }
}
