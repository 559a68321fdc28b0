//! Faults that are injected on purpose, only into things that pgdyno made.

mod disk_filler;
mod error;
mod power;
mod stale;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

pub use disk_filler::DiskFiller;
pub use error::{CUTTABLE, FaultError};
use pgdyno_exec::account::Account;
use pgdyno_exec::beneath::{CopySummary, Directory, TreeCopy};
use pgdyno_exec::error::io_error;
use pgdyno_exec::tool::run_tool;
pub use power::PowerSwitch;
pub use stale::FileBaseline;

/// Makes all durable that is on the filesystem of `directory`, so that what is lost later was
/// written later.
///
/// # Errors
/// [`FaultError::Io`].
pub fn make_durable(directory: &Path) -> Result<(), FaultError> {
    let failed =
        |source| FaultError::io("make durable all that is on the filesystem of", directory, source);
    let open = std::fs::File::open(directory).map_err(failed)?;
    rustix::fs::syncfs(&open).map_err(|e| failed(e.into()))
}

/// Copies each of `files`, which may be a directory of the server's account, holes kept, under its
/// name into the directory `into`, which is made where it is missing. The owners stay.
///
/// # Errors
/// [`FaultError::Io`], [`FaultError::Step`]: nothing is kept, or not all of it.
pub fn keep(files: &[(PathBuf, String)], into: &Path) -> Result<(), FaultError> {
    let made = std::fs::create_dir_all(into);
    made.map_err(|e| FaultError::io("make the directory", into, e))?;
    for (file, name) in files {
        if file.is_dir() {
            keep_directory(file, name, into)?;
            continue;
        }
        let to = into.join(name).into_os_string();
        let args = ["-aT".into(), "--sparse=always".into(), file.clone().into_os_string(), to];
        run_tool("cp", &args)?;
    }
    Ok(())
}

fn keep_directory(directory: &Path, name: &str, into: &Path) -> Result<(), FaultError> {
    let failed = |e| FaultError::io("copy", directory, e);
    let from = Directory::open(directory).map_err(failed)?;
    let stat = rustix::fs::fstat(&from).map_err(|e| failed(e.into()))?;
    let owner =
        Account { name: format!("uid {}", stat.st_uid), uid: stat.st_uid, gid: stat.st_gid };
    let never = AtomicBool::new(false);
    let mut copy = TreeCopy {
        source_owner: stat.st_uid,
        owner: Some(&owner),
        keeps_links: true,
        stop: &never,
        copied: CopySummary::default(),
    };
    let into = Directory::open(into).map_err(|e| io_error("open", into, e))?;
    let to = copy.make_directory(&into, name)?;
    copy.contents(&from, &to, &[])?;
    Ok(copy.give(&to, stat.st_mode & 0o777)?)
}
