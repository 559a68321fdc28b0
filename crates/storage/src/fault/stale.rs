//! Stale files: plants the contents that a power loss leaves in files that nobody flushed.
//!
//! Call [`FileBaseline::copy`] when everything is durable, and [`FileBaseline::put_back`] after the
//! power loss, before the server starts.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use pgdyno_exec::beneath::Directory;
use rustix::fs::{FileType, OFlags};

use super::error::FaultError;

/// Files of one folder of a data directory, as they were at a baseline.
#[derive(Debug)]
pub struct FileBaseline {
    data: PathBuf,
    /// Relative to the data directory, each with its copy.
    files: Vec<(PathBuf, PathBuf)>,
}

impl FileBaseline {
    /// Copies the files below `folder` of the data directory `data` into the directory `into`,
    /// which belongs to pgdyno alone.
    ///
    /// # Errors
    /// [`FaultError::Io`]: a file cannot be read, or its copy not be written.
    pub fn copy(data: &Path, folder: &str, into: &Path) -> Result<Self, FaultError> {
        let root = Directory::open(data).map_err(|e| FaultError::io("open", data, e))?;
        let into = Directory::open(into).map_err(|e| FaultError::io("open", into, e))?;
        let mut baseline = Self { data: data.to_owned(), files: Vec::new() };
        let mut folders = vec![PathBuf::from(folder)];
        while let Some(folder) = folders.pop() {
            let failed = |source| FaultError::io("read the directory", &data.join(&folder), source);
            let open = root.directory(&folder).map_err(failed)?;
            for entry in open.entries().map_err(failed)? {
                let path = folder.join(&entry.name);
                if entry.kind == FileType::Directory {
                    folders.push(path);
                } else if entry.kind == FileType::RegularFile {
                    let copy = format!("file-{}", baseline.files.len());
                    let copied = copy_file(&open, &entry.name, &into, &copy);
                    if copied.map_err(|e| FaultError::io("copy", &data.join(&path), e))? {
                        baseline.files.push((path, into.path().join(copy)));
                    }
                }
            }
        }
        Ok(baseline)
    }

    /// Gives each file that is still there its content and length of the baseline, and says how
    /// many those were. The server must not run.
    ///
    /// # Errors
    /// [`FaultError::Io`]: a copy cannot be read, or a file not be written.
    pub fn put_back(&self) -> Result<usize, FaultError> {
        let root =
            Directory::open(&self.data).map_err(|e| FaultError::io("open", &self.data, e))?;
        let owner =
            rustix::fs::fstat(&root).map_err(|e| FaultError::io("look at", &self.data, e))?.st_uid;
        let mut count = 0;
        for (path, copy) in &self.files {
            let failed = |source| FaultError::io("put back", &self.data.join(path), source);
            let mut file = match root.file_with(path, OFlags::WRONLY) {
                Ok(file) => file,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(failed(e)),
            };
            // A hard link may lead to anybody's file.
            let stat = rustix::fs::fstat(&file).map_err(|e| failed(e.into()))?;
            if stat.st_uid != owner || stat.st_nlink != 1 {
                let found =
                    format!("it belongs to uid {} and has {} name(s)", stat.st_uid, stat.st_nlink);
                return Err(failed(io::Error::other(found)));
            }
            file.set_len(0).map_err(failed)?;
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

/// Copies one file; false if it is gone meanwhile.
fn copy_file(folder: &Directory, name: &OsStr, into: &Directory, copy: &str) -> io::Result<bool> {
    let from = match folder.file(name) {
        Ok(from) => from,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(e),
    };
    let length = from.metadata()?.len();
    io::copy(&mut from.take(length), &mut into.create_file(copy, 0o600)?)?;
    Ok(true)
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
