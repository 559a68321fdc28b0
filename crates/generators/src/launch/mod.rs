//! Starting workers: one file for each launcher.
//!
//! `local` and `ssh` [start each worker](launch) and talk to it by its standard streams. `slurm`
//! and `ray` are [starters](Starter) of all workers at once, which then join.

mod launched;
mod local;
mod ray;
mod slurm;
mod ssh;
mod starter;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};

use pgdyno_model::lab_host::{HostEngine, LabHost};

use launched::this_program;
pub use launched::{Launched, StartProgram};
pub use ssh::launch_on;
pub(crate) use starter::{Request, Starter, Supervisor};

use crate::error::Fault;
use crate::generators::{Generator, Place};

/// Callbacks and limits that the caller of a load provides.
#[derive(Clone, Copy)]
pub struct Hands<'a> {
    /// Starts programs.
    pub start: StartProgram,
    /// Tells people what is awaited and who came, in one line.
    pub notice: &'a dyn Fn(&str),
    /// Has the server let generators in, where it knows only those that it is told of.
    pub admission: Option<Admission<'a>>,
    /// CPUs' worth of time that this process and those that it starts may use together (count),
    /// where that is known.
    pub cpus_allowed: Option<f64>,
}

/// How a server lets generators in.
#[derive(Clone, Copy)]
pub struct Admission<'a> {
    /// Where the server listens.
    pub server: SocketAddr,
    /// Lets in connections from these addresses and no others, or says why it cannot.
    pub admit: &'a dyn Fn(&BTreeSet<IpAddr>) -> Result<(), String>,
}

/// Starts the worker of `generator`.
///
/// # Errors
/// [`Fault::Launch`], [`Fault::Architecture`].
pub(crate) fn launch(generator: &Generator, start: StartProgram) -> Result<Launched, Fault> {
    match &generator.place {
        Place::Local => local::launch(start),
        Place::Ssh(host) => launch_on(host, "worker", start),
        Place::Join | Place::Slurm | Place::Ray => {
            Err(Fault::Launch("it joins by itself".to_owned()))
        }
    }
}

/// Returns the words that run this program's command `command` on `host`, with their own standard
/// streams. A host that `ssh` reaches has the program then.
///
/// # Errors
/// [`Fault::Launch`], [`Fault::Architecture`].
pub fn words_on(
    host: &LabHost,
    command: &str,
    start: StartProgram,
) -> Result<Vec<OsString>, Fault> {
    match host.engine {
        HostEngine::Ssh => ssh::words_on(&host.name, command, start),
        HostEngine::Slurm => Ok(slurm::words_on(&host.name, command, this_program()?)),
        HostEngine::Ray => Ok(ray::words_on(&host.name, command, this_program()?)),
    }
}

/// Returns what starts the workers of `place`, where those join and something does.
pub(crate) fn starter(place: &Place) -> Option<&'static Starter> {
    match place {
        Place::Slurm => Some(&slurm::STARTER),
        Place::Ray => Some(&ray::STARTER),
        Place::Local | Place::Ssh(_) | Place::Join => None,
    }
}
