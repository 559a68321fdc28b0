//! `[postgres]`: the server, and its settings.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use pgdyno_generators::host_name;
use pgdyno_model::experiment::{Connect, Postgres};
use pgdyno_model::level::LevelValue;
use pgdyno_model::target::Secret;
use serde::Deserialize;
use toml::Spanned;

use super::error::{Complaint, read_at};
use super::levels::{flatten, major, setting_value};
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
    /// The host of an external server, `ssh:HOST`: its telemetry is read there.
    #[cfg_attr(test, schemars(with = "String", extend("examples" = ["ssh:db1"])))]
    observe: Option<Spanned<String>>,
    /// Allow settings of an external server to be changed between trials, for everybody on it.
    /// They are put back.
    alter_system: bool,
    /// Options for initdb, such as `--data-checksums`.
    initdb: Vec<String>,
    /// PostgreSQL's settings for all treatments, by their names.
    #[cfg_attr(test, schemars(with = "super::schema::FreeTable"))]
    settings: toml::Table,
    /// How clients reach a server that pgdyno makes. By default by its socket.
    #[cfg_attr(test, schemars(with = "Connect", extend("default" = "socket")))]
    connect: Option<Connect>,
    /// The address of this machine on which a server that pgdyno makes listens for generators on
    /// other hosts. All clients then connect by it, over TLS and with a password.
    #[cfg_attr(test, schemars(with = "String", extend("examples" = ["10.0.0.1"])))]
    pub(super) listen: Option<Spanned<IpAddr>>,
    /// The workload's schema on an external server. By default `pgdyno`.
    schema: Option<String>,
}

/// Returns the host that `ssh:HOST` names.
fn observed_host(text: &str) -> Option<String> {
    text.strip_prefix("ssh:").and_then(|host| host_name(host).ok())
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
        self.check_listen(is_external)?;
        if let Some(observe) = &self.observe {
            read_at(observe.clone(), |host| self.check_observed(&host))?;
        }
        if self.alter_system && !is_external {
            return Err(Complaint::new(
                "`postgres.alter_system` is for servers that pgdyno does not own, and no \
                 `postgres.dsn` names one",
            )
            .with_help(
                "leave it out: settings of a server that pgdyno makes are changed in any case",
            ));
        }
        Ok(())
    }

    fn check_listen(&self, is_external: bool) -> Result<(), Complaint> {
        let Some(listen) = &self.listen else { return Ok(()) };
        let (what, help) = if is_external {
            (
                "`postgres.dsn` names a running server, `listen` is for one that pgdyno makes",
                "keep one of the two",
            )
        } else if self.connect.is_some() {
            (
                "`postgres.listen` and `postgres.connect` both say how clients connect",
                "keep one of the two",
            )
        } else if listen.get_ref().is_unspecified() {
            (
                "`postgres.listen` names every address, and generators have to be told one",
                "name the one that they reach",
            )
        } else {
            return Ok(());
        };
        Err(Complaint::new(what).with_help(help).at(listen.span()))
    }

    fn check_observed(&self, host: &str) -> Result<(), Complaint> {
        if self.dsn.is_none() {
            return Err(Complaint::new(
                "`postgres.observe` names the host of the server of `postgres.dsn`, which names \
                 none",
            )
            .with_help(
                "leave it out: the host of a server that pgdyno makes is read in any case",
            ));
        }
        observed_host(host).map(drop).ok_or_else(|| {
            Complaint::new(format!("`postgres.observe`: `{host}` is no host that `ssh` reaches"))
                .with_help("write `ssh:HOST`, as `ssh` knows it")
        })
    }

    /// Returns the values of `postgres.settings`.
    pub(super) fn settings(&self) -> Result<BTreeMap<String, LevelValue>, Complaint> {
        let settings = flatten(&self.settings).into_iter();
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
            connect: self.connect.unwrap_or_default(),
            listen: self.listen.map(Spanned::into_inner),
            observe: self.observe.and_then(|host| observed_host(host.get_ref())),
            schema: self.schema,
        }
    }
}
