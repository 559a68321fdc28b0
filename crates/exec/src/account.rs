//! Whom the server runs as: never root, which initdb and postgres refuse.

use std::time::Duration;

use pgdyno_model::Advice;

pub use crate::program::Account;
use crate::program::ask_tool;

/// No account to run a server as.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// passwd is not readable.
    #[error("cannot read /etc/passwd to find an account for the server")]
    Passwd(#[source] std::io::Error),
    /// We are root, and there is nobody else.
    #[error(
        "pgdyno runs as root, and PostgreSQL refuses to; passwd has neither `postgres` nor \
         `nobody` to run it as"
    )]
    NobodyElse,
    /// initdb asks passwd for its own user's name.
    #[error(
        "PostgreSQL cannot run as user id {uid}: passwd has no entry for it, and initdb needs one"
    )]
    NoEntry {
        /// Our user id.
        uid: u32,
    },
}

impl Advice for AccountError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Passwd(_) => None,
            Self::NobodyElse => Some("add an account: `useradd --system postgres`".into()),
            Self::NoEntry { uid } => Some(format!(
                "run pgdyno as a user that passwd knows, or add an entry for {uid} (in a \
                 container: `--user` with an existing name)"
            )),
        }
    }
}

/// Whom a managed server runs as: for root `postgres`, or else `nobody`; otherwise ourselves.
///
/// # Errors
/// [`AccountError`]: passwd has no entry that serves.
pub fn server_account() -> Result<Account, AccountError> {
    let uid = rustix::process::geteuid().as_raw();
    match std::fs::read_to_string("/etc/passwd") {
        Ok(passwd) => choose(uid, &passwd).or_else(|e| ours_by_getent(uid).ok_or(e)),
        Err(e) => Err(AccountError::Passwd(e)),
    }
}

fn choose(uid: u32, passwd: &str) -> Result<Account, AccountError> {
    if uid != 0 {
        return entries(passwd).find(|a| a.uid == uid).ok_or(AccountError::NoEntry { uid });
    }
    ["postgres", "nobody"]
        .iter()
        .find_map(|name| entries(passwd).find(|a| a.name == *name && a.uid != 0))
        .ok_or(AccountError::NobodyElse)
}

/// Returns the accounts that the text of a passwd file names.
pub fn entries(passwd: &str) -> impl Iterator<Item = Account> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Account { name, uid, gid })
    })
}

/// Our own entry where it is in a directory service and not in the file.
fn ours_by_getent(uid: u32) -> Option<Account> {
    if uid == 0 {
        return None;
    }
    let limit = Duration::from_secs(15);
    let out = ask_tool("getent", &["passwd", &uid.to_string()], limit).ok()?;
    entries(&String::from_utf8_lossy(&out.stdout)).find(|a| a.uid == uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\n\
                          nobody:x:65534:65534::/:/bin/false\n\
                          postgres:x:101:104::/var/lib/postgresql:/bin/bash\n\
                          ann:x:1000:1000::/home/ann:/bin/sh\n";

    #[test]
    fn root_runs_the_server_as_postgres_or_else_as_nobody() {
        assert_eq!(
            choose(0, PASSWD).unwrap(),
            Account { name: "postgres".into(), uid: 101, gid: 104 }
        );
        assert_eq!(choose(0, &PASSWD.replace("postgres:", "pg:")).unwrap().name, "nobody");
        assert!(matches!(choose(0, "root:x:0:0::/:/bin/sh"), Err(AccountError::NobodyElse)));
    }

    #[test]
    fn others_run_it_as_themselves_if_passwd_knows_them() {
        assert_eq!(choose(1000, PASSWD).unwrap().name, "ann");
        assert!(matches!(choose(4711, PASSWD), Err(AccountError::NoEntry { uid: 4711 })));
    }
}
