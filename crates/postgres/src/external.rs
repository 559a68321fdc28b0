//! External servers: pgdyno drives and queries them and never changes them.

use std::path::PathBuf;

use pgdyno_connect::conninfo::{
    ConnectOptions, ConninfoError, Environment, Resolved, format_options, is_connection_string,
    parse, resolve_in,
};
use pgdyno_connect::control::{self, Client, ControlClient, ControlError};
use pgdyno_model::facts::{BuildSource, ServerFacts};
use pgdyno_model::target::{LoadBalanceHosts, Secret, Target};
use pgdyno_model::{Advice, FailureKind};

/// An external server cannot be used. No message holds any part of a password.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ExternalServerError {
    /// The DSN has a syntax error. The message quotes none of it, since a misspelt password could
    /// be in any part.
    #[error("cannot read the DSN: it is neither a URI nor a list of `keyword=value`")]
    Unreadable,
    /// The DSN leads to no server.
    #[error(transparent)]
    Conninfo(#[from] ConninfoError),
    /// The DSN asks for something that pgdyno does not support.
    #[error("cannot use the DSN: {what}")]
    Unsupported { what: &'static str, help: &'static str },
    /// None of the DSN's servers takes a connection.
    #[error("{error}")]
    Refused {
        error: Box<ControlError>,
        /// Files that were not used, and why, since they may be the cause.
        notes: Vec<String>,
    },
}

impl Advice for ExternalServerError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Unreadable => Some(
                "write it like `postgresql://user:password@host:5432/database` (with %-escapes for \
                 `@`, `:` and `/` in the password) or `host=… port=… user=… dbname=…`"
                    .into(),
            ),
            Self::Unsupported { help, .. } => Some((*help).to_owned()),
            Self::Conninfo(e) => e.help(),
            Self::Refused { error, notes } => {
                let help: Vec<String> = notes.iter().cloned().chain(error.help()).collect();
                (!help.is_empty()).then(|| help.join("; "))
            }
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Refused { error, .. } => error.kind(),
            Self::Conninfo(error) => error.kind(),
            _ => FailureKind::Server,
        }
    }
}

/// A server that pgdyno does not own, and that took a connection.
#[derive(Clone, Debug)]
pub struct ExternalServer {
    target: Target,
}

impl ExternalServer {
    /// Connects to the first server of `dsn` (a URI or `keyword=value`) that takes a connection.
    /// Services, environment and `.pgpass` complete the DSN, as in libpq.
    pub fn connect(dsn: &Secret) -> Result<Self, ExternalServerError> {
        let resolved = resolved(dsn, &Environment::from_process())?;
        match resolved.connect() {
            Ok((_, target)) => Ok(Self { target }),
            Err(error) => {
                Err(ExternalServerError::Refused { error: error.into(), notes: resolved.notes })
            }
        }
    }

    /// Returns the target of the DSN's own database.
    pub fn target(&self) -> Target {
        self.target.clone()
    }

    /// Opens a control connection to the DSN's own database.
    ///
    /// # Errors
    /// [`ControlError::Connect`].
    pub fn control(&self) -> Result<Client, ControlError> {
        control::connect(&self.target)
    }

    /// Reads the server's version and settings.
    pub fn facts(&self) -> Result<ServerFacts, ControlError> {
        let address = self.target.address.to_string();
        super::facts::read(&mut self.control()?, BuildSource::Given { address })
    }

    /// Returns `PGDATA` on the server's host, wherever that is, if the server shows it.
    pub fn data_directory_there(&self) -> Option<PathBuf> {
        shown_data_directory(&mut ControlClient::connect(&self.target, None).ok()?)
    }

    /// Returns `PGDATA`, if the server runs on this host and shows it.
    pub fn data_directory(&self) -> Option<PathBuf> {
        data_directory(&mut ControlClient::connect(&self.target, None).ok()?, &self.target)
    }
}

/// Returns the `PGDATA` of the server at `target`, if it runs on this host and shows it to
/// `client`.
pub fn data_directory(client: &mut ControlClient, target: &Target) -> Option<PathBuf> {
    let path = target.is_here().then(|| shown_data_directory(client)).flatten()?;
    // In a container the path may mean something else here, or nothing. This user may not be
    // allowed to look into it.
    let is_its = path.join("postmaster.pid").try_exists().unwrap_or_else(|_| path.is_dir());
    is_its.then_some(path)
}

/// Returns the setting `data_directory`, which not every role may see.
fn shown_data_directory(client: &mut ControlClient) -> Option<PathBuf> {
    let asked = "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'data_directory'";
    let row = client.query_opt(asked, &[]).ok()??;
    row.try_get::<_, String>(0).ok().map(PathBuf::from)
}

/// Removes the password from `dsn`, so that it can be stored and shown. Returns none if `dsn`
/// cannot be parsed, since the password could then be anywhere.
pub fn without_password(dsn: &str) -> Option<String> {
    const SECRET: [&str; 2] = ["password", "sslpassword"];
    let dsn = dsn.trim();
    if !is_connection_string(dsn) {
        return None;
    }
    let options = parse(dsn).ok()?;
    if !SECRET.iter().any(|secret| options.contains_key(secret)) {
        return Some(dsn.to_owned());
    }
    // Formats the parsed options anew, so that no spelling of the password remains.
    let open = options.iter().filter(|(keyword, _)| !SECRET.contains(keyword));
    Some(format_options(open.map(|(keyword, value)| (*keyword, value.as_str()))))
}

/// Returns the server's name in `dsn`, such as `host:port/dbname` or `service=NAME`. It holds no
/// password and no user. None if `dsn` cannot be parsed.
pub fn server_name(dsn: &str) -> Option<String> {
    let dsn = dsn.trim();
    let options = is_connection_string(dsn).then(|| parse(dsn).ok())??;
    let word =
        |keyword: &str| options.get(keyword).map(String::as_str).filter(|value| !value.is_empty());
    let host = match (word("host").or(word("hostaddr")), word("service")) {
        (Some(host), _) => host.to_owned(),
        (None, Some(service)) => format!("service={service}"),
        (None, None) => "local".to_owned(),
    };
    let port = word("port").map(|port| format!(":{port}")).unwrap_or_default();
    let database = word("dbname").map(|dbname| format!("/{dbname}")).unwrap_or_default();
    Some(format!("{host}{port}{database}"))
}

/// Returns all servers of `dsn` in order, with its `options` as settings by name.
fn resolved(dsn: &Secret, environment: &Environment) -> Result<Resolved, ExternalServerError> {
    if !is_connection_string(dsn.reveal().trim()) {
        return Err(ExternalServerError::Unreadable);
    }
    let options = ConnectOptions {
        dsn_or_dbname: Some(dsn.reveal().trim().to_owned()),
        ..Default::default()
    };
    let mut resolved = resolve_in(&options, environment)?;
    let servers = &mut resolved.servers;
    if servers.targets.len() > 1 && servers.load_balance_hosts == LoadBalanceHosts::Random {
        return Err(ExternalServerError::Unsupported {
            what: "its `load_balance_hosts=random` spreads clients over several servers, and an \
                   experiment measures one",
            help: "name one host, or leave `load_balance_hosts` out to have the first that serves",
        });
    }
    for target in &mut servers.targets {
        let Some(at) = target.settings.iter().position(|(name, _)| name == "options") else {
            continue;
        };
        let (_, options) = target.settings.remove(at);
        target.settings.extend(start_up_settings(&options)?);
    }
    Ok(resolved)
}

/// Parses `options=-c name=value --name=value` into settings of the start-up packet.
fn start_up_settings(options: &str) -> Result<Vec<(String, String)>, ExternalServerError> {
    let unsupported = ExternalServerError::Unsupported {
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

#[cfg(test)]
mod tests {
    use tokio_postgres::Config;

    use super::*;

    fn targets(dsn: &Secret) -> Result<Vec<Target>, ExternalServerError> {
        let environment = Environment { user: Some("me".into()), ..Environment::default() };
        resolved(dsn, &environment).map(|resolved| resolved.servers.targets)
    }

    #[test]
    fn what_is_stored_reaches_the_same_server_and_holds_no_password() {
        for dsn in [
            "postgresql://anna:hun%74er2@db.example:6000/it's",
            r"host=/run/x password='hun\ter2' user=anna",
        ] {
            let shown = without_password(dsn).unwrap();
            assert!(!shown.contains("hun") && !shown.contains("ter2"), "{shown}");
            let (before, after) =
                (dsn.parse::<Config>().unwrap(), shown.parse::<Config>().unwrap());
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

    #[test]
    fn a_server_is_called_by_where_it_is() {
        for (dsn, name) in [
            ("postgresql://anna:hunter2@db.example:6000/shop", "db.example:6000/shop"),
            ("host=/run/x password=hunter2 user=anna", "/run/x"),
            ("service=head password=hunter2", "service=head"),
            ("user=anna", "local"),
        ] {
            assert_eq!(server_name(dsn).as_deref(), Some(name));
        }
        assert_eq!(server_name("hunter2"), None);
    }

    fn first(dsn: &str) -> Target {
        targets(&Secret::new(dsn.into())).unwrap().remove(0)
    }

    #[test]
    fn uris_and_keywords_say_the_same() {
        let uri =
            first("postgresql://ann:s%40cret@db.example:6432/shop?options=-c%20work_mem%3D4MB");
        let keywords = first(
            "host=db.example port=6432 user=ann password='s@cret' dbname=shop \
             options='-c work_mem=4MB'",
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
