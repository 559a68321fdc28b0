//! Factors' levels: what is varied, and the labels by which tables and reports name it.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use strum::{EnumString, IntoStaticStr, VariantNames};

/// A level's value as written in the experiment file; the label that tables and JSON show.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum LevelValue {
    /// A TOML boolean; as a PostgreSQL setting it reads `on` or `off`.
    Bool(bool),
    /// A TOML integer.
    Int(i64),
    /// A TOML float.
    Float(f64),
    /// A TOML string, or the name of a bundle.
    Text(String),
}

impl fmt::Display for LevelValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(true) => f.write_str("on"),
            Self::Bool(false) => f.write_str("off"),
            Self::Int(n) => n.fmt(f),
            Self::Float(x) => x.fmt(f),
            Self::Text(s) => f.write_str(s),
        }
    }
}

impl LevelValue {
    /// Returns the value as a script's variable has it: scripts find `true`, and a double in a
    /// number with a point.
    pub fn to_variable(&self) -> String {
        match self {
            Self::Bool(b) => b.to_string(),
            Self::Float(x) => format!("{x:?}"),
            Self::Int(_) | Self::Text(_) => self.to_string(),
        }
    }
}

impl<'de> Deserialize<'de> for LevelValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = LevelValue;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a number or a boolean")
            }
            fn visit_bool<E>(self, v: bool) -> Result<LevelValue, E> {
                Ok(LevelValue::Bool(v))
            }
            fn visit_i64<E>(self, v: i64) -> Result<LevelValue, E> {
                Ok(LevelValue::Int(v))
            }
            fn visit_u64<E: serde::de::Error>(self, v: u64) -> Result<LevelValue, E> {
                i64::try_from(v)
                    .map(LevelValue::Int)
                    .map_err(|_| E::custom(format!("{v} is too large")))
            }
            fn visit_f64<E>(self, v: f64) -> Result<LevelValue, E> {
                Ok(LevelValue::Float(v))
            }
            fn visit_str<E>(self, v: &str) -> Result<LevelValue, E> {
                Ok(LevelValue::Text(v.to_owned()))
            }
        }
        from.deserialize_any(V)
    }
}

/// One combination of levels, by factor, in the file's order. Serialises as a JSON object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Levels(pub Vec<(String, LevelValue)>);

impl Levels {
    /// The level of `factor`, if it is one of the experiment's factors.
    pub fn get(&self, factor: &str) -> Option<&LevelValue> {
        self.0.iter().find(|(name, _)| name == factor).map(|(_, level)| level)
    }

    /// The levels of all factors but `factors`.
    #[must_use]
    pub fn without(&self, factors: &[&str]) -> Self {
        let is_other = |(name, _): &&(String, LevelValue)| !factors.contains(&name.as_str());
        Self(self.0.iter().filter(is_other).cloned().collect())
    }

    /// Returns the levels in parentheses behind a space; nothing without factors.
    pub fn in_parentheses(&self) -> String {
        if self.0.is_empty() { String::new() } else { format!(" ({self})") }
    }
}

impl fmt::Display for Levels {
    /// `synchronous_commit=on clients=8`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (factor, level)) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{factor}={level}")?;
        }
        Ok(())
    }
}

impl Serialize for Levels {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (factor, level) in &self.0 {
            map.serialize_entry(factor, level)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Levels {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Levels;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of factors and their levels")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Levels, A::Error> {
                let mut levels = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    levels.push(entry);
                }
                Ok(Levels(levels))
            }
        }
        from.deserialize_map(V)
    }
}

/// Key that a factor assigns. Every other name in `[factors]` is a PostgreSQL setting.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "snake_case")]
pub enum Key {
    /// Connections that offer load.
    Clients,
    /// Event loops of the load engine.
    Threads,
    /// `simple`, `extended` or `prepared`.
    Protocol,
    /// Transactions per second.
    Rate,
    /// Number that multiplies the pauses of the workload's scripts.
    Pauses,
    /// Latency beyond which a transaction is late.
    LatencyLimit,
    /// Most tries of a transaction.
    MaxTries,
    /// Fate of a client after an error.
    OnError,
    /// Whether every transaction has a connection of its own.
    Reconnect,
    /// Reaction of a client to a lost connection.
    ReconnectLost,
    /// The data set's size in the workload's own unit.
    Scale,
    /// A built-in workload or a folder.
    Workload,
    /// The server's major version.
    #[strum(serialize = "postgres.version")]
    PostgresVersion,
    /// The folder of the server's programs.
    #[strum(serialize = "postgres.bindir")]
    PostgresBindir,
    /// Name of a server that pgdyno does not own. Its DSN is a secret and kept apart.
    #[strum(serialize = "postgres.dsn")]
    PostgresDsn,
    /// The name of a `[storage.<name>]` table.
    Storage,
    /// `queue/scheduler` of the storage's devices.
    #[strum(serialize = "device.scheduler")]
    DeviceScheduler,
    /// `queue/read_ahead_kb` of the storage's devices (KiB).
    #[strum(serialize = "device.read_ahead_kb")]
    DeviceReadAhead,
    /// `queue/nr_requests` of the storage's devices (count).
    #[strum(serialize = "device.nr_requests")]
    DeviceRequests,
    /// Whether the drives' volatile write caches are on.
    #[strum(serialize = "device.write_cache")]
    DeviceWriteCache,
    /// The policy of the RAID controller's write cache.
    #[strum(serialize = "device.raid_cache")]
    DeviceRaidCache,
    /// Processes that offer the load, as `[generators] launch` names them; `none` is this process
    /// alone.
    Generators,
    /// A key of the group of clients of this name: `groups.NAME.KEY`. The last two variants:
    /// [`Key::NAMES`] leaves them out.
    #[strum(disabled)]
    Group(String, GroupKey),
    /// A PostgreSQL setting.
    #[strum(disabled)]
    Setting(String),
}

/// Key of a group of clients.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "snake_case")]
pub enum GroupKey {
    /// Connections that offer load.
    Clients,
    /// Transactions per second.
    Rate,
    /// Mean time that a client thinks before each transaction.
    ThinkTime,
    /// Name of a server that pgdyno does not own. Its DSN is a secret and kept apart.
    #[strum(serialize = "postgres.dsn")]
    PostgresDsn,
}

impl GroupKey {
    /// Names of the keys, as a file spells them.
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;
}

impl Key {
    /// Names that are not PostgreSQL settings, as a file spells them.
    pub const NAMES: &[&str] = match <Self as VariantNames>::VARIANTS {
        [names @ .., _group, _setting] => names,
        _ => &[],
    };
    /// Beginning of the keys of groups.
    pub const GROUPS: &str = "groups.";

    /// Whether the key applies only to a server that pgdyno makes.
    pub fn is_of_our_server(&self) -> bool {
        matches!(
            self,
            Self::PostgresVersion
                | Self::PostgresBindir
                | Self::Storage
                | Self::DeviceScheduler
                | Self::DeviceReadAhead
                | Self::DeviceRequests
                | Self::DeviceWriteCache
                | Self::DeviceRaidCache
        )
    }

    /// Returns the key that `name` spells; any name outside [`Key::NAMES`] that is no key of a
    /// group is a PostgreSQL setting.
    pub fn parse(name: &str) -> Self {
        let of_group = || {
            let (group, key) = name.strip_prefix(Self::GROUPS)?.split_once('.')?;
            Some(Self::Group(group.to_owned(), key.parse().ok()?))
        };
        name.parse().ok().or_else(of_group).unwrap_or_else(|| Self::Setting(name.to_owned()))
    }

    /// Whether a value is the rate of transactions.
    pub fn is_rate(&self) -> bool {
        matches!(self, Self::Rate | Self::Group(_, GroupKey::Rate))
    }
}

/// One level of a factor: its label and its assignments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Label in tables and JSON.
    pub label: LevelValue,
    /// One assignment for a plain factor, several for a bundle, none for a bundle that changes
    /// nothing.
    pub sets: Vec<(Key, LevelValue)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_keep_the_files_order_through_json() {
        let levels = Levels(vec![
            ("synchronous_commit".into(), LevelValue::Bool(true)),
            ("clients".into(), LevelValue::Int(8)),
        ]);
        let json = serde_json::to_string(&levels).unwrap();
        assert_eq!(json, r#"{"synchronous_commit":true,"clients":8}"#);
        assert_eq!(serde_json::from_str::<Levels>(&json).unwrap(), levels);
        assert_eq!(levels.to_string(), "synchronous_commit=on clients=8");
    }

    #[test]
    fn only_the_names_of_keys_are_no_settings() {
        for name in Key::NAMES {
            assert!(!matches!(Key::parse(name), Key::Setting(_)), "{name}");
        }
        assert_eq!(Key::parse("postgres.dsn"), Key::PostgresDsn);
        for name in GroupKey::NAMES {
            let key = Key::parse(&format!("groups.a-b.{name}"));
            assert_eq!(key, Key::Group("a-b".to_owned(), name.parse().unwrap()));
        }
        for setting in ["work_mem", "setting", "group", "groups.a.work_mem", "postgres_dsn"] {
            assert_eq!(Key::parse(setting), Key::Setting(setting.to_owned()));
        }
    }
}
