//! Values that levels of factors may have, and what they set.

use pgdyno_model::experiment::{LoadOptions, OnError, Protocol, ReconnectLost};
use pgdyno_model::level::{GroupKey, Key, LevelValue};
use pgdyno_model::load_rate::LoadRate;
use pgdyno_model::raid::WritePolicy;
use pgdyno_model::units::Span;
use pgdyno_model::{ClientGroup, Pauses};

use super::error::Complaint;
use super::generators::read_launch;
use super::rate::is_series;

/// Gives the option of `key`, if it is one, a value that [`check_level`] has let through.
pub(crate) fn set_option(options: &mut LoadOptions, key: &Key, value: &LevelValue) {
    let text = value.to_string();
    match key {
        Key::Rate => options.rate = text.parse().ok(),
        Key::Pauses => options.pauses = text.parse().ok(),
        Key::LatencyLimit => options.latency_limit = text.parse().ok(),
        Key::MaxTries => options.max_tries = text.parse().unwrap_or(options.max_tries),
        Key::OnError => options.on_error = OnError::parse(&text).unwrap_or_default(),
        Key::Reconnect => options.reconnect = *value == LevelValue::Bool(true),
        Key::ReconnectLost => options.reconnect_lost = text.parse().unwrap_or_default(),
        _ => {}
    }
}

/// Gives `group` what [`check_level`] has let through for `key`.
pub(crate) fn set_of_group(group: &mut ClientGroup, key: GroupKey, value: &LevelValue) {
    let text = value.to_string();
    match key {
        GroupKey::Clients => group.clients = text.parse().unwrap_or(group.clients),
        GroupKey::Rate => group.rate = text.parse().ok(),
        GroupKey::ThinkTime => group.think_time = text.parse().unwrap_or_default(),
        GroupKey::PostgresDsn => group.server = Some(text),
    }
}

/// The major version that `value` spells.
pub(crate) fn major(value: &LevelValue) -> Result<u32, Complaint> {
    let text = value.to_string();
    match text.parse::<u32>() {
        Ok(n) if (9..=99).contains(&n) => Ok(n),
        _ => Err(Complaint::new(format!(
            "`{text}` is no major version of PostgreSQL; write it like \"17\""
        ))),
    }
}

/// A PostgreSQL setting's value as the file has it.
pub(super) fn setting_value(name: &str, value: &toml::Value) -> Result<LevelValue, Complaint> {
    match value {
        toml::Value::String(s) => Ok(LevelValue::Text(s.clone())),
        toml::Value::Integer(n) => Ok(LevelValue::Int(*n)),
        toml::Value::Float(x) => Ok(LevelValue::Float(*x)),
        toml::Value::Boolean(b) => Ok(LevelValue::Bool(*b)),
        other => Err(Complaint::new(format!(
            "`{name}` wants a string, a number or a boolean, and was given {}",
            with_article(other.type_str())
        ))),
    }
}

fn with_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {noun}")
}

/// `a = { b = 1 }` as `("a.b", 1)`, for names with dots in them.
pub(super) fn flatten(map: &toml::Table) -> Vec<(String, &toml::Value)> {
    let mut flat = Vec::new();
    for (name, value) in map {
        match value {
            toml::Value::Table(inner) => {
                flat.extend(flatten(inner).into_iter().map(|(n, v)| (format!("{name}.{n}"), v)));
            }
            leaf => flat.push((name.clone(), leaf)),
        }
    }
    flat
}

/// The value that a plain level of `key` may have.
pub(super) fn check_level(key: &Key, value: &LevelValue) -> Result<(), Complaint> {
    let text = value.to_string();
    match key {
        Key::Clients | Key::Threads | Key::Scale => match text.parse::<u32>() {
            Ok(n) if n > 0 => Ok(()),
            _ => Err(Complaint::new(format!(
                "`{text}` is no number of {}; it must be 1 or more",
                plural(key)
            ))),
        },
        Key::Protocol if Protocol::parse(&text).is_none() => {
            Err(unknown("protocol", &text, Protocol::NAMES))
        }
        Key::Rate if is_series(&text) => Ok(()),
        Key::Rate => text.parse::<LoadRate>().map(drop).map_err(|wrong| {
            Complaint::new(wrong.to_string())
                .with_help("transactions per second over all its clients together")
        }),
        Key::Pauses if !text.parse().is_ok_and(Pauses::is_factor) => Err(Complaint::new(format!(
            "`{text}` cannot multiply pauses; a number from 0 to {} can",
            Pauses::MOST_TIMES
        ))
        .with_help("1: keying and think times as the workload has them; 0: none")),
        Key::LatencyLimit => match text.parse::<Span>() {
            Ok(limit) if !limit.0.is_zero() => Ok(()),
            Ok(_) => {
                Err(Complaint::new("a latency limit of nothing: every transaction would be late"))
            }
            Err(wrong) => Err(Complaint::new(wrong.to_string())),
        },
        Key::MaxTries => match text.parse::<u32>() {
            Ok(_) => Ok(()),
            Err(_) => Err(Complaint::new(format!("`{text}` is no number of tries"))
                .with_help("1 is one try; 0 is without end")),
        },
        Key::OnError if OnError::parse(&text).is_none() => {
            Err(unknown("on_error", &text, OnError::NAMES))
        }
        Key::Reconnect | Key::DeviceWriteCache if !matches!(value, LevelValue::Bool(_)) => {
            Err(Complaint::new(format!("`{text}` is neither true nor false")))
        }
        Key::DeviceRaidCache if text.parse::<WritePolicy>().is_err() => {
            Err(unknown("policy", &text, WritePolicy::NAMES))
        }
        Key::DeviceReadAhead if text.parse::<u32>().is_err() => {
            Err(Complaint::new(format!("`{text}` is no number of KiB to read ahead")))
        }
        Key::DeviceRequests if !text.parse::<u32>().is_ok_and(|n| n > 0) => {
            Err(Complaint::new(format!("`{text}` is no number of requests; it must be 1 or more")))
        }
        Key::ReconnectLost => {
            text.parse::<ReconnectLost>().map(drop).map_err(|e| Complaint::new(e.to_string()))
        }
        Key::Group(_, GroupKey::Clients) => check_level(&Key::Clients, value),
        Key::Group(_, GroupKey::Rate) => check_level(&Key::Rate, value),
        Key::Group(_, GroupKey::PostgresDsn) => check_level(&Key::PostgresDsn, value),
        Key::Group(_, GroupKey::ThinkTime) => {
            text.parse::<Span>().map(drop).map_err(|wrong| Complaint::new(wrong.to_string()))
        }
        Key::PostgresVersion => major(value).map(drop),
        Key::Generators => read_launch(&text).map(drop),
        Key::PostgresBindir if text.is_empty() => {
            Err(Complaint::new("a `postgres.bindir` is empty")
                .with_help("name the folder of the server's programs"))
        }
        // Not quoted: a password written wrongly could be in any part of it.
        Key::PostgresDsn if pgdyno_postgres::external::server_name(&text).is_none() => {
            Err(Complaint::new("a `postgres.dsn` is neither a URI nor a list of `keyword=value`")
                .with_help(
                    "write it like `postgresql://user@host:5432/database` or `host=… port=… user=… \
                     dbname=…`",
                ))
        }
        Key::Protocol
        | Key::OnError
        | Key::Reconnect
        | Key::Pauses
        | Key::Workload
        | Key::PostgresBindir
        | Key::PostgresDsn
        | Key::Storage
        | Key::DeviceScheduler
        | Key::DeviceReadAhead
        | Key::DeviceRequests
        | Key::DeviceWriteCache
        | Key::DeviceRaidCache
        | Key::Setting(_) => Ok(()),
    }
}

fn plural(key: &Key) -> &'static str {
    match key {
        Key::Threads => "threads",
        Key::Scale => "units of scale",
        _ => "clients",
    }
}

fn unknown(what: &str, found: &str, allowed: &[&str]) -> Complaint {
    let near = pgdyno_text::nearest::nearest(found, allowed);
    Complaint::new(format!("unknown {what} `{found}`")).with_help(format!(
        "nearest is `{}`; allowed: {}",
        near[0],
        allowed.join(", ")
    ))
}
