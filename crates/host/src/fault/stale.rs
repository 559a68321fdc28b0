//! Stale files: what a power loss leaves of files that nobody flushed, planted.
//!
//! Call [`FileBaseline::copy`] when everything is durable, and [`FileBaseline::put_back`] after the power loss, before
//! the server starts.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

use super::FaultError;

/// Files of one folder of a data directory, as they were at a baseline.
#[derive(Debug)]
pub struct FileBaseline {
    data: PathBuf,
    /// Relative to the data directory, each with its copy.
    files: Vec<(PathBuf, PathBuf)>,
}

impl FileBaseline {
    /// Copies the files below `folder` of the data directory `data` into the directory `into`, which belongs to
    /// pgdyno alone.
    ///
    /// # Errors
    /// [`FaultError::Io`]: a file cannot be read, or its copy not be written.
    pub fn copy(data: &Path, folder: &str, into: &Path) -> Result<Self, FaultError> {
        let root = open_data(data)?;
        let mut baseline = Self { data: data.to_owned(), files: Vec::new() };
        let mut folders = vec![PathBuf::from(folder)];
        while let Some(folder) = folders.pop() {
            let failed = |source| io_error("read the directory", &data.join(&folder), source);
            let open = beneath(&root, &folder, OFlags::RDONLY | OFlags::DIRECTORY).map_err(failed)?;
            for entry in open_entries(&open).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let (path, kind) = (folder.join(entry.file_name()), entry.file_type().map_err(failed)?);
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() {
                    let copy = into.join(format!("file-{}", baseline.files.len()));
                    if copy_file(&root, &path, &copy).map_err(|e| io_error("copy", &data.join(&path), e))? {
                        baseline.files.push((path, copy));
                    }
                }
            }
        }
        Ok(baseline)
    }

    /// Gives each file that is still there its content and length of the baseline, and says how many those were.
    /// The server must not run.
    ///
    /// # Errors
    /// [`FaultError::Io`]: a copy cannot be read, or a file not be written.
    pub fn put_back(&self) -> Result<usize, FaultError> {
        let root = open_data(&self.data)?;
        let mut count = 0;
        for (path, copy) in &self.files {
            let failed = |source| io_error("put back", &self.data.join(path), source);
            let mut file = match beneath(&root, path, OFlags::WRONLY | OFlags::TRUNC) {
                Ok(file) => file,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(failed(e)),
            };
            let mut copy = File::open(copy).map_err(failed)?;
            io::copy(&mut copy, &mut file).map_err(failed)?;
            count += 1;
        }
        Ok(count)
    }
}

impl Drop for FileBaseline {
    fn drop(&mut self) {
        for (_, copy) in &self.files {
            let _ = std::fs::remove_file(copy);
        }
    }
}

fn open_data(data: &Path) -> Result<File, FaultError> {
    File::open(data).map_err(|e| io_error("open", data, e))
}

/// Opens `path` below `root` and nowhere else: the directory belongs to the server's account, which could lay links.
fn beneath(root: &File, path: &Path, flags: OFlags) -> io::Result<File> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(openat2(root, path, flags, Mode::empty(), resolve)?.into())
}

fn open_entries(directory: &File) -> io::Result<std::fs::ReadDir> {
    use std::os::fd::AsRawFd as _;
    std::fs::read_dir(Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()))
}

/// Copies one file; false if it is gone meanwhile.
fn copy_file(root: &File, path: &Path, copy: &Path) -> io::Result<bool> {
    let mut from = match beneath(root, path, OFlags::RDONLY) {
        Ok(from) => from,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(e),
    };
    let mut to = File::options().write(true).create_new(true).open(copy)?;
    io::copy(&mut from, &mut to)?;
    Ok(true)
}

fn io_error(what: &'static str, path: &Path, source: io::Error) -> FaultError {
    FaultError::Io { what, path: path.to_owned(), source }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_of_the_folder_are_as_they_were_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let (data, copies) = (root.path().join("data"), root.path().join("copies"));
        fs::create_dir_all(data.join("base/5")).unwrap();
        fs::create_dir_all(data.join("global")).unwrap();
        fs::create_dir(&copies).unwrap();
        let (table, dropped, other) =
            (data.join("base/5/1"), data.join("base/5/2"), data.join("global/pg_control"));
        for path in [&table, &dropped, &other] {
            fs::write(path, "old").unwrap();
        }
        let foreign = root.path().join("foreign");
        fs::write(&foreign, "mine").unwrap();
        std::os::unix::fs::symlink(&foreign, data.join("base/5/3")).unwrap();

        let baseline = FileBaseline::copy(&data, "base", &copies).unwrap();
        fs::write(&table, "new and longer").unwrap();
        fs::write(&other, "new").unwrap();
        fs::remove_file(&dropped).unwrap();
        assert_eq!(baseline.put_back().unwrap(), 1);
        assert_eq!(fs::read_to_string(&table).unwrap(), "old");
        assert_eq!(fs::read_to_string(&other).unwrap(), "new", "another folder");
        assert!(!dropped.exists(), "a file that was removed stays away");

        // Somebody lays a link in a file's place.
        fs::remove_file(&table).unwrap();
        std::os::unix::fs::symlink(&foreign, &table).unwrap();
        assert!(baseline.put_back().is_err());
        assert_eq!(fs::read_to_string(&foreign).unwrap(), "mine");
        drop(baseline);
        assert_eq!(fs::read_dir(&copies).unwrap().count(), 0);
    }
}
