//! Advice: what kind of obstacle an error is, and what the user can do about it.
//!
//! Each error of a crate implements [`Advice`]. Whoever prints or stores an error collects both
//! there, once.
//!
//! ```
//! use pgdyno_model::advice::{Advice, FailureKind};
//!
//! #[derive(Debug)]
//! struct Full;
//!
//! impl std::fmt::Display for Full {
//!     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
//!         f.write_str("cannot write /mnt/log: no space is left")
//!     }
//! }
//!
//! impl std::error::Error for Full {}
//!
//! impl Advice for Full {
//!     fn help(&self) -> Option<String> {
//!         Some("free room there".into())
//!     }
//! }
//!
//! assert_eq!((Full.kind(), Full.help().as_deref()), (FailureKind::Host, Some("free room there")));
//! ```

use std::error::Error;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::names::names;

/// An error that says what kind of obstacle it is, and what the user can do.
pub trait Advice: Error + Send + Sync + 'static {
    /// Returns what the user can do, in the imperative and without a full stop, where that is
    /// known.
    fn help(&self) -> Option<String>;

    /// Returns the kind of obstacle.
    fn kind(&self) -> FailureKind {
        FailureKind::Host
    }
}

/// Kind of obstacle.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The experiment or the command line has to be changed first, as for a storage that
    /// contradicts itself or a device that must not be written.
    Input,
    /// This machine cannot provide something at all: a kernel, a program or a privilege lacks.
    Unavailable,
    /// A signal asked to stop.
    Interrupted,
    /// A statement of pgdyno's own waited too long for a lock, a standby or another process.
    Wait,
    /// A storage could not be made, used or taken down.
    Storage,
    /// The server did not start, ended, or refused a connection, a setting or a statement.
    Server,
    /// The data set could not be loaded.
    Data,
    /// The load could not be offered to its end.
    Load,
    /// Generators on other hosts did not come together, or one of them failed.
    Generators,
    /// A file, a program or another thing of this host.
    #[default]
    #[serde(other)]
    Host,
}

names!(FailureKind, parse);
