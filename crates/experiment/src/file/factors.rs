//! `[factors]`: plain levels (`clients = [1, 8]`), bundles (`commit = { sync = { … } }`), names
//! with dots.

use std::borrow::Cow;
use std::fmt;

use pgdyno_model::experiment::Factor;
use pgdyno_model::level::{GroupKey, Key, Level, LevelValue};
use pgdyno_text::nearest::nearest;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use toml::Spanned;

use super::error::{Complaint, read_at};
use super::levels::{check_level, flatten, setting_value};

/// The table as read, in the file's order.
#[derive(Default)]
pub(super) struct Factors(Vec<(Spanned<String>, Shape)>);

/// The key or the setting that a factor varies.
enum Shape {
    /// `[1, 8]`, where it is a list.
    Plain(Vec<Spanned<LevelValue>>),
    /// A table: of bundles, or of the rest of a name with dots.
    Table(toml::Table),
}

impl<'de> Deserialize<'de> for Factors {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Factors;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of factors")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Factors, A::Error> {
                let mut factors = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    factors.push(entry);
                }
                Ok(Factors(factors))
            }
        }
        from.deserialize_map(V)
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Shape;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of levels, or a table of named bundles")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
                let mut levels: Vec<Spanned<LevelValue>> = Vec::new();
                while let Some(level) = seq.next_element::<Spanned<LevelValue>>()? {
                    if levels.iter().any(|l| l.get_ref() == level.get_ref()) {
                        let level = describe(level.get_ref());
                        return Err(A::Error::custom(format!("{level} is listed twice")));
                    }
                    levels.push(level);
                }
                if levels.is_empty() {
                    return Err(A::Error::custom("a factor needs at least one level"));
                }
                Ok(Shape::Plain(levels))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Shape, A::Error> {
                let table =
                    Deserialize::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(Shape::Table(table))
            }
        }
        from.deserialize_any(V)
    }
}

impl Factors {
    /// Returns every factor with its levels, after checking names against what a factor can change.
    pub(super) fn into_factors(self) -> Result<Vec<Factor>, Complaint> {
        let mut factors = Vec::new();
        for (name, shape) in self.0 {
            let span = name.span();
            match shape {
                Shape::Plain(levels) => plain(name.get_ref(), levels).map(|f| factors.push(f)),
                Shape::Table(table) => from_table(name.get_ref(), &table, &mut factors),
            }
            .map_err(|complaint| complaint.at(span))?;
        }
        let mut seen: Vec<(&Key, &str)> = Vec::new();
        for factor in &factors {
            let mut keys: Vec<&Key> =
                factor.levels.iter().flat_map(|l| l.sets.iter().map(|(k, _)| k)).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                if let Some((_, other)) = seen.iter().find(|(k, _)| *k == key) {
                    return Err(Complaint::new(format!(
                        "factors `{other}` and `{}` both set `{}`: one would undo the other",
                        factor.name,
                        key_name(key)
                    )));
                }
                seen.push((key, &factor.name));
            }
        }
        Ok(factors)
    }
}

/// Describes a level in a message. A level that could be a DSN is not quoted: it may hold a
/// password.
fn describe(level: &LevelValue) -> String {
    let text = level.to_string();
    if text.contains("://") || text.contains('=') {
        "a level".to_owned()
    } else {
        format!("level `{text}`")
    }
}

/// Iterates over what levels of `factors` set.
pub(super) fn sets_of(factors: &mut [Factor]) -> impl Iterator<Item = &mut (Key, LevelValue)> {
    factors.iter_mut().flat_map(|factor| &mut factor.levels).flat_map(|level| &mut level.sets)
}

/// Returns the name of a key in a file.
pub(crate) fn key_name(key: &Key) -> Cow<'_, str> {
    match key {
        Key::Setting(name) => name.into(),
        Key::Group(group, key) => format!("{}{group}.{}", Key::GROUPS, <&str>::from(key)).into(),
        key => <&str>::from(key).into(),
    }
}

/// Returns the key of `name`; a near miss of one of pgdyno's own names is taken for a slip,
/// anything else for a setting.
fn key(name: &str) -> Result<Key, Complaint> {
    let key = Key::parse(name);
    if matches!(key, Key::Setting(_)) {
        if name.starts_with(Key::GROUPS) {
            return Err(Complaint::new(format!("`{name}` is no key of a group of clients"))
                .with_help(format!(
                    "write `groups.NAME.KEY`, where the key is one of {}",
                    GroupKey::NAMES.join(", ")
                )));
        }
        if let Some(meant) = pgdyno_text::nearest::probable(name, Key::NAMES) {
            return Err(Complaint::new(format!("unknown factor `{name}`")).with_help(format!(
                "nearest is `{meant}`; a factor is one of {} or a PostgreSQL setting",
                Key::NAMES.join(", ")
            )));
        }
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.') {
            return Err(Complaint::new(format!(
                "`{name}` cannot be the name of a PostgreSQL setting"
            )));
        }
    }
    Ok(key)
}

fn plain(name: &str, levels: Vec<Spanned<LevelValue>>) -> Result<Factor, Complaint> {
    let key = key(name)?;
    let level = |level| read_at(level, |value| plain_level(name, &key, value));
    let levels = levels.into_iter().map(level).collect::<Result<_, _>>()?;
    Ok(Factor { name: name.to_owned(), levels })
}

/// Returns the level of `factor` that gives `key` a value, by which it is called.
fn plain_level(factor: &str, key: &Key, value: LevelValue) -> Result<Level, Complaint> {
    check_level(key, &value).map_err(|c| c.about(&format!("factor `{factor}`")))?;
    Ok(Level { label: value.clone(), sets: vec![(key.clone(), value)] })
}

/// A table is a set of bundles when all its values are tables; otherwise its lists continue a name
/// with dots. So do lists in tables below `groups`: keys of groups of clients have two dots.
fn from_table(name: &str, table: &toml::Table, factors: &mut Vec<Factor>) -> Result<(), Complaint> {
    if table.is_empty() {
        return Err(Complaint::new(format!("factor `{name}` has no levels")));
    }
    let is_of_groups = format!("{name}.") == Key::GROUPS
        && flatten(table).iter().any(|(_, value)| value.is_array());
    if table.values().all(toml::Value::is_table) && !is_of_groups {
        let mut levels = Vec::new();
        for (label, sets) in table {
            let Some(sets) = sets.as_table() else { continue };
            let mut assigned = Vec::new();
            for (inner, value) in flatten(sets) {
                let key = key(&inner)?;
                let value = setting_value(&inner, value)?;
                check_level(&key, &value)
                    .map_err(|c| c.about(&format!("factor `{name}`, level `{label}`")))?;
                // `postgres.dsn` of the command line and `postgres = { dsn = … }` of the file are
                // one key: the later counts.
                assigned.retain(|(known, _)| *known != key);
                assigned.push((key, value));
            }
            levels.push(Level { label: LevelValue::Text(label.clone()), sets: assigned });
        }
        factors.push(Factor { name: name.to_owned(), levels });
        return Ok(());
    }
    for (rest, value) in flatten(table) {
        let full = format!("{name}.{rest}");
        let Some(list) = value.as_array() else {
            return Err(Complaint::new(format!(
                "factor `{full}` wants a list of levels"
            ))
            .with_help(format!(
                "write `{full} = [{value}]`, or give bundles: `{name} = {{ first = {{ … }}, second \
                 = {{ … }} }}`"
            )));
        };
        if list.is_empty() {
            return Err(Complaint::new(format!("factor `{full}` needs at least one level")));
        }
        let key = key(&full)?;
        let level = |value| plain_level(&full, &key, setting_value(&full, value)?);
        let levels = list.iter().map(level).collect::<Result<_, _>>()?;
        factors.push(Factor { name: full, levels });
    }
    Ok(())
}

/// The pairs of factor and level that `table` names, which is a part of `place` in the file.
pub(super) fn combination(
    place: &str,
    table: &toml::Table,
    factors: &[Factor],
) -> Result<Vec<(String, LevelValue)>, Complaint> {
    let mut pairs = Vec::new();
    for (name, value) in flatten(table) {
        let value = setting_value(&name, value)?;
        let Some(factor) = factors.iter().find(|f| f.name == name) else {
            let names: Vec<&str> = factors.iter().map(|f| f.name.as_str()).collect();
            return Err(Complaint::new(format!("`{place}` names `{name}`, which is no factor"))
                .with_help(among("the factors are", &name, &names)));
        };
        // `"on"` in one place and `true` in the other mean the same level.
        let Some(level) = factor.levels.iter().find(|l| l.label.to_string() == value.to_string())
        else {
            let labels: Vec<String> = factor.levels.iter().map(|l| l.label.to_string()).collect();
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            let help = among("its levels are", &value.to_string(), &labels);
            // A DSN may hold a password.
            let value = if name.ends_with("dsn") { "a DSN".to_owned() } else { value.to_string() };
            return Err(Complaint::new(format!(
                "`{place}` names {name} = {value}, which is no level of it"
            ))
            .with_help(help));
        };
        pairs.push((name, level.label.clone()));
    }
    Ok(pairs)
}

/// Returns the allowed words, nearest to `word` first.
fn among(what: &str, word: &str, there: &[&str]) -> String {
    match nearest(word, there).as_slice() {
        [] => "the experiment has no factors".to_owned(),
        [only] => format!("{what} {only}"),
        all => format!("nearest is `{}`; {what} {}", all[0], there.join(", ")),
    }
}

/// The pairs of factor and level that an `[[exclude]]` names.
pub(super) fn exclusion(
    table: &toml::Table,
    factors: &[Factor],
) -> Result<Vec<(String, LevelValue)>, Complaint> {
    let pairs = combination("[[exclude]]", table, factors)?;
    if pairs.is_empty() {
        return Err(Complaint::new("an `[[exclude]]` is empty: it would leave out everything"));
    }
    Ok(pairs)
}
