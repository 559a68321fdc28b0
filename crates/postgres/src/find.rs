//! Finds PostgreSQL's programs on this host.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use pgdyno_exec::tool::{ToolError, ask_tool};
use pgdyno_exec::trust;
use pgdyno_model::Advice;
use pgdyno_model::facts::BuildSource;

use super::install::{ANSWER_LIMIT, Install, InstallError, OLDEST_MAJOR};

/// An explicit choice cannot be used. A search that finds nothing is not an error.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FindError {
    /// The named folder is not an installation.
    #[error("cannot use the PostgreSQL that {how} names")]
    Unusable {
        /// `postgres.bindir` or `PG_CONFIG`.
        how: &'static str,
        source: InstallError,
    },
    /// The named folder holds another major version.
    #[error("cannot use {} for PostgreSQL {wanted}: it holds {found}", bindir.display())]
    OtherMajor { bindir: PathBuf, wanted: u32, found: String },
    /// The `PG_CONFIG` program does not answer.
    #[error("cannot ask {} (from PG_CONFIG) for its bindir: {found}", program.display())]
    PgConfig { program: PathBuf, found: PgConfigError },
}

/// A `pg_config` that names no folder of programs.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PgConfigError {
    /// It gives no answer.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// It failed, or printed something else.
    #[error("it ended with {status} and printed `{text}`")]
    Answer { status: ExitStatus, text: String },
}

impl Advice for FindError {
    fn help(&self) -> Option<String> {
        Some(match self {
            Self::Unusable { how: "PG_CONFIG", .. } | Self::PgConfig { .. } => {
                "unset PG_CONFIG, or let it name the pg_config of an installed server".into()
            }
            Self::Unusable { .. } => "name the folder that holds `postgres` and `initdb`, such as \
                                      /usr/lib/postgresql/17/bin, or leave `postgres.bindir` out"
                .into(),
            Self::OtherMajor { .. } => {
                "leave out either `postgres.bindir` or `postgres.version`: pgdyno finds or \
                 fetches that version"
                    .into()
            }
        })
    }
}

/// Where to search. Tests create their own places.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// `$PG_CONFIG`.
    pub pg_config: Option<PathBuf>,
    /// `$PATH`.
    pub path: OsString,
    /// The root of the usual folders; `/` outside of tests.
    pub root: PathBuf,
}

impl Places {
    /// Returns the places of this process's environment and host.
    pub fn here() -> Self {
        Self {
            pg_config: std::env::var_os("PG_CONFIG").filter(|v| !v.is_empty()).map(PathBuf::from),
            path: std::env::var_os("PATH").unwrap_or_default(),
            root: PathBuf::from("/"),
        }
    }
}

/// Usual folders of distributions: parent, prefix of the version's folder, rest of the path.
const USUAL: &[(&str, &str, &str, &str)] = &[
    ("Debian", "usr/lib/postgresql", "", "bin"),
    ("PGDG RPM", "usr", "pgsql-", "bin"),
    ("Homebrew", "opt/homebrew/opt", "postgresql@", "bin"),
    ("Homebrew", "usr/local/opt", "postgresql@", "bin"),
    ("Homebrew", "home/linuxbrew/.linuxbrew/opt", "postgresql@", "bin"),
];

/// Returns the installation to use.
///
/// `bindir` wins if it is named. Otherwise it is the first of `$PG_CONFIG`, `$PATH` and the usual
/// folders (the newest first) with major version `major`. Without `major` any version from 15 on
/// will do.
///
/// # Errors
/// [`FindError`]: an explicit choice cannot be used.
pub fn find(bindir: Option<&Path>, major: Option<u32>) -> Result<Option<Install>, FindError> {
    find_in(&Places::here(), bindir, major)
}

/// Searches as [`find`] does, in `places`.
///
/// # Errors
/// As [`find`].
pub fn find_in(
    places: &Places,
    bindir: Option<&Path>,
    major: Option<u32>,
) -> Result<Option<Install>, FindError> {
    if let Some(bindir) = bindir {
        let install = open(bindir, "bindir")
            .map_err(|source| FindError::Unusable { how: "bindir", source })?;
        return match major {
            Some(wanted) if wanted != install.major => Err(FindError::OtherMajor {
                bindir: install.bindir,
                wanted,
                found: install.version,
            }),
            _ => Ok(Some(install)),
        };
    }
    let fits = |install: &Install| match major {
        Some(wanted) => install.major == wanted,
        None => install.major >= OLDEST_MAJOR,
    };
    if let Some(program) = &places.pg_config {
        let bindir = ask_pg_config(program)
            .map_err(|found| FindError::PgConfig { program: program.clone(), found })?;
        let install = open(&bindir, "PG_CONFIG")
            .map_err(|source| FindError::Unusable { how: "PG_CONFIG", source })?;
        if fits(&install) || major.is_none() {
            return Ok(Some(install));
        }
    }
    Ok(search(places).into_iter().find(fits))
}

/// Returns all installations in the order of preference, for `doctor`.
pub fn find_all() -> Vec<Install> {
    let places = Places::here();
    let named = places.pg_config.as_deref().and_then(|p| ask_pg_config(p).ok());
    let mut all: Vec<Install> =
        named.and_then(|b| open(&b, "PG_CONFIG").ok()).into_iter().collect();
    let known = all.first().map(|i| i.bindir.clone());
    all.extend(search(&places).into_iter().filter(|i| Some(&i.bindir) != known.as_ref()));
    all
}

/// Whether programs in `folder` may run without being named. Root runs only programs that nobody
/// else can change.
fn may_run(folder: &Path) -> bool {
    !rustix::process::geteuid().is_root() || trust::check(folder).is_ok()
}

/// Root asks each installation for its version, and so skips folders that others may change.
fn search(places: &Places) -> Vec<Install> {
    let mut candidates: Vec<(PathBuf, &'static str)> = Vec::new();
    for folder in std::env::split_paths(&places.path).filter(|p| p.is_absolute() && may_run(p)) {
        if folder.join("postgres").is_file() && folder.join("initdb").is_file() {
            candidates.push((folder, "PATH"));
        } else if let Ok(bindir) = ask_pg_config(&folder.join("pg_config")) {
            candidates.push((bindir, "pg_config on PATH"));
        }
    }
    for (how, below, prefix, then) in USUAL {
        let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir(places.root.join(below))
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .filter_map(|f| {
                let name = f.file_name().to_str()?.to_owned();
                let major = name.strip_prefix(prefix)?.parse().ok()?;
                Some((major, f.path().join(then)))
            })
            .collect();
        versions.sort_by_key(|(major, _)| std::cmp::Reverse(*major));
        candidates.extend(versions.into_iter().map(|(_, bindir)| (bindir, *how)));
    }
    let mut seen = HashSet::new();
    candidates
        .into_iter()
        .filter(|(bindir, _)| seen.insert(bindir.canonicalize().unwrap_or_else(|_| bindir.clone())))
        .filter(|(bindir, _)| may_run(&bindir.join("postgres")) && may_run(&bindir.join("initdb")))
        .filter_map(|(bindir, how)| open(&bindir, how).ok())
        .collect()
}

fn open(bindir: &Path, how: &str) -> Result<Install, InstallError> {
    let source = BuildSource::Found { bindir: bindir.display().to_string(), how: how.to_owned() };
    Install::open(bindir, source)
}

fn ask_pg_config(program: &Path) -> Result<PathBuf, PgConfigError> {
    let out = ask_tool(program, &["--bindir"], ANSWER_LIMIT)?;
    let text = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    if out.status.success() && text.starts_with('/') {
        Ok(PathBuf::from(text))
    } else {
        Err(PgConfigError::Answer { status: out.status, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_test_support::test_name;

    /// Writes a program by way of a shell: a writer of this process could still be open in a child
    /// that another test starts, and then the program would be "busy".
    fn script(path: &Path, text: &str) {
        let write = concat!(
            r#"mkdir -p "$(dirname "$1")" && "#,
            r#"printf '%s\n' '#!/bin/sh' "$2" > "$1" && chmod 755 "$1""#,
        );
        let status = std::process::Command::new("sh")
            .args(["-c", write, "sh"])
            .arg(path)
            .arg(text)
            .status()
            .unwrap();
        assert!(status.success());
    }

    fn fake(bindir: &Path, version: &str) {
        for name in ["postgres", "initdb"] {
            script(&bindir.join(name), &format!("echo '{name} (PostgreSQL) {version}'"));
        }
    }

    fn places(root: &Path) -> Places {
        Places { pg_config: None, path: OsString::new(), root: root.to_owned() }
    }

    #[test]
    fn the_newest_of_debians_folders_is_taken_unless_a_major_is_asked_for() {
        let root = tempfile::tempdir().unwrap();
        for (major, version) in [("9", "9.6.1"), ("15", "15.18"), ("17", "17.11")] {
            fake(&root.path().join("usr/lib/postgresql").join(major).join("bin"), version);
        }
        let version =
            |major| find_in(&places(root.path()), None, major).unwrap().map(|i| i.version);
        assert_eq!(version(None).as_deref(), Some("17.11"));
        assert_eq!(version(Some(15)).as_deref(), Some("15.18"));
        assert_eq!(version(Some(18)), None);
    }

    #[test]
    fn path_goes_before_the_usual_folders_and_pg_config_before_both() {
        let root = tempfile::tempdir().unwrap();
        fake(&root.path().join("usr/pgsql-16/bin"), "16.15");
        fake(&root.path().join("on-path"), "15.3");
        fake(&root.path().join("own"), "18.6");
        let mut places = places(root.path());
        assert_eq!(find_in(&places, None, None).unwrap().unwrap().version, "16.15");
        places.path = root.path().join("on-path").into();
        assert_eq!(find_in(&places, None, None).unwrap().unwrap().version, "15.3");
        let pg_config = root.path().join("pg_config");
        script(&pg_config, &format!("echo {}/own", root.path().display()));
        places.pg_config = Some(pg_config);
        let found = find_in(&places, None, None).unwrap().unwrap();
        assert!(matches!(found.source, BuildSource::Found { how, .. } if how == "PG_CONFIG"));
    }

    #[test]
    fn programs_that_others_may_change_are_not_run_by_root_unless_they_are_named() {
        if !rustix::process::geteuid().is_root() {
            use std::io::Write as _;
            let test = test_name!();
            let _ = writeln!(std::io::stderr(), "\nskipped: {test}: needs root");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let (usual, on_path) = (root.path().join("usr/pgsql-16/bin"), root.path().join("on-path"));
        let canary = root.path().join("canary");
        for bindir in [&usual, &on_path] {
            for name in ["postgres", "initdb", "pg_config"] {
                let text = format!("touch {}\necho '{name} (PostgreSQL) 16.15'", canary.display());
                script(&bindir.join(name), &text);
            }
        }
        std::os::unix::fs::chown(&on_path, Some(65534), None).unwrap();
        std::os::unix::fs::chown(usual.join("postgres"), Some(65534), None).unwrap();
        let places = Places { path: on_path.into(), ..places(root.path()) };
        assert_eq!(find_in(&places, None, None).unwrap(), None);
        assert!(!canary.exists());
        assert_eq!(find_in(&places, Some(&usual), None).unwrap().unwrap().version, "16.15");
        assert!(canary.exists(), "what is named is run");
    }

    #[test]
    fn a_named_folder_is_used_or_refused_never_replaced() {
        let root = tempfile::tempdir().unwrap();
        fake(&root.path().join("usr/pgsql-16/bin"), "16.15");
        let places = places(root.path());
        let lacks = find_in(&places, Some(&root.path().join("usr")), None).unwrap_err();
        assert!(matches!(lacks, FindError::Unusable { source: InstallError::Lacks { .. }, .. }));
        let other =
            find_in(&places, Some(&root.path().join("usr/pgsql-16/bin")), Some(17)).unwrap_err();
        assert!(other.to_string().contains("it holds 16.15"), "{other}");
    }
}
