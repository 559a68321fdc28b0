//! The write cache of a RAID controller: which volume, by which program, and its policy.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::names::names;

/// A volume of a RAID controller, and the manufacturer's program that sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RaidVolume {
    /// The program.
    pub tool: RaidTool,
    /// The controller, as the program counts: for ssacli its slot.
    pub controller: u32,
    /// The volume (virtual or logical drive), as the program counts.
    pub volume: u32,
}

impl fmt::Display for RaidVolume {
    /// `volume 0 of controller 1 (storcli)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool, controller, volume } = self;
        write!(f, "volume {volume} of controller {controller} ({})", tool.name())
    }
}

/// A program that sets RAID controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RaidTool {
    /// Broadcom's storcli: MegaRAID controllers.
    Storcli,
    /// LSI's MegaCli: older MegaRAID controllers.
    Megacli,
    /// HPE's ssacli: Smart Array controllers.
    Ssacli,
    /// Microchip's arcconf: Adaptec controllers.
    Arcconf,
}

names!(RaidTool);

/// Handling of a write by a RAID controller before the acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WritePolicy {
    /// Keeps it in the controller's cache.
    WriteBack,
    /// Passes it to the drives.
    WriteThrough,
}

impl WritePolicy {
    /// Names of all policies in experiment files.
    pub const NAMES: &[&str] = &["write-back", "write-through"];

    /// Returns the policy's name in experiment files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[test]
fn the_names_of_policies_are_those_that_are_parsed() {
    let parsed =
        WritePolicy::NAMES.iter().map(|name| name.parse::<WritePolicy>().map(WritePolicy::name));
    assert_eq!(parsed.collect::<Result<Vec<_>, _>>().as_deref(), Ok(WritePolicy::NAMES));
}
