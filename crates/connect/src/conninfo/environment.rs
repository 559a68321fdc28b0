//! The surroundings of a connection string: environment variables, home directory, user.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The sources of options that are not given. Files are read from the disk in any case.
#[derive(Clone, Default)]
pub struct Environment {
    /// Environment variables.
    pub variables: BTreeMap<String, String>,
    /// The home directory, for `.pgpass`, `.pg_service.conf` and `.postgresql/`.
    pub home: Option<PathBuf>,
    /// This process's user.
    pub user: Option<String>,
    /// Directories that may hold servers' Unix sockets.
    pub socket_directories: Vec<PathBuf>,
    /// The directory of the system's `pg_service.conf`, unless `PGSYSCONFDIR` is set.
    pub system_directory: PathBuf,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The variables can hold a password.
        f.debug_struct("Environment")
            .field("home", &self.home)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl Environment {
    /// Reads the environment of this process.
    pub fn from_process() -> Self {
        let variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let non_empty = |name: &str| variables.get(name).filter(|value| !value.is_empty()).cloned();
        let entry = passwd_entry();
        let user = entry.as_ref().map(|(user, _)| user.clone()).or_else(|| non_empty("USER"));
        let home = non_empty("HOME").map(PathBuf::from).or_else(|| entry.map(|(_, home)| home));
        Self {
            user,
            home,
            socket_directories: vec!["/var/run/postgresql".into(), "/tmp".into()],
            system_directory: "/etc/postgresql-common".into(),
            variables,
        }
    }

    /// Returns the variable `name`, if it is set and not empty.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

/// Reads this user's name and home directory from passwd.
fn passwd_entry() -> Option<(String, PathBuf)> {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let passwd = std::fs::read_to_string("/etc/passwd").ok()?;
    passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let (name, id, home) = (fields.first()?, fields.get(2)?, fields.get(5)?);
        (**id == *uid).then(|| ((*name).to_owned(), PathBuf::from(home)))
    })
}
