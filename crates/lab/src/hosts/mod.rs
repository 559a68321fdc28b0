//! A lab of hosts: one experiment runs whole on each of several hosts.
//!
//! [`hosts`] reads `--hosts`. [`run_on_hosts`] starts `pgdyno host-run` on every host and merges
//! the stores that come back. On a host, [`member::run_assignment`] runs or resumes.
//!
//! The messages, on the standard input and output of `host-run`:
//!
//! 1. here → host: an [`Assignment`], one line of JSON.
//! 2. host → here: a [`Reply`], one line of JSON, then the store's bytes if the run is over.
//! 3. here → host: the line [`STORED`]. The host then removes its store.
//!
//! A host whose standard input ends earlier interrupts its run and keeps its store: the next
//! assignment of the same key resumes it. So nothing has to be remembered here.

mod connection;
mod coordinator;
mod error;
pub mod member;

pub use coordinator::{HostResult, run_on_hosts};
pub use error::HostError;
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::file::{FileError, Override, Source};
use pgdyno_generators::{DealError, host_name};
use pgdyno_model::lab_host::{HostEngine, LabHost};
use pgdyno_model::record::SessionEnd;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Wipe;
use pgdyno_provision::ThisHost;

/// The line that tells a host that its run is in the store here.
pub const STORED: &str = "stored";

/// An experiment for a host to run, with the user's overrides and consent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// Names the folder of the run on the host: equal assignments have equal keys.
    key: String,
    /// The experiment.
    #[serde(flatten)]
    source: Source,
    /// Keys that are set, as given to `--set`.
    overrides: Vec<String>,
    /// Devices that may be erased.
    wipe: Wipe,
}

/// The end of a host's run. The bytes of the host's store follow the reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The run's id; none if it could not begin or go on.
    pub run: Option<String>,
    /// How the run ended; none if it could not begin or go on.
    pub end: Option<SessionEnd>,
    /// Error for which the run could not begin or go on, with its causes.
    pub error: Option<String>,
    /// Size of the store that follows (bytes); 0 if the run is not over.
    pub bytes: u64,
}

/// Returns the hosts that `--hosts` names: `ssh:db1,db2`.
///
/// # Errors
/// The engine is unknown, does not take a name, or a name stands twice.
pub fn hosts(text: &str) -> Result<Vec<LabHost>, FileError> {
    let refused = |what: String| FileError::Refused {
        what: format!("cannot run on `{text}`: {what}"),
        help: Some(
            "write `--hosts ssh:HOST,HOST`, each as `ssh` knows it, or nodes of a cluster: \
                    `slurm:NODE,NODE` or `ray:NODE,NODE`"
                .into(),
        ),
    };
    let (engine, list) = text.split_once(':').unwrap_or_default();
    let engine: HostEngine =
        engine.parse().map_err(|_| refused("hosts are reached by ssh, slurm or ray".into()))?;
    let mut hosts: Vec<LabHost> = Vec::new();
    for name in list.split(',') {
        let name = host_name(name).map_err(|error: DealError| refused(error.to_string()))?;
        if hosts.iter().any(|host| host.name == name) {
            return Err(refused(format!("host `{name}` is named twice")));
        }
        hosts.push(LabHost { engine, name });
    }
    Ok(hosts)
}

impl Assignment {
    /// Returns the assignment for `host`: to run `source` with `overrides`.
    pub fn new(host: &str, source: &Source, overrides: &[Override], wipe: &Wipe) -> Self {
        let mut assignment = Self {
            key: String::new(),
            source: source.clone(),
            overrides: overrides.iter().map(|value| value.given.clone()).collect(),
            wipe: wipe.clone(),
        };
        let mut hash = Sha256::new();
        let parts = [host, &source.name, &source.text];
        for part in parts.into_iter().chain(assignment.overrides.iter().map(String::as_str)) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        assignment.key = hash.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        assignment
    }

    /// Returns the experiment, ready to run.
    fn resolve(&self) -> Result<ResolvedExperiment, pgdyno_provision::BenchError> {
        let overrides = self.overrides.iter().map(|given| Override::parse(given));
        let overrides = overrides.collect::<Result<_, _>>()?;
        let resolved = ResolvedExperiment::new(self.source.clone(), overrides, &ThisHost)?;
        Ok(resolved.with_wipe(self.wipe.clone(), &ThisHost)?)
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_model::Advice;

    use super::*;

    #[test]
    fn hosts_are_named_once_each_and_as_their_engine_takes_them() {
        let read = |text: &str| hosts(text).map(|hosts| hosts.into_iter().map(|h| h.to_string()));
        let read = |text: &str| read(text).map(Iterator::collect::<Vec<_>>);
        assert_eq!(read("ssh:db1,anna@db2").unwrap(), ["ssh:db1", "ssh:anna@db2"]);
        assert_eq!(read("slurm:n1").unwrap(), ["slurm:n1"]);
        for wrong in ["db1", "local:2", "ssh:", "ssh:db1,,db2", "ssh:-oProxyCommand=x", "ssh:a,a"] {
            let error = read(wrong).unwrap_err();
            assert!(error.to_string().contains(wrong) && error.help().is_some(), "{error}");
        }
    }

    #[test]
    fn an_order_has_another_key_on_another_host_and_with_other_values() {
        let source = Source {
            name: "try".into(),
            shown: "try.toml".into(),
            text: "[load]\nclients = 1\n".into(),
            base: "/".into(),
        };
        let key = |host: &str, set: &[&str]| {
            let set: Vec<_> = set.iter().map(|given| Override::parse(given).unwrap()).collect();
            Assignment::new(host, &source, &set, &Wipe::default()).key
        };
        assert_eq!(key("db1", &["load.clients=2"]), key("db1", &["load.clients=2"]));
        assert_ne!(key("db1", &[]), key("db2", &[]));
        assert_ne!(key("db1", &[]), key("db1", &["load.clients=2"]));
    }
}
