//! `[postgres]`: the server, and its settings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pgdyno_model::experiment::{Connect, Postgres};
use pgdyno_model::level::LevelValue;
use pgdyno_model::target::Secret;
use serde::Deserialize;

use super::error::Complaint;
use super::levels::{flattened, major, setting_value};
use super::source::Source;

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(super) struct PostgresTable {
    /// The folder of the server's programs. By default pgdyno finds one.
    bindir: Option<PathBuf>,
    /// The major version. It is fetched if it is not installed. By default the installed one.
    #[cfg_attr(test, schemars(schema_with = "super::schema::major"))]
    version: Option<Major>,
    /// An external server: a URI or `keyword=value` words, as libpq reads them. No cluster is
    /// made.
    pub(super) dsn: Option<String>,
    /// Allow settings of an external server to be changed between trials, for everybody on it.
    /// They are put back.
    alter_system: bool,
    /// Options for initdb, such as `--data-checksums`.
    initdb: Vec<String>,
    /// PostgreSQL's settings for all treatments, by their names.
    #[cfg_attr(test, schemars(with = "super::schema::FreeTable"))]
    settings: toml::Table,
    /// How clients reach a server that pgdyno makes.
    connect: Connect,
    /// The workload's schema on an external server. By default `pgdyno`.
    schema: Option<String>,
}

/// A major version: `17` or `"17"`.
struct Major(u32);

impl<'de> Deserialize<'de> for Major {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = LevelValue::deserialize(from)?;
        major(&value).map(Self).map_err(|c| serde::de::Error::custom(c.what))
    }
}

impl PostgresTable {
    /// Checks that keys for external servers and keys for pgdyno's own do not meet.
    pub(super) fn check(&self, is_external: bool) -> Result<(), Complaint> {
        if is_external && (self.bindir.is_some() || !self.initdb.is_empty()) {
            return Err(Complaint::new(
                "`postgres.dsn` names a running server, `bindir` and `initdb` make a new one",
            )
            .with_help("keep one of the two"));
        }
        if self.alter_system && !is_external {
            return Err(Complaint::new(
                "`postgres.alter_system` is for servers that pgdyno does not own, and no `postgres.dsn` names one",
            )
            .with_help("leave it out: settings of a server that pgdyno makes are changed in any case"));
        }
        Ok(())
    }

    /// Returns the values of `postgres.settings`.
    pub(super) fn settings(&self) -> Result<BTreeMap<String, LevelValue>, Complaint> {
        let settings = flattened(&self.settings).into_iter();
        settings.map(|(name, value)| setting_value(&name, value).map(|v| (name, v))).collect()
    }

    /// Returns the servers; `servers` are those that factors choose among.
    pub(super) fn into_postgres(
        self,
        settings: BTreeMap<String, LevelValue>,
        servers: BTreeMap<String, Secret>,
        source: &Source,
    ) -> Postgres {
        Postgres {
            bindir: self.bindir.map(|path| source.absolute(path)),
            version: self.version.map(|m| m.0),
            dsn: self.dsn.map(Secret::new),
            servers,
            alter_system: self.alter_system,
            initdb: self.initdb,
            settings,
            connect: self.connect,
            schema: self.schema,
        }
    }
}
