//! Unpacks a verified archive completely, within limits, and nothing outside of the build's folder.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Component, Path};
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::read::DeflateDecoder;
use lzma_rust2::XzReader;
use pgdyno_model::facts::BuildSource;
use pgdyno_model::units::Bytes;

use super::error::{FetchError, io_error};
use super::manifest::{self, Checked};
use super::names::own_name;
use crate::install::Install;

/// The most bytes of an unpacked build.
const LARGEST_BUILD: Bytes = Bytes(512 << 20);
/// The most files, links and directories of a build.
const MOST_ENTRIES: usize = 20_000;
/// Memory that the decompressor may use (KiB).
const MOST_MEMORY: u32 = 256 << 10;

/// Unpacks into a temporary folder and renames it, so that a build is complete or absent.
pub(super) fn unpack(
    archive: &Path,
    sha256: &str,
    builds: &Path,
    build: &Path,
    stop: &AtomicBool,
) -> Result<(), FetchError> {
    let work = builds.join(own_name().map_err(|e| io_error("name a directory in", builds, e))?);
    let unpacked = (|| {
        // Nobody else may enter before the build is complete.
        fs::DirBuilder::new().mode(0o700).create(&work).map_err(|e| io_error("make", &work, e))?;
        unpack_into(archive, &work, stop)?;
        open_up(&work).map_err(|e| io_error("set permissions below", &work, e))?;
        manifest::write(&work, sha256).map_err(|e| io_error("write the manifest of", &work, e))?;
        if build.exists() {
            // The existing build does not run, or another process finished one meanwhile.
            let whole = manifest::check(build, sha256).is_ok_and(|found| found == Checked::Whole);
            let source = BuildSource::Given { address: String::new() };
            if whole && Install::open(&build.join("bin"), source).is_ok() {
                return Ok(());
            }
            let aside =
                builds.join(own_name().map_err(|e| io_error("name a directory in", builds, e))?);
            fs::rename(build, &aside).map_err(|e| io_error("move aside", build, e))?;
            let _ = fs::remove_dir_all(&aside);
        }
        match fs::rename(&work, build) {
            // Another process was faster.
            Err(_) if build.join("bin").is_dir() => Ok(()),
            other => other.map_err(|e| io_error("name", build, e)),
        }
    })();
    if work.exists() {
        let _ = fs::remove_dir_all(&work);
    }
    unpacked
}

fn unpack_into(archive: &Path, work: &Path, stop: &AtomicBool) -> Result<(), FetchError> {
    let failed = |why: String| FetchError::Unpack { archive: archive.to_owned(), why };
    let file = File::open(archive).map_err(|e| io_error("open", archive, e))?;
    let mut buffer = vec![0; rawzip::RECOMMENDED_BUFFER_SIZE];
    let jar =
        rawzip::ZipArchive::from_file(file, &mut buffer).map_err(|e| failed(e.to_string()))?;
    let txz = open_txz(&jar, &mut buffer).map_err(failed)?;
    let limited = XzReader::new_mem_limit(txz, false, MOST_MEMORY).take(LARGEST_BUILD.0);
    let mut tar = tar::Archive::new(limited);
    tar.set_preserve_permissions(true);
    tar.set_overwrite(false);
    let mut bytes = 0_u64;
    for (count, entry) in tar.entries().map_err(|e| failed(e.to_string()))?.enumerate() {
        if stop.load(Ordering::Relaxed) {
            return Err(FetchError::Interrupted);
        }
        let mut entry = entry.map_err(|e| failed(e.to_string()))?;
        bytes = bytes.saturating_add(entry.size());
        if count >= MOST_ENTRIES || bytes > LARGEST_BUILD.0 {
            return Err(failed(format!(
                "it holds more than {MOST_ENTRIES} files or {LARGEST_BUILD}"
            )));
        }
        if let Some(why) = refusal(&entry) {
            return Err(failed(why));
        }
        match entry.unpack_in(work) {
            Ok(true) => {}
            Ok(false) => return Err(failed("it holds a path that leads out of it".into())),
            Err(e) if e.kind() == io::ErrorKind::StorageFull => {
                return Err(io_error("write below", work, e));
            }
            Err(e) => return Err(failed(e.to_string())),
        }
    }
    Ok(())
}

/// Opens the compressed tar file in `jar`.
fn open_txz<'a>(
    jar: &'a rawzip::ZipArchive<rawzip::FileReader>,
    buffer: &mut [u8],
) -> Result<Box<dyn Read + 'a>, String> {
    let mut entries = jar.entries(buffer);
    while let Some(entry) = entries.next_entry().map_err(|e| e.to_string())? {
        if !entry.file_path().as_ref().ends_with(b".txz") {
            continue;
        }
        let method = entry.compression_method();
        let content = jar.get_entry(entry.wayfinder()).map_err(|e| e.to_string())?;
        return match method {
            rawzip::CompressionMethod::STORE => Ok(Box::new(content.reader())),
            rawzip::CompressionMethod::DEFLATE => {
                Ok(Box::new(DeflateDecoder::new(content.reader())))
            }
            other => Err(format!("its .txz is compressed by method {}", other.as_u16())),
        };
    }
    Err("there is no .txz in it".into())
}

/// Returns why an entry of the archive is refused. None if it is unpacked.
fn refusal(entry: &tar::Entry<'_, impl Read>) -> Option<String> {
    let path = entry.path().ok()?.into_owned();
    let leads_out = |path: &Path| {
        let mut depth = 0_i32;
        path.components().any(|component| {
            match component {
                Component::Normal(_) => depth += 1,
                Component::ParentDir => depth -= 1,
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => depth = i32::MIN / 2,
            }
            depth < 0
        })
    };
    match entry.header().entry_type() {
        tar::EntryType::Regular | tar::EntryType::Directory => None,
        tar::EntryType::Symlink => {
            let target = entry.link_name().ok().flatten().unwrap_or_default().into_owned();
            let from = path.parent().unwrap_or(Path::new(""));
            (target.is_absolute() || leads_out(&from.join(&target)))
                .then(|| format!("it holds the link {}, which leads out of it", path.display()))
        }
        kind => Some(format!("it holds {}, of kind {kind:?}", path.display())),
    }
}

/// Lets everybody read the build, whatever the umask.
fn open_up(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
    for child in fs::read_dir(directory)? {
        let child = child?;
        let kind = child.file_type()?;
        if kind.is_dir() {
            open_up(&child.path())?;
        } else if kind.is_file() {
            let mode = child.metadata()?.permissions().mode();
            fs::set_permissions(child.path(), fs::Permissions::from_mode((mode & 0o755) | 0o444))?;
        }
    }
    Ok(())
}
