//! An installation of PostgreSQL: a folder with its programs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pgdyno_exec::tool::{ToolError, ask_tool};
use pgdyno_model::facts::BuildSource;

/// The oldest major version that pgdyno chooses by itself.
pub const OLDEST_MAJOR: u32 = 15;

/// The longest that a program may take to tell its version or a setting.
pub(super) const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// An installation of one PostgreSQL version.
#[derive(Clone, Debug, PartialEq)]
pub struct Install {
    /// The folder that holds `postgres` and `initdb`.
    pub bindir: PathBuf,
    /// The version as `postgres -V` prints it, such as `15.18`.
    pub version: String,
    /// The major version, such as 15.
    pub major: u32,
    /// Who built the programs.
    pub source: BuildSource,
}

/// A folder is not an installation.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum InstallError {
    /// A program is missing.
    #[error("{} has no `{program}`", bindir.display())]
    Lacks { bindir: PathBuf, program: &'static str },
    /// `postgres -V` could not be run.
    #[error(transparent)]
    Run(#[from] ToolError),
    /// `postgres -V` printed no version.
    #[error("{} -V names no PostgreSQL version: `{said}`", program.display())]
    NoVersion { program: PathBuf, said: String },
}

impl Install {
    /// Opens the installation in `bindir`, and asks it for its version.
    ///
    /// # Errors
    /// [`InstallError`]: a program is missing or does not run.
    pub fn open(bindir: &Path, source: BuildSource) -> Result<Self, InstallError> {
        for program in ["postgres", "initdb"] {
            if !bindir.join(program).is_file() {
                return Err(InstallError::Lacks { bindir: bindir.to_owned(), program });
            }
        }
        let program = bindir.join("postgres");
        let out = ask_tool(&program, &["-V"], ANSWER_LIMIT)?;
        let said = String::from_utf8_lossy(&out.stdout).trim().to_owned();
        let Some((version, major)) = parse_version(&said) else {
            let errors = String::from_utf8_lossy(&out.stderr);
            return Err(InstallError::NoVersion {
                program,
                said: format!("{said}{}", errors.trim()),
            });
        };
        Ok(Self { bindir: bindir.to_owned(), version, major, source })
    }

    /// Returns the path of a program.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bindir.join(name)
    }

    /// Returns the path of an optional program, if it exists.
    ///
    /// It is searched in the folder, and where the folder's `postgres` links to.
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        let real = self.program("postgres").canonicalize().ok()?;
        let folders = [Some(self.bindir.as_path()), real.parent()];
        folders
            .into_iter()
            .flatten()
            .map(|folder| folder.join(name))
            .find(|program| program.is_file())
    }
}

/// Parses the output of `postgres -V`: `postgres (PostgreSQL) 15.18 (Debian …)` is 15.18 and 15;
/// `19beta1` is 19.
fn parse_version(said: &str) -> Option<(String, u32)> {
    let version = said.split("(PostgreSQL) ").nth(1)?.split_whitespace().next()?;
    let digits = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    Some((version.to_owned(), version[..digits].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_read_as_the_server_prints_them() {
        let v = |s: &str| parse_version(s);
        assert_eq!(
            v("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"),
            Some(("15.18".into(), 15))
        );
        assert_eq!(v("postgres (PostgreSQL) 19beta1"), Some(("19beta1".into(), 19)));
        assert_eq!(v("pg_config: not found"), None);
    }
}
