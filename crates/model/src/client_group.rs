//! Groups of clients: each runs scripts of its own beside the others.

use std::fmt;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::load_rate::LoadRate;
use crate::units::Span;

/// Clients that run scripts of their own, at a pace of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientGroup {
    /// Name.
    pub name: String,
    /// Connections (count).
    pub clients: NonZeroU32,
    /// Scripts that its clients choose from, behind those of the groups before it (count).
    pub scripts: usize,
    /// Rate at which transactions are due over the group's clients together. None: a client's next
    /// transaction is due when the previous one is done and thought over.
    pub rate: Option<LoadRate>,
    /// Mean time that a client thinks before each transaction; zero: none. Each is drawn from an
    /// exponential distribution that is cut at ten times the mean (TPC Benchmark C 5.11, 5.2.5.4).
    /// Not together with a rate.
    #[serde(default)]
    pub think_time: Span,
    /// Name of the server that its clients connect to; none: the treatment's.
    #[serde(default)]
    pub server: Option<String>,
}

impl fmt::Display for ClientGroup {
    /// `readers: 8 clients, think time 40ms, server replica`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, clients, rate, think_time, server, .. } = self;
        let plural = if clients.get() == 1 { "" } else { "s" };
        write!(f, "{name}: {clients} client{plural}")?;
        if let Some(rate) = rate {
            write!(f, ", transactions due each second: {rate}")?;
        }
        if !think_time.0.is_zero() {
            write!(f, ", think time {think_time}")?;
        }
        match server {
            Some(server) => write!(f, ", server {server}"),
            None => Ok(()),
        }
    }
}

impl ClientGroup {
    /// Creates a closed loop of one client with the next `scripts` scripts.
    pub fn new(name: impl Into<String>, scripts: usize) -> Self {
        Self {
            name: name.into(),
            clients: NonZeroU32::MIN,
            scripts,
            rate: None,
            think_time: Span::default(),
            server: None,
        }
    }

    /// Whether a client's next transaction is due as soon as the previous one is done.
    pub fn is_closed_loop(&self) -> bool {
        self.rate.is_none() && self.think_time.0.is_zero()
    }
}
