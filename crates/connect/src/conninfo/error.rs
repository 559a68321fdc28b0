//! Errors of connection options.

use std::path::PathBuf;

use pgdyno_model::{Advice, FailureKind};

/// Connection options cannot be used. No message holds any part of a connection string.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ConninfoError {
    /// The connection string has a syntax error.
    #[error("cannot read the connection string: {0}")]
    Unreadable(&'static str),
    /// The connection string has a keyword that libpq does not know.
    #[error("cannot read the connection string: it holds an unknown keyword")]
    Keyword { nearest: Option<&'static str> },
    /// An option has an invalid value.
    #[error(
        "invalid value{} for connection option `{keyword}`: {wanted}",
        shown.as_ref().map_or_else(String::new, |v| format!(" `{v}`"))
    )]
    Value {
        keyword: &'static str,
        /// The value, if it may be shown.
        shown: Option<String>,
        wanted: String,
    },
    /// A list of values and the list of hosts differ in length.
    #[error("cannot match {count} values of `{keyword}` to {hosts} hosts")]
    Count {
        keyword: &'static str,
        /// Values of the keyword (count).
        count: usize,
        /// Hosts (count).
        hosts: usize,
    },
    /// libpq supports the option or its value, and pgdyno does not.
    #[error(
        "connection option `{keyword}` is not supported yet{}",
        possible.map_or_else(String::new, |p| format!(", but for {}", p.join(", ")))
    )]
    Unsupported {
        keyword: &'static str,
        /// The values that are supported.
        possible: Option<&'static [&'static str]>,
    },
    /// No service file has the service.
    #[error(
        "no service `{name}` in {}",
        sought.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(" or ")
    )]
    NoService { name: String, sought: Vec<PathBuf> },
    /// The named service file cannot be read.
    #[error("cannot read service file {}: {cause}", path.display())]
    ServiceFile { path: PathBuf, cause: std::io::Error },
    /// A line of a service file is wrong.
    #[error("service file {}, line {line}: {found}", path.display())]
    ServiceLine { path: PathBuf, line: usize, found: &'static str },
    /// No option names a role, and this process's user has no name.
    #[error("nothing names a user, and this process's user has no name")]
    NoUser,
}

impl Advice for ConninfoError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Unreadable(_) => Some(
                "write it like `postgresql://user:password@host:5432/database` (with %-escapes for \
                 `@`, `:` and `/` in the password) or `host=… port=… user=… dbname=…`"
                    .into(),
            ),
            Self::Keyword { nearest } => nearest.map(|nearest| format!("perhaps `{nearest}`?")),
            Self::Unsupported { .. } => Some(
                "leave it out; docs/pgbench.md lists what is not supported of libpq's options"
                    .into(),
            ),
            Self::NoUser => Some("name one with `user=…` or PGUSER".into()),
            _ => None,
        }
    }

    fn kind(&self) -> FailureKind {
        FailureKind::Input
    }
}
