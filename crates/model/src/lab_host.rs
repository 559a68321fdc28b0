//! The hosts of a lab.

use std::fmt;
use std::str::FromStr;

use strum::{EnumString, IntoStaticStr};

/// A program that starts other programs on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum HostEngine {
    /// The system's OpenSSH.
    Ssh,
    /// `srun` of Slurm.
    Slurm,
    /// A Ray cluster.
    Ray,
}

/// A host of a lab, as `ENGINE:NAME`.
///
/// ```
/// use pgdyno_model::lab_host::{HostEngine, LabHost};
///
/// let host: LabHost = "ssh:db1".parse()?;
/// assert_eq!((host.engine, &*host.name), (HostEngine::Ssh, "db1"));
/// assert_eq!(host.to_string(), "ssh:db1");
/// # Ok::<(), strum::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabHost {
    /// Engine that starts programs there.
    pub engine: HostEngine,
    /// Host name, as the engine knows it.
    pub name: String,
}

impl fmt::Display for LabHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", <&str>::from(self.engine), self.name)
    }
}

impl FromStr for LabHost {
    type Err = strum::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (engine, name) = text.split_once(':').unwrap_or_default();
        Ok(Self { engine: engine.parse()?, name: name.to_owned() })
    }
}
