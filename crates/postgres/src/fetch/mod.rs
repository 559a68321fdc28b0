//! Fetches a small PostgreSQL: the zonky embedded-postgres builds from Maven Central.
//!
//! The builds hold initdb, `pg_ctl` and postgres, compiled for size, without lz4, zstd and
//! `io_uring`. They serve for a first look and for tests over versions.
//!
//! The SHA-256 of each artefact is pinned here and verified before anything is unpacked, whatever
//! mirror it came from. A build runs only from a cache that nobody else can write to
//! ([`pgdyno_exec::trust`]), and only if its files match the manifest that was written when it was
//! unpacked.

mod download;
mod error;
mod manifest;
mod names;
mod unpack;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

pub use download::FetchProgress;
use download::download;
pub use error::FetchError;
use error::{NEEDED, io_error};
use manifest::Checked;
use names::{digest, own_name};
use pgdyno_exec::account::Account;
use pgdyno_exec::directory::{barrier, runs_programs, too_little_room};
use pgdyno_exec::files::sync_directory;
use pgdyno_exec::paths::cache_dir;
use pgdyno_exec::process::Identity;
use pgdyno_exec::trust;
use pgdyno_model::facts::BuildSource;
use unpack::unpack;

use super::install::{Install, InstallError};

/// The repository of artefacts, unless the environment variable `PGDYNO_MAVEN` names a mirror.
pub const MAVEN_CENTRAL: &str = "https://repo1.maven.org/maven2";

/// An artefact that pgdyno fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// PostgreSQL's major version.
    pub major: u32,
    /// The artefact's version: PostgreSQL's, then the packager's own number.
    pub version: &'static str,
    /// The processor architecture in the artefact's name: `amd64`, `arm64v8`.
    pub architecture: &'static str,
    /// The artefact's SHA-256 in hexadecimal.
    pub sha256: &'static str,
}

impl Artifact {
    /// Whether its programs run on this host.
    pub fn is_for_this_host(&self) -> bool {
        let here = match std::env::consts::ARCH {
            "x86_64" => AMD64,
            "aarch64" => ARM64,
            _ => "",
        };
        std::env::consts::OS == "linux" && self.architecture == here
    }
}

/// The processor architectures, as artefacts name them.
const AMD64: &str = "amd64";
const ARM64: &str = "arm64v8";

const fn build(
    major: u32,
    version: &'static str,
    architecture: &'static str,
    sha256: &'static str,
) -> Artifact {
    Artifact { major, version, architecture, sha256 }
}

/// All artefacts that can be fetched. An artefact is added once the repository publishes it with
/// its checksums.
pub const FETCHABLE: &[Artifact] = &[
    build(15, "15.19.0", AMD64, "95f0b66fe72d4ca66c815773c44cb1196ea38552463e89a35f18114b3ed1565f"),
    build(16, "16.15.0", AMD64, "653abc065c682b85d3da50168fb95dc524bd85426cdec9ce3695a550ef431df2"),
    build(17, "17.11.0", AMD64, "0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d"),
    build(18, "18.6.0", AMD64, "008ee189eaa7ca2b58bd01dd950291e638b998392cf982297acd4779ec898ac1"),
    build(15, "15.19.0", ARM64, "95baf4bd4af31b91b3050118df59388ed0064756b556b850669e0300aa7b9911"),
    build(16, "16.15.0", ARM64, "f846a9989d686b7977d6eca9bc9d8b2b69e3f70c7eb60e032197d9c574a6136c"),
    build(17, "17.11.0", ARM64, "8b042e0ea418b1927d95399207950da0734d27fe01e29503ade3bdc464ad4c2b"),
    build(18, "18.4.0", ARM64, "a9ec284923b9a7d2db41509bfb88c3d0eeb9f4aa5e2b29ea0aac5e8dbaf4c335"),
];

/// Where archives come from and go to. Tests create their own.
#[derive(Clone, Debug)]
pub struct Fetcher {
    /// The repository.
    pub maven: String,
    /// The user's cache: archives, and builds that the server's account can reach there.
    pub cache: PathBuf,
    /// The directory for builds that the server's account cannot reach in the cache.
    pub shared: PathBuf,
    /// The known artefacts.
    pub artifacts: Vec<Artifact>,
}

/// Returns a PostgreSQL of version `major` from the cache, or else from the repository.
///
/// Root's cache is rarely within reach of the server's account, so that root's builds are in
/// `/var/cache/pgdyno`.
/// [`Install::bindir`] tells.
pub fn fetch(
    major: u32,
    account: &Account,
    stop: &AtomicBool,
    progress: &dyn Fn(FetchProgress),
) -> Result<Install, FetchError> {
    Fetcher::here().fetch(major, account, stop, progress)
}

/// Returns a PostgreSQL of version `major` that was fetched before and that `account` can reach.
pub fn cached(major: u32, account: &Account) -> Option<Install> {
    Fetcher::here().cached(major, account)
}

impl Fetcher {
    /// Returns the fetcher for this user's caches, and Maven Central or the mirror in
    /// `PGDYNO_MAVEN`.
    pub fn here() -> Self {
        let mirror = std::env::var("PGDYNO_MAVEN").ok().filter(|v| !v.is_empty());
        Self {
            maven: mirror.unwrap_or_else(|| MAVEN_CENTRAL.to_owned()),
            cache: cache_dir(),
            shared: PathBuf::from("/var/cache/pgdyno"),
            artifacts: FETCHABLE.to_vec(),
        }
    }

    /// Does the work of [`cached`].
    pub fn cached(&self, major: u32, account: &Account) -> Option<Install> {
        let artifact = self.artifact(major).ok()?;
        open_whole(&self.builds(account).join(build_name(&artifact)), &artifact).ok().flatten()
    }

    /// Does the work of [`fetch`].
    pub fn fetch(
        &self,
        major: u32,
        account: &Account,
        stop: &AtomicBool,
        progress: &dyn Fn(FetchProgress),
    ) -> Result<Install, FetchError> {
        let artifact = self.artifact(major)?;
        let builds = self.builds(account);
        let build = builds.join(build_name(&artifact));
        if let Some(install) = open_whole(&build, &artifact)? {
            return Ok(install);
        }
        let archives = self.cache.join("archives");
        for directory in [&archives, &builds] {
            trust::check(directory).map_err(FetchError::Untrusted)?;
            make_public_directory(directory)?;
            // Another user could have created it first.
            trust::check(directory).map_err(FetchError::Untrusted)?;
            remove_abandoned(directory);
            if let Some(available) = too_little_room(directory, NEEDED)? {
                return Err(FetchError::NoRoom { path: directory.clone(), available });
            }
        }
        if !runs_programs(&builds)? {
            return Err(FetchError::NoExec { builds });
        }
        let archive = self.archive(&artifact, &archives, stop, progress)?;
        progress(FetchProgress::Unpacking);
        unpack(&archive, artifact.sha256, &builds, &build, stop)?;
        match manifest::check(&build, artifact.sha256).map_err(|e| io_error("check", &build, e))? {
            Checked::Whole => {}
            Checked::NoManifest => return Err(changed(&build, "its manifest was removed".into())),
            Checked::Changed(what) => return Err(changed(&build, what)),
        }
        open(&build, &artifact)
            .map_err(|source| FetchError::DoesNotRun { version: artifact.version, source })
    }

    /// Returns the newest major version that can be fetched.
    pub fn newest_major(&self) -> u32 {
        self.artifacts.iter().map(|a| a.major).max().unwrap_or_default()
    }

    /// Returns the artefact of version `major` for this host.
    ///
    /// # Errors
    /// [`FetchError::NoBuild`].
    pub fn artifact(&self, major: u32) -> Result<Artifact, FetchError> {
        let fitting = || self.artifacts.iter().filter(|a| a.is_for_this_host());
        fitting().find(|a| a.major == major).copied().ok_or_else(|| {
            let majors: Vec<String> = fitting().map(|a| a.major.to_string()).collect();
            let available = if majors.is_empty() { "none".to_owned() } else { majors.join(", ") };
            let machine = format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH);
            FetchError::NoBuild { major, machine, available }
        })
    }

    /// Returns the directory for builds that `account` is to run.
    fn builds(&self, account: &Account) -> PathBuf {
        let existing = self.cache.ancestors().find(|p| p.exists()).unwrap_or(Path::new("/"));
        let reachable = existing
            .canonicalize()
            .and_then(|real| barrier(&real, account))
            .is_ok_and(|found| found.is_none());
        if reachable { self.cache.join("postgres") } else { self.shared.join("postgres") }
    }

    /// Returns the verified archive, from the cache or else from the repository.
    fn archive(
        &self,
        artifact: &Artifact,
        archives: &Path,
        stop: &AtomicBool,
        progress: &dyn Fn(FetchProgress),
    ) -> Result<PathBuf, FetchError> {
        let name = format!(
            "embedded-postgres-binaries-linux-{}-{}.jar",
            artifact.architecture, artifact.version
        );
        let archive = archives.join(&name);
        if let Ok(mut file) = File::open(&archive)
            && digest(&mut file).is_ok_and(|found| found == artifact.sha256)
        {
            return Ok(archive);
        }
        let url = format!(
            "{}/io/zonky/test/postgres/embedded-postgres-binaries-linux-{}/{}/{name}",
            self.maven.trim_end_matches('/'),
            artifact.architecture,
            artifact.version
        );
        let part = archives.join(own_name().map_err(|e| io_error("name a file in", archives, e))?);
        let fetched = download(&url, &part, stop, progress).and_then(|found| {
            if found != artifact.sha256 {
                return Err(FetchError::Checksum {
                    url: url.clone(),
                    expected: artifact.sha256,
                    found,
                });
            }
            fs::rename(&part, &archive)
                .and_then(|()| sync_directory(archives))
                .map_err(|e| io_error("write", &archive, e))
        });
        if fetched.is_err() {
            let _ = fs::remove_file(&part);
        }
        fetched.map(|()| archive)
    }
}

fn build_name(artifact: &Artifact) -> String {
    format!("{}-linux-{}", artifact.version, artifact.architecture)
}

/// Opens the build if it exists, is unchanged and runs. A build without a manifest, of an earlier
/// version, is unpacked anew.
fn open_whole(build: &Path, artifact: &Artifact) -> Result<Option<Install>, FetchError> {
    if !build.exists() {
        return Ok(None);
    }
    trust::check(build).map_err(FetchError::Untrusted)?;
    match manifest::check(build, artifact.sha256).map_err(|e| io_error("check", build, e))? {
        Checked::Whole => Ok(open(build, artifact).ok()),
        Checked::NoManifest => Ok(None),
        Checked::Changed(what) => Err(changed(build, what)),
    }
}

fn changed(build: &Path, what: String) -> FetchError {
    FetchError::Changed { build: build.to_owned(), what }
}

fn open(build: &Path, artifact: &Artifact) -> Result<Install, InstallError> {
    let bindir = build.join("bin");
    let source = BuildSource::Fetched {
        bindir: bindir.display().to_string(),
        artifact: format!(
            "io.zonky.test.postgres:embedded-postgres-binaries-linux-{}:{}",
            artifact.architecture, artifact.version
        ),
        sha256: artifact.sha256.to_owned(),
    };
    Install::open(&bindir, source)
}

/// Creates `directory` and its missing parents, readable by everybody. Existing directories stay
/// unchanged.
fn make_public_directory(directory: &Path) -> Result<(), FetchError> {
    if directory.is_dir() {
        return Ok(());
    }
    if let Some(parent) = directory.parent() {
        make_public_directory(parent)?;
    }
    match fs::create_dir(directory) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        other => other.map_err(|e| io_error("make", directory, e))?,
    }
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755))
        .map_err(|e| io_error("set permissions of", directory, e))
}

/// Removes unfinished work of processes that are gone.
fn remove_abandoned(directory: &Path) {
    for child in fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok) {
        let name = child.file_name().to_string_lossy().into_owned();
        let mut parts = name.strip_prefix(".new-").unwrap_or_default().split('-');
        let pid: Option<i32> = parts.next().and_then(|p| p.parse().ok());
        let ticks: Option<u64> = parts.next().and_then(|p| p.parse().ok());
        let (Some(pid), Some(ticks)) = (pid, ticks) else { continue };
        if Identity::from_pid(pid).is_some_and(|p| p.started_ticks() == ticks) {
            continue;
        }
        let path = child.path();
        let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
}
