//! Workers that dial the coordinator, wherever somebody started them.
//!
//! 1. The coordinator makes a certificate and a secret for the run, and writes both into the token
//!    file ([`token`]): the certificate as its hash.
//! 2. A worker dials. TLS 1.3 with the certificate of the token shows that it speaks to its
//!    coordinator ([`tls`]).
//! 3. It sends a proof that it has the secret. The proof holds for this TLS connection alone, so
//!    that nobody can send it again.
//! 4. The coordinator accepts as many workers as were asked for ([`gather()`]) and refuses the
//!    others, with a reason. While some are awaited it says so each second.
//! 5. Once all have come it tells them to begin, and the protocol of all workers follows.

mod admission;
mod dial;
mod error;
mod gather;
mod stream;
mod tls;
mod token;

pub use dial::serve_joined;
pub use error::{GatherError, JoinError, TokenError};
pub(crate) use gather::gather;
use serde::{Deserialize, Serialize};

/// Time that a peer has to show that it is one of ours.
const HANDSHAKE: std::time::Duration = std::time::Duration::from_secs(10);

/// First message of a worker.
#[derive(Serialize, Deserialize)]
struct Greeting {
    /// Proof that the worker has the secret, in base64.
    proof: String,
    /// Name of the worker's host, for reports.
    host: String,
}

/// Answer of the coordinator to a [`Greeting`].
#[derive(Serialize, Deserialize)]
enum Answer {
    /// The worker is one of those that were asked for.
    Accepted,
    /// Other workers are awaited; sent each second.
    Waiting,
    /// All workers have come: the protocol of all workers follows.
    Begin,
    /// The worker is refused, for this reason.
    Refused(String),
}
