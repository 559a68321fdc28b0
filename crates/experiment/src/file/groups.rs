//! `[groups.NAME]`: what the workload's groups of clients have instead of their own.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use pgdyno_model::level::{GroupKey, Key, LevelValue};
use pgdyno_model::units::Span;
use serde::Deserialize;
use toml::Spanned;

use super::error::{Complaint, read_at};
use super::levels::check_level;
use super::rate::rate_value;
use super::source::Source;

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(super) struct GroupTable {
    /// Connections.
    clients: Option<NonZeroU32>,
    /// Transactions per second over the group's clients, as `load.rate` has them.
    #[cfg_attr(test, schemars(schema_with = "super::schema::rate_over_time"))]
    rate: Option<Spanned<toml::Value>>,
    /// Mean time that a client thinks before each transaction. "0s": none. Not together with
    /// `rate`.
    think_time: Option<Span>,
    /// The server of the group's clients.
    postgres: GroupsServer,
}

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
struct GroupsServer {
    /// A running server for these clients alone, such as a replica: a URI or `keyword=value`
    /// words.
    #[cfg_attr(test, schemars(with = "String"))]
    dsn: Option<Spanned<String>>,
}

/// Returns what `groups` set, group by group.
///
/// # Errors
/// A value is out of its range.
pub(super) fn keys_of(
    groups: BTreeMap<String, GroupTable>,
    source: &Source,
) -> Result<Vec<(Key, LevelValue)>, Complaint> {
    let mut keys = Vec::new();
    for (name, table) in groups {
        let mut set = |key: GroupKey, value: LevelValue| {
            let key = Key::Group(name.clone(), key);
            check_level(&key, &value)?;
            keys.push((key, value));
            Ok::<(), Complaint>(())
        };
        if let Some(clients) = table.clients {
            set(GroupKey::Clients, LevelValue::Int(clients.get().into()))?;
        }
        if let Some(rate) = table.rate {
            let key = format!("{}{name}.rate", Key::GROUPS);
            read_at(rate, |rate| set(GroupKey::Rate, rate_value(&key, &rate, source)?))?;
        }
        if let Some(think_time) = table.think_time {
            set(GroupKey::ThinkTime, LevelValue::Text(think_time.to_string()))?;
        }
        if let Some(dsn) = table.postgres.dsn {
            read_at(dsn, |dsn| set(GroupKey::PostgresDsn, LevelValue::Text(dsn)))?;
        }
    }
    Ok(keys)
}
