//! A server that pgdyno does not own, given by a DSN: it is driven and asked, never changed.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use pgdyno_model::facts::{BuildSource, ServerFacts};
use pgdyno_model::target::{Address, Secret, Target};
use postgres::Client;
use postgres::config::{Config, Host, SslMode};

use super::control::{self, ControlError};

/// A given server cannot be used. No message holds any part of a password.
#[derive(Debug, thiserror::Error)]
pub enum GivenError {
    /// The DSN cannot be read. Nothing of it is quoted: a password written wrongly could be in any part.
    #[error(
        "cannot read the DSN: it is neither a URI nor a list of `keyword=value`, or holds an unknown keyword or value"
    )]
    Unreadable,
    /// It asks for what pgdyno cannot do.
    #[error("cannot use the DSN: {what}")]
    Unsupported {
        /// What it asks for.
        what: &'static str,
        /// What to do.
        help: &'static str,
    },
    /// None of its servers takes a connection; the last one's answer.
    #[error(transparent)]
    Control(#[from] ControlError),
}

impl GivenError {
    /// What to do.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Unreadable => Some(
                "write it like `postgresql://user:password@host:5432/database` (with %-escapes for `@`, `:` and `/` in \
                 the password) or `host=… port=… user=… dbname=…`; sslmode can be `disable` or `prefer`"
                    .into(),
            ),
            Self::Unsupported { help, .. } => Some((*help).to_owned()),
            Self::Control(e) => e.help(),
        }
    }
}

/// A server that pgdyno does not own, and that took a connection.
#[derive(Clone, Debug)]
pub struct Given {
    target: Target,
}

impl Given {
    /// Reads `dsn` (a URI or keywords and values) and connects: of several hosts to the first that takes it.
    ///
    /// # Errors
    /// [`GivenError`].
    pub fn connect(dsn: &Secret) -> Result<Self, GivenError> {
        let mut refused = None;
        for target in targets(dsn)? {
            match control::connect(&target) {
                Ok(_) => return Ok(Self { target }),
                Err(e) => refused = Some(e),
            }
        }
        Err(refused.map_or(GivenError::Unreadable, GivenError::Control))
    }

    /// How to reach the DSN's own database.
    #[must_use]
    pub fn target(&self) -> Target {
        self.target.clone()
    }

    /// A control connection to the DSN's own database.
    ///
    /// # Errors
    /// [`ControlError::Connect`].
    pub fn control(&self) -> Result<Client, ControlError> {
        control::connect(&self.target)
    }

    /// What the server says of itself.
    ///
    /// # Errors
    /// [`ControlError`].
    pub fn facts(&self) -> Result<ServerFacts, ControlError> {
        let address = self.target.address.to_string();
        super::facts::read(&mut self.control()?, BuildSource::Given { address })
    }

    /// Its `PGDATA`, if the server runs on this machine and tells.
    #[must_use]
    pub fn data_directory(&self) -> Option<PathBuf> {
        let here = match &self.target.address {
            Address::Unix { .. } => true,
            Address::Tcp { host, .. } => {
                host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
        };
        let asked = "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'data_directory'";
        let row = here.then(|| self.control().ok()?.query_opt(asked, &[]).ok()?).flatten()?;
        let path = PathBuf::from(row.get::<_, String>(0));
        path.is_dir().then_some(path)
    }
}

/// `dsn` without its password, fit to be stored and shown; none if it cannot be read, so that nobody can tell where in
/// it a password is.
#[must_use]
pub fn without_password(dsn: &str) -> Option<String> {
    let config: Config = dsn.trim().parse().ok()?;
    if config.get_hosts().iter().any(is_misread) {
        return None;
    }
    if config.get_password().is_none() {
        return Some(dsn.to_owned());
    }
    // Made anew from what was understood: no spelling of the password can slip through.
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        })
        .collect();
    let ports: Vec<String> = config.get_ports().iter().map(ToString::to_string).collect();
    let words = [
        ("host", Some(hosts.join(","))),
        ("port", Some(ports.join(","))),
        ("user", config.get_user().map(str::to_owned)),
        ("dbname", config.get_dbname().map(str::to_owned)),
        ("options", config.get_options().map(str::to_owned)),
    ];
    let quoted = |value: &str| format!("'{}'", value.replace('\\', r"\\").replace('\'', r"\'"));
    let spelled = words.iter().filter_map(|(word, value)| {
        value.as_deref().filter(|v| !v.is_empty()).map(|v| format!("{word}={}", quoted(v)))
    });
    Some(spelled.collect::<Vec<_>>().join(" "))
}

/// Every server that `dsn` names, in order.
fn targets(dsn: &Secret) -> Result<Vec<Target>, GivenError> {
    let config: Config = dsn.reveal().trim().parse().map_err(|_| GivenError::Unreadable)?;
    if config.get_ssl_mode() != SslMode::Disable && config.get_ssl_mode() != SslMode::Prefer {
        return Err(GivenError::Unsupported {
            what: "it requires TLS, which pgdyno does not speak",
            help: "use sslmode=prefer or disable if the server takes connections without TLS",
        });
    }
    let user = match config.get_user() {
        Some(user) => user.to_owned(),
        None => our_name().ok_or(GivenError::Unsupported {
            what: "it names no user, and this process's user has no name",
            help: "add `user=…`",
        })?,
    };
    let password = match config.get_password() {
        Some(bytes) => Some(String::from_utf8(bytes.to_vec()).map_err(|_| GivenError::Unreadable)?),
        None => std::env::var("PGPASSWORD").ok(),
    };
    let settings = config.get_options().map_or(Ok(Vec::new()), start_up_settings)?;
    let target = |address| Target {
        address,
        database: config.get_dbname().unwrap_or(&user).to_owned(),
        user: user.clone(),
        password: password.clone().map(Secret::new),
        settings: settings.clone(),
    };
    let ports = config.get_ports();
    let port = |i: usize| ports.get(i).or(ports.first()).copied().unwrap_or(5432);
    let mut addresses = Vec::new();
    if config.get_hosts().is_empty() {
        addresses.extend(
            config
                .get_hostaddrs()
                .iter()
                .enumerate()
                .map(|(i, ip)| Address::Tcp { host: ip.to_string(), port: port(i) }),
        );
    }
    for (i, host) in config.get_hosts().iter().enumerate() {
        addresses.push(match host {
            host if is_misread(host) => return Err(GivenError::Unreadable),
            Host::Tcp(name) => Address::Tcp { host: name.clone(), port: port(i) },
            Host::Unix(directory) => Address::Unix { directory: directory.clone(), port: port(i) },
        });
    }
    if addresses.is_empty() {
        addresses.push(usual_address(port(0)));
    }
    Ok(addresses.into_iter().map(target).collect())
}

/// Whether a "host" is really the end of a password with an unescaped `@`; it must not be shown.
fn is_misread(host: &Host) -> bool {
    matches!(host, Host::Tcp(name) if name.contains(['@', ' ', '?', '=']))
}

/// Where a server is sought if the DSN names no host: Debian's socket directory, `/tmp`, localhost.
fn usual_address(port: u16) -> Address {
    ["/var/run/postgresql", "/tmp"]
        .into_iter()
        .map(|directory| Address::Unix { directory: PathBuf::from(directory), port })
        .find(|a| a.socket_path().is_some_and(|p| Path::new(&p).exists()))
        .unwrap_or(Address::Tcp { host: "localhost".into(), port })
}

/// `options=-c name=value --name=value`, as the start-up packet's settings.
fn start_up_settings(options: &str) -> Result<Vec<(String, String)>, GivenError> {
    let unsupported = GivenError::Unsupported {
        what: "its `options` hold something else than `-c name=value` or `--name=value`",
        help: "set these in `[postgres] settings`, or for the role with ALTER ROLE",
    };
    let mut settings = Vec::new();
    let mut words = options.split_whitespace();
    while let Some(word) = words.next() {
        let pair = match (word, word.strip_prefix("-c"), word.strip_prefix("--")) {
            ("-c", ..) => words.next(),
            (_, _, Some(pair)) | (_, Some(pair), _) => Some(pair),
            _ => None,
        };
        match pair.and_then(|p| p.split_once('=')) {
            Some((name, value)) if !value.contains('\\') => {
                settings.push((name.replace('-', "_"), value.to_owned()));
            }
            _ => return Err(unsupported),
        }
    }
    Ok(settings)
}

fn our_name() -> Option<String> {
    std::env::var("PGUSER").or_else(|_| std::env::var("USER")).ok().filter(|n| !n.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_reaches_the_same_server_and_holds_no_password() {
        for dsn in
            ["postgresql://anna:hun%74er2@db.example:6000/it's", r"host=/run/x password='hun\ter2' user=anna"]
        {
            let shown = without_password(dsn).unwrap();
            assert!(!shown.contains("hun") && !shown.contains("ter2"), "{shown}");
            let (before, after) = (dsn.parse::<Config>().unwrap(), shown.parse::<Config>().unwrap());
            assert_eq!(
                (before.get_hosts(), before.get_dbname()),
                (after.get_hosts(), after.get_dbname()),
                "{shown}"
            );
            assert_eq!((before.get_user(), after.get_password()), (after.get_user(), None));
        }
        assert_eq!(without_password("host=x user=y").as_deref(), Some("host=x user=y"));
        assert_eq!(without_password("no dsn"), None);
        assert_eq!(without_password("postgres://anna:hun@ter2@host/db"), None);
    }

    fn first(dsn: &str) -> Target {
        targets(&Secret::new(dsn.into())).unwrap().remove(0)
    }

    #[test]
    fn uris_and_keywords_say_the_same() {
        let uri = first("postgresql://ann:s%40cret@db.example:6432/shop?options=-c%20work_mem%3D4MB");
        let keywords = first(
            "host=db.example port=6432 user=ann password='s@cret' dbname=shop options='-c work_mem=4MB'",
        );
        assert_eq!(uri, keywords);
        assert_eq!(uri.password.unwrap().reveal(), "s@cret");
        assert_eq!(uri.settings, [("work_mem".to_owned(), "4MB".to_owned())]);
    }

    #[test]
    fn sockets_and_several_hosts_are_understood() {
        let socket = first("host=/run/pg user=ann");
        assert_eq!(socket.address.to_string(), "/run/pg/.s.PGSQL.5432");
        assert_eq!(socket.database, "ann");
        let both = targets(&Secret::new("postgres://ann@a:1,b:2/x".into())).unwrap();
        assert_eq!(both.iter().map(|t| t.address.to_string()).collect::<Vec<_>>(), ["a:1", "b:2"]);
    }

    #[test]
    fn no_error_holds_any_part_of_a_password() {
        let wrong = [
            "postgres://ann:hunter2@secret@host/db",
            "postgres://ann:hunter2/secret@host/db",
            "postgres://ann:hunter2:secret@host:x/db",
            "host=h user=u password=hunter2 secret",
            "host=h user=u password='hunter2",
            "host=h passwort=hunter2",
            "hunter2",
            "postgres://ann:hunter2@host/db?sslmode=require",
            "postgres://ann:hunter2@host/db?sslmode=verify-full",
            "host=h user=u password=hunter2 options=-x",
        ];
        for dsn in wrong {
            let shown = match targets(&Secret::new(dsn.into())) {
                Err(error) => format!("{error} {error:?} {:?}", error.help()),
                // Some mistakes are understood all the same; then the password is where it belongs.
                Ok(targets) => format!("{targets:?}"),
            };
            assert!(!shown.contains("hunter2") && !shown.contains("secret"), "{dsn}: {shown}");
        }
    }
}
