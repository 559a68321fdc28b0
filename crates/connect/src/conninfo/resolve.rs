//! Turns connection options into targets.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use pgdyno_model::target::{
    Address, ChannelBinding, LoadBalanceHosts, RequireAuth, RootCert, Secret, Servers,
    SessionAttrs, SslMode, Target, Tls,
};

use super::environment::Environment;
use super::error::ConninfoError;
use super::files::{PasswordFile, read_service};
use super::keywords::{KEYWORDS, Support};
use super::parse::{self, Options};
use crate::control::{ControlClient, ControlError};

/// The port where none is named.
const DEFAULT_PORT: u16 = 5432;

/// Connection options of a command line.
#[derive(Clone, Default)]
pub struct ConnectOptions {
    /// A database name, a URI or a list of `keyword=value`.
    pub dsn_or_dbname: Option<String>,
    /// A host, or several with commas between them. A host that begins with `/` is a socket
    /// directory.
    pub host: Option<String>,
    /// A port, or one for each host with commas between them.
    pub port: Option<String>,
    /// The role.
    pub user: Option<String>,
    /// The role's password.
    pub password: Option<Secret>,
    /// The session's `application_name` if nothing else sets it.
    pub fallback_application_name: Option<String>,
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The connection string can hold a password.
        f.debug_struct("ConnectOptions")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// The servers that connection options mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The servers, of which any will do.
    pub servers: Servers,
    /// Warnings, such as files that exist and are not used.
    pub notes: Vec<String>,
}

impl Resolved {
    /// Opens a control session on the first server that offers the kind that is wanted, and returns
    /// the session and its target.
    ///
    /// # Errors
    /// [`ControlError::NoneServes`], or the error of the only server.
    pub fn connect(&self) -> Result<(ControlClient, Target), ControlError> {
        self.connect_by(|target| ControlClient::connect(target, None))
    }

    /// Connects as [`Resolved::connect`] does; `connect` opens each session.
    ///
    /// # Errors
    /// As [`Resolved::connect`].
    pub fn connect_by(
        &self,
        connect: impl FnMut(&Target) -> Result<ControlClient, ControlError>,
    ) -> Result<(ControlClient, Target), ControlError> {
        let connected =
            self.servers.find(|n| fastrand::usize(..n), connect, ControlError::ends_search);
        connected.map_err(|mut errors| match errors.len() {
            1 => errors.remove(0),
            _ => ControlError::NoneServes { errors },
        })
    }
}

/// Returns the servers that `options` mean in this process's environment.
pub fn resolve(options: &ConnectOptions) -> Result<Resolved, ConninfoError> {
    resolve_in(options, &Environment::from_process())
}

/// Returns the servers that `options` mean in `environment`.
pub fn resolve_in(
    options: &ConnectOptions,
    environment: &Environment,
) -> Result<Resolved, ConninfoError> {
    let mut given = GivenOptions::default();
    let password = options.password.as_ref().map(|p| p.reveal().to_owned());
    let explicit = [
        ("host", options.host.clone()),
        ("port", options.port.clone()),
        ("user", options.user.clone()),
        ("password", password),
        ("fallback_application_name", options.fallback_application_name.clone()),
    ];
    for (keyword, value) in explicit {
        if let Some(value) = value.filter(|v| !v.is_empty()) {
            given.options.insert(keyword, value);
        }
    }
    match &options.dsn_or_dbname {
        Some(text) if parse::is_connection_string(text) => {
            for (keyword, value) in
                parse::parse(text.trim())?.into_iter().filter(|(_, v)| !v.is_empty())
            {
                given.hidden.push(keyword);
                given.options.insert(keyword, value);
            }
        }
        Some(name) if !name.is_empty() => {
            given.options.insert("dbname", name.clone());
        }
        _ => {}
    }
    given.complete(environment)?;
    given.resolve(environment)
}

/// Options by keyword, from the command line down to the environment.
#[derive(Default)]
struct GivenOptions {
    options: Options,
    /// Keywords whose values no message shows, since a misread connection string can hold a
    /// password anywhere.
    hidden: Vec<&'static str>,
}

impl GivenOptions {
    fn get(&self, keyword: &str) -> Option<&str> {
        self.options.get(keyword).map(String::as_str)
    }

    fn wrong(&self, keyword: &'static str, wanted: impl Into<String>) -> ConninfoError {
        let shown =
            self.get(keyword).filter(|_| !self.hidden.contains(&keyword) && keyword != "password");
        ConninfoError::Value { keyword, shown: shown.map(str::to_owned), wanted: wanted.into() }
    }

    /// Adds options of the service and of the environment that are not set yet, and refuses options
    /// that are not supported.
    fn complete(&mut self, environment: &Environment) -> Result<(), ConninfoError> {
        for known in
            KEYWORDS.iter().filter(|known| ["service", "servicefile"].contains(&known.name))
        {
            if let Some(value) = known.variable.and_then(|name| environment.variable(name)) {
                self.options.entry(known.name).or_insert_with(|| value.to_owned());
            }
        }
        if let Some(service) = self.get("service") {
            for (keyword, value) in read_service(service, self.get("servicefile"), environment)? {
                self.options.entry(keyword).or_insert(value);
            }
        }
        for known in KEYWORDS {
            if let Some(value) = known.variable.and_then(|name| environment.variable(name)) {
                self.options.entry(known.name).or_insert_with(|| value.to_owned());
            }
        }
        for known in KEYWORDS {
            let Some(value) = self.get(known.name) else { continue };
            let possible = match known.support {
                Support::Full | Support::Ignored => continue,
                Support::Only(values) if values.iter().any(|v| v.eq_ignore_ascii_case(value)) => {
                    continue;
                }
                Support::Only(values) => Some(values),
                Support::Never => None,
            };
            return Err(ConninfoError::Unsupported { keyword: known.name, possible });
        }
        Ok(())
    }

    fn resolve(&self, environment: &Environment) -> Result<Resolved, ConninfoError> {
        let user = self.get("user").map(str::to_owned).or_else(|| environment.user.clone());
        let user = user.ok_or(ConninfoError::NoUser)?;
        let database = self.get("dbname").unwrap_or(&user).to_owned();
        let connect_timeout = self.connect_timeout()?;
        let session_attrs = match self.get("target_session_attrs") {
            None => SessionAttrs::Any,
            Some(word) => SessionAttrs::named(word).ok_or_else(|| {
                let wanted = "any, read-write, read-only, primary, standby or prefer-standby";
                self.wrong("target_session_attrs", wanted)
            })?,
        };
        let require_auth: RequireAuth =
            self.get("require_auth").unwrap_or_default().parse().map_err(|_| {
                let wanted = "methods with commas between them, of password, md5, gss, \
                              sspi, scram-sha-256, oauth and none; or each with `!` before \
                              it, for all but these";
                self.wrong("require_auth", wanted)
            })?;
        let mut notes = Vec::new();
        let tls = self.tls(environment, &mut notes)?;
        let settings = self.settings(environment);
        let passwords = if self.get("password").is_some() {
            PasswordFile::default()
        } else {
            let named = self.get("passfile").map(PathBuf::from);
            let path = named.or_else(|| environment.home.as_ref().map(|home| home.join(".pgpass")));
            path.map(|path| PasswordFile::read(&path)).unwrap_or_default()
        };
        notes.extend(passwords.note.clone());
        let target = |(address, host_address): (Address, Option<IpAddr>)| {
            let (host, port) = match &address {
                Address::Tcp { host, port } => (host.clone(), *port),
                // Sockets in the usual place count as this host.
                Address::Unix { directory, port }
                    if environment.socket_directories.contains(directory) =>
                {
                    ("localhost".to_owned(), *port)
                }
                Address::Unix { directory, port } => (directory.display().to_string(), *port),
            };
            let password = match self.get("password") {
                Some(password) => Some(Secret::new(password.to_owned())),
                None => passwords.find(&host, port, &database, &user),
            };
            Target {
                host_address,
                password,
                settings: settings.clone(),
                tls: tls.clone(),
                session_attrs,
                require_auth: require_auth.clone(),
                connect_timeout,
                ..Target::new(address, user.clone(), database.clone())
            }
        };
        let load_balance_hosts = match self.get("load_balance_hosts") {
            None | Some("disable") => LoadBalanceHosts::Disable,
            Some("random") => LoadBalanceHosts::Random,
            Some(_) => return Err(self.wrong("load_balance_hosts", "disable or random")),
        };
        let targets = self.addresses(environment)?.into_iter().map(target).collect();
        Ok(Resolved { servers: Servers { targets, load_balance_hosts }, notes })
    }

    fn addresses(
        &self,
        environment: &Environment,
    ) -> Result<Vec<(Address, Option<IpAddr>)>, ConninfoError> {
        let list = |keyword| {
            self.get(keyword).map(|text| text.split(',').map(str::trim).collect::<Vec<_>>())
        };
        let (hosts, ips) = (list("host"), list("hostaddr"));
        let count = ips.as_ref().or(hosts.as_ref()).map_or(1, Vec::len);
        if let Some(hosts) = hosts.as_ref().filter(|hosts| hosts.len() != count) {
            return Err(ConninfoError::Count { keyword: "hostaddr", count, hosts: hosts.len() });
        }
        let ports = list("port").unwrap_or_else(|| vec![""]);
        if ports.len() != 1 && ports.len() != count {
            return Err(ConninfoError::Count { keyword: "port", count: ports.len(), hosts: count });
        }
        (0..count)
            .map(|i| {
                let port =
                    match ports.get(i).or(ports.first()).copied().unwrap_or_default() {
                        "" => DEFAULT_PORT,
                        text => text.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
                            self.wrong("port", "a port is a number from 1 to 65535")
                        })?,
                    };
                let at = |list: &Option<Vec<&str>>| {
                    list.as_ref()
                        .and_then(|l| l.get(i).copied())
                        .filter(|s| !s.is_empty())
                        .map(str::to_owned)
                };
                let ip = at(&ips)
                    .map(|text| {
                        text.parse::<IpAddr>().map_err(|_| self.wrong("hostaddr", "an IP address"))
                    })
                    .transpose()?;
                Ok(match (at(&hosts), ip) {
                    (host, Some(ip)) => (
                        Address::Tcp { host: host.unwrap_or_else(|| ip.to_string()), port },
                        Some(ip),
                    ),
                    (Some(host), None) if host.starts_with('/') => {
                        (Address::Unix { directory: PathBuf::from(host), port }, None)
                    }
                    (Some(host), None) if host.starts_with('@') => {
                        return Err(
                            self.wrong("host", "abstract socket names are not supported yet")
                        );
                    }
                    (Some(host), None) => (Address::Tcp { host, port }, None),
                    (None, None) => (usual_address(environment, port), None),
                })
            })
            .collect()
    }

    fn connect_timeout(&self) -> Result<Option<Duration>, ConninfoError> {
        let Some(text) = self.get("connect_timeout") else { return Ok(None) };
        let seconds: i64 = text.trim().parse().map_err(|_| {
            self.wrong("connect_timeout", "a whole number of seconds, 0 for no limit")
        })?;
        // Zero means no limit of the target's own.
        Ok(u64::try_from(seconds).ok().filter(|s| *s > 0).map(Duration::from_secs))
    }

    fn settings(&self, environment: &Environment) -> Vec<(String, String)> {
        let name = self.get("application_name").or_else(|| self.get("fallback_application_name"));
        let variable = |setting, name| Some((setting, environment.variable(name)?));
        [
            name.map(|name| ("application_name", name)),
            self.get("options").map(|text| ("options", text)),
            variable("datestyle", "PGDATESTYLE"),
            variable("timezone", "PGTZ"),
            variable("geqo", "PGGEQO"),
        ]
        .into_iter()
        .flatten()
        .filter(|(name, value)| {
            ["options", "application_name"].contains(name) || *value != "default"
        })
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
    }

    fn tls(
        &self,
        environment: &Environment,
        notes: &mut Vec<String>,
    ) -> Result<Tls, ConninfoError> {
        let explicit = match self.get("sslmode") {
            Some(word) => Some(SslMode::named(word).ok_or_else(|| {
                self.wrong("sslmode", "disable, allow, prefer, require, verify-ca or verify-full")
            })?),
            None => (self.get("requiressl") == Some("1")).then_some(SslMode::Require),
        };
        let from_system = self.get("sslrootcert") == Some("system");
        let mode =
            explicit.unwrap_or(if from_system { SslMode::VerifyFull } else { SslMode::Prefer });
        if from_system && mode != SslMode::VerifyFull {
            return Err(self.wrong("sslmode", "with sslrootcert=system it must be verify-full"));
        }
        let channel_binding = match self.get("channel_binding") {
            None | Some("prefer") => ChannelBinding::Prefer,
            Some("disable") => ChannelBinding::Disable,
            Some("require") => ChannelBinding::Require,
            Some(_) => return Err(self.wrong("channel_binding", "disable, prefer or require")),
        };
        if mode == SslMode::Disable {
            return Ok(Tls { mode, channel_binding, ..Tls::default() });
        }
        // A file that is named and missing counts as not named, with a warning.
        let mut file = |keyword: &str, usual: &str| match self.get(keyword) {
            Some(path) => {
                let path = PathBuf::from(path);
                let there = path.exists();
                if !there {
                    notes.push(format!("{keyword} {} is not there", path.display()));
                }
                there.then_some(path)
            }
            None => {
                let path = environment.home.as_ref()?.join(".postgresql").join(usual);
                path.exists().then_some(path)
            }
        };
        let root = if from_system {
            Some(RootCert::System)
        } else {
            file("sslrootcert", "root.crt").map(RootCert::File)
        };
        let shown = self.get("sslcertmode") != Some("disable");
        let cert = if shown { file("sslcert", "postgresql.crt") } else { None };
        let key = if cert.is_some() { file("sslkey", "postgresql.key") } else { None };
        Ok(Tls { mode, root, cert, key, channel_binding })
    }
}

/// Returns the address to use if no host is named: the first socket that exists, or localhost.
fn usual_address(environment: &Environment, port: u16) -> Address {
    environment
        .socket_directories
        .iter()
        .map(|directory| Address::Unix { directory: directory.clone(), port })
        .find(|address| address.socket_path().is_some_and(|path| path.exists()))
        .unwrap_or(Address::Tcp { host: "localhost".into(), port })
}
