//! Verdicts, and the oracles that they come from.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// In what way a server or its storage failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failing {
    /// The server came back and takes no writes.
    NoWrites,
    /// Acknowledged transactions are missing.
    Lost,
    /// Data differs from what was written.
    Corrupt,
    /// The server does not recover.
    WillNotStart,
    /// The filesystem cannot be mounted.
    WillNotMount,
}

/// Verdict on a round, a fault or a session; the later variant outweighs the earlier.
///
/// A round is never *as planted*: it passes or fails, and its fault knows what was expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Every oracle ran and found nothing wrong. No proof: see [`super::chance_at_most`].
    Pass,
    /// Acknowledged transactions are missing, as many as the settings promise at worst.
    BoundedLoss,
    /// A planted failure was seen: the instrument works, and no promise was broken.
    AsPlanted(Failing),
    /// Only a part of the states was looked at, and nothing was found wrong.
    Partial,
    /// Something could not be checked.
    #[default]
    Unknown,
    /// The instrument did not see what it must see, so that its silence means nothing.
    Invalid,
    /// A promise was broken.
    Fail(Failing),
}

impl Verdict {
    /// All verdicts, from the lightest to the gravest.
    pub const ALL: &[Self] = &[
        Self::Pass,
        Self::BoundedLoss,
        Self::AsPlanted(Failing::NoWrites),
        Self::AsPlanted(Failing::Lost),
        Self::AsPlanted(Failing::Corrupt),
        Self::AsPlanted(Failing::WillNotStart),
        Self::AsPlanted(Failing::WillNotMount),
        Self::Partial,
        Self::Unknown,
        Self::Invalid,
        Self::Fail(Failing::NoWrites),
        Self::Fail(Failing::Lost),
        Self::Fail(Failing::Corrupt),
        Self::Fail(Failing::WillNotStart),
        Self::Fail(Failing::WillNotMount),
    ];

    /// Returns the verdict's name in reports and in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::BoundedLoss => "bounded-loss",
            Self::AsPlanted(Failing::NoWrites) => "as planted (takes no writes)",
            Self::AsPlanted(Failing::Lost) => "as planted (lost)",
            Self::AsPlanted(Failing::Corrupt) => "as planted (corrupt)",
            Self::AsPlanted(Failing::WillNotStart) => "as planted (will not start)",
            Self::AsPlanted(Failing::WillNotMount) => "as planted (will not mount)",
            Self::Partial => "partial",
            Self::Unknown => "unknown",
            Self::Invalid => "invalid",
            Self::Fail(Failing::NoWrites) => "FAIL (takes no writes)",
            Self::Fail(Failing::Lost) => "FAIL (lost)",
            Self::Fail(Failing::Corrupt) => "FAIL (corrupt)",
            Self::Fail(Failing::WillNotStart) => "FAIL (will not start)",
            Self::Fail(Failing::WillNotMount) => "FAIL (will not mount)",
        }
    }

    /// Whether a promise was broken.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Fail(_))
    }

    /// Returns how the server or its storage failed, as planted or not; none if it did not.
    pub fn failing(self) -> Option<Failing> {
        match self {
            Self::Fail(failing) | Self::AsPlanted(failing) => Some(failing),
            _ => None,
        }
    }

    /// Whether nothing unexpected was found.
    pub fn is_good(self) -> bool {
        matches!(self, Self::Pass | Self::BoundedLoss | Self::AsPlanted(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Verdict {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let found = Self::ALL.iter().copied().find(|v| v.name() == name);
        found.ok_or_else(|| serde::de::Error::custom(format!("`{name}` is no verdict")))
    }
}

/// Outcome of one oracle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "outcome", content = "found")]
pub enum CheckOutcome {
    /// The oracle found nothing wrong.
    Passed,
    /// The oracle found loss that the settings allow.
    Allowed(String),
    /// The oracle found something wrong.
    Failed(String),
    /// The oracle could not run: never a pass.
    CouldNotRun(String),
    /// The oracle has nothing to look at here.
    NotApplicable(String),
}

/// One oracle with its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// Property that the oracle checks.
    pub name: String,
    /// Result of the check.
    #[serde(flatten)]
    pub outcome: CheckOutcome,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for verdict in Verdict::ALL {
            let json = serde_json::to_string(verdict).unwrap();
            assert_eq!(serde_json::from_str::<Verdict>(&json).unwrap(), *verdict);
        }
    }

    #[test]
    fn they_are_listed_from_the_lightest_to_the_gravest() {
        assert!(Verdict::ALL.is_sorted());
    }
}
