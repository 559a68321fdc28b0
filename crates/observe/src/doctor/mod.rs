//! Examines this host for `pgdyno doctor`: programs, settings and storage, with advice on changes.
//!
//! [`examine`] reads all facts and judges them by the rules; [`advise`] judges facts that are known
//! already. Nothing here changes the host.

mod advice;
mod rule;
mod rules;

use std::path::{Path, PathBuf};

pub use advice::{Advice, Advised, Severity, Unobservable};
use pgdyno_exec::account::{Account, AccountError, server_account};
use pgdyno_exec::directory::{self, DirectoryError};
use pgdyno_exec::paths::default_storage_dir;
use pgdyno_facts::Serials;
use pgdyno_model::facts::{BlockDevice, DeviceKind, HostFacts, SmartType, StorageFacts};
pub use pgdyno_postgres::Install;
use pgdyno_postgres::install::OLDEST_MAJOR;
use pgdyno_postgres::{FETCHABLE, cached, find_all};
pub use rules::advise;

/// The result of an examination.
#[derive(Debug)]
pub struct Doctor {
    /// Facts about the host.
    pub host: HostFacts,
    /// Whether pgdyno runs as root.
    pub root: bool,
    /// The account that managed servers run as, or why there is none.
    pub account: Result<Account, AccountError>,
    /// Installed PostgreSQL servers, in the order of preference.
    pub found: Vec<Install>,
    /// PostgreSQL servers that pgdyno fetched before.
    pub cached: Vec<Install>,
    /// Major versions that can be fetched for this host, with their full versions.
    pub fetchable: Vec<(u32, &'static str)>,
    /// The directory for clusters that was examined.
    pub directory: DirectoryReport,
    /// Programs and privileges that are missing.
    pub missing: Vec<Missing>,
    /// The results of the rules.
    pub advised: Advised,
}

/// Facts about a directory for clusters.
#[derive(Debug)]
pub struct DirectoryReport {
    /// The directory's path.
    pub path: PathBuf,
    /// Whether the directory exists. pgdyno's own is created when it is needed.
    pub exists: bool,
    /// The storage under the directory, or why it is unknown.
    pub storage: Result<StorageFacts, DirectoryError>,
    /// Why no cluster can be created in the directory. None if one can.
    pub problem: Option<DirectoryError>,
}

/// A program or a privilege that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Name of the program or privilege.
    pub what: String,
    /// Consequence of the lack.
    pub why: String,
    /// Ways to get it: system and command.
    pub how: Vec<(&'static str, String)>,
}

/// Examines this host and `directory`, or else the directory where clusters are created. `smart` is
/// how smartctl reaches the disk, where it does not find out by itself.
///
/// ```no_run
/// use pgdyno_facts::Serials;
///
/// let doctor = pgdyno_observe::doctor::examine(None, Serials::Hashed, None);
/// println!("{} findings", doctor.advised.advice.len());
/// ```
pub fn examine(directory: Option<&Path>, serials: Serials, smart: Option<&SmartType>) -> Doctor {
    let account = server_account();
    let found = find_all();
    let cached = account.as_ref().map_or_else(
        |_| Vec::new(),
        |account| (OLDEST_MAJOR..).take(4).filter_map(|major| cached(major, account)).collect(),
    );
    let root = rustix::process::geteuid().is_root();
    let host = pgdyno_facts::host();
    let directory = report(directory, account.as_ref().ok(), serials, smart);
    let missing = missing(&found, root, directory.storage.as_ref().ok());
    Doctor {
        advised: advise(&host, directory.storage.as_ref().ok()),
        host,
        root,
        directory,
        account,
        found,
        cached,
        fetchable: FETCHABLE
            .iter()
            .filter(|a| a.is_for_this_host())
            .map(|a| (a.major, a.version))
            .collect(),
        missing,
    }
}

fn report(
    named: Option<&Path>,
    account: Option<&Account>,
    serials: Serials,
    smart: Option<&SmartType>,
) -> DirectoryReport {
    let path = named.map_or_else(default_storage_dir, Path::to_owned);
    let exists = path.exists();
    // A directory to be created will be on the filesystem of its nearest parent.
    let nearest = path.ancestors().find(|p| p.exists()).unwrap_or(Path::new("/"));
    let checked = if exists || named.is_some() { path.as_path() } else { nearest };
    let problem = account.and_then(|account| directory::check(checked, account).err());
    DirectoryReport {
        storage: pgdyno_facts::fingerprint(
            "",
            if exists { &path } else { nearest },
            serials,
            smart,
        ),
        problem,
        exists,
        path,
    }
}

fn missing(found: &[Install], root: bool, storage: Option<&StorageFacts>) -> Vec<Missing> {
    let mut missing = Vec::new();
    if !found.iter().any(|i| i.major >= OLDEST_MAJOR) {
        missing.push(Missing {
            what: format!(
                "a PostgreSQL server of the distribution, version \
                 {OLDEST_MAJOR} or later"
            ),
            why: "pgdyno fetches a small build instead: compiled for size, without lz4, \
                  zstd and io_uring"
                .into(),
            how: vec![
                ("Debian, Ubuntu", "apt install postgresql".into()),
                ("Fedora", "dnf install postgresql-server".into()),
                ("Homebrew", "brew install postgresql@17".into()),
            ],
        });
    }
    if !root {
        missing.push(Missing {
            what: "root's privileges".into(),
            why: "the kernel's page cache cannot be dropped between trials \
                  (`between.drop_caches`), and disks do not tell their health"
                .into(),
            how: vec![("anywhere", "sudo pgdyno …".into())],
        });
    }
    let disk = |d: &&BlockDevice| d.kind == DeviceKind::Disk;
    if storage.is_some_and(|s| s.layers().iter().any(disk)) && !pgdyno_facts::has_smartctl() {
        missing.push(Missing {
            what: "smartctl".into(),
            why: "nobody knows whether the disks are healthy and how worn they are".into(),
            how: vec![
                ("Debian, Ubuntu", "apt install smartmontools".into()),
                ("Fedora", "dnf install smartmontools".into()),
            ],
        });
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_server_is_told_how_to_get_one() {
        let all = missing(&[], true, None);
        assert_eq!(all.len(), 1);
        assert!(all[0].how.iter().any(|(_, command)| command == "apt install postgresql"));
    }

    #[test]
    fn a_directory_is_reported_with_what_lies_under_it() {
        let dir = tempfile::tempdir().unwrap();
        let doctor = examine(Some(&dir.path().join("missing")), Serials::Hashed, None);
        assert!(!doctor.directory.exists && doctor.directory.storage.is_ok());
        let problem = doctor.directory.problem.unwrap();
        assert!(matches!(problem, DirectoryError::Missing { .. }), "{problem}");
    }
}
