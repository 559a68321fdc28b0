//! smartmontools: how a disk is reached, and the whole of what it says.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A type of device as `smartctl --device` takes it: `megaraid,3` is the fourth disk behind a
/// MegaRAID controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct SmartType(String);

/// Device types of `smartctl --device`, without a disk's number: buses, bridges and RAID
/// controllers.
const KINDS: [&str; 22] = [
    "auto",
    "ata",
    "scsi",
    "nvme",
    "sat",
    "usbasm1352r",
    "usbcypress",
    "usbjmicron",
    "usbprolific",
    "usbsunplus",
    "sntasmedia",
    "sntjmicron",
    "sntrealtek",
    "jmb39x",
    "jms56x",
    "marvell",
    "areca",
    "3ware",
    "hpt",
    "megaraid",
    "aacraid",
    "cciss",
];

/// Kinds that need the number of a disk behind the controller.
const NUMBERED: [&str; 6] = ["areca", "3ware", "hpt", "megaraid", "aacraid", "cciss"];

/// A text that is no type of device.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SmartTypeError {
    /// smartmontools know no such kind.
    #[error("smartctl knows no device type `{given}`; there are {}", KINDS.join(", "))]
    Unknown {
        /// The text.
        given: String,
    },
    /// The controller has several disks.
    #[error("`{given}` does not say which disk behind the controller: write `{given},0`")]
    WithoutNumber {
        /// The text.
        given: String,
    },
}

impl FromStr for SmartType {
    type Err = SmartTypeError;

    fn from_str(text: &str) -> Result<Self, SmartTypeError> {
        let given = || text.to_owned();
        let (kind, rest) = text.split_once(',').unwrap_or((text, ""));
        // Bridges put another type behind theirs: `sat+megaraid,3`.
        let known = kind.split('+').all(|kind| KINDS.contains(&kind.trim_end_matches("-q")));
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ',' | '/' | '+' | '-');
        if !known || !text.chars().all(plain) {
            return Err(SmartTypeError::Unknown { given: given() });
        }
        let is_numbered = kind.split('+').any(|kind| NUMBERED.contains(&kind));
        if is_numbered && !rest.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(SmartTypeError::WithoutNumber { given: given() });
        }
        Ok(Self(given()))
    }
}

impl fmt::Display for SmartType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Everything that `smartctl -x --json` says of a disk, its logs of errors and of self-tests among
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SmartReport {
    /// The document, without serial numbers unless they are kept.
    pub document: serde_json::Value,
    /// Parts that were left out because the document was too large.
    pub left_out: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_buses_and_controllers_are_taken_as_smartctl_has_them() {
        for text in [
            "megaraid,3",
            "sat+megaraid,0",
            "cciss,1",
            "3ware,12",
            "areca,2/1",
            "aacraid,0,0,4",
            "hpt,1/3/1",
            "nvme,0x1",
            "sat",
            "auto",
        ] {
            let parsed: SmartType = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(parsed.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_type_is_refused_with_what_there_is() {
        for text in ["", "megaride,3", "-x", "megaraid,3;reboot", "/dev/sda", "megaraid,3 -x"] {
            let error = text.parse::<SmartType>().unwrap_err();
            assert!(matches!(error, SmartTypeError::Unknown { .. }), "{text}: {error}");
        }
        for text in ["megaraid", "areca", "cciss,x"] {
            let error = text.parse::<SmartType>().unwrap_err();
            assert!(matches!(error, SmartTypeError::WithoutNumber { .. }), "{text}: {error}");
        }
    }
}
