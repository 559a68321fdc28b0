//! Loads of crash tests: each transaction leaves a row that names it.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray, VariantNames};

use crate::names::names;

/// The load that runs when a fault strikes, named after the workload that it is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Display, EnumString, IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum CrashWorkload {
    /// TPC-B: one amount is added to an account, a teller and a branch.
    #[default]
    TpcbLike,
    /// A function selects a user, inserts a login and updates the user's session.
    UserLogin,
    /// Orders, payments and deliveries of TPC-C, whose consistency conditions are checked.
    Tprocc,
}

names!(CrashWorkload, parse);

impl CrashWorkload {
    /// All loads.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;
    /// Names of all, as files and options have them.
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;

    /// The load in words.
    pub fn description(self) -> &'static str {
        match self {
            Self::TpcbLike => "TPC-B",
            Self::UserLogin => "user-login",
            Self::Tprocc => "TPROC-C",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for workload in CrashWorkload::ALL {
            assert_eq!(CrashWorkload::parse(workload.name()), Some(*workload));
        }
        assert_eq!(CrashWorkload::NAMES, ["tpcb-like", "user-login", "tprocc"]);
    }
}
