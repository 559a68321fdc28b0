//! Files of `/proc`, `/sys` and `/etc`, below a root that tests may choose.

use std::fs;
use std::path::{Path, PathBuf};

/// The files below a root. A file that is missing or may not be read yields none.
#[derive(Clone, Debug)]
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// Returns the files of this machine.
    pub fn here() -> Self {
        Self { root: PathBuf::from("/") }
    }

    #[cfg(test)]
    /// Returns the files below `root`, as if it were /.
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Returns `path` below the root, whether it begins with a slash or not.
    fn below(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Returns a file's text without surrounding blanks; none if it is empty.
    pub fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.below(path)).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Returns a file's bytes, for those that hold no text.
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        fs::read(self.below(path)).ok()
    }

    /// Returns a file's number.
    pub fn number<T: std::str::FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.read(path)?.parse().ok()
    }

    /// Returns a file's `0` or `1`.
    pub fn flag(&self, path: impl AsRef<Path>) -> Option<bool> {
        self.number::<u64>(path).map(|n| n != 0)
    }

    /// Returns the names in a directory, sorted; none where there is no such directory.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.below(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// Tells whether a file or directory exists.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.below(path).exists()
    }

    /// Tells whether a directory exists.
    pub fn is_directory(&self, path: impl AsRef<Path>) -> bool {
        self.below(path).is_dir()
    }

    /// Returns `path` without symbolic links; none if it leads out of the root.
    pub fn real(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let real = fs::canonicalize(self.below(path)).ok()?;
        let root = fs::canonicalize(&self.root).ok()?;
        Some(Path::new("/").join(real.strip_prefix(root).ok()?))
    }
}

/// A tree made by a test.
#[cfg(test)]
pub(crate) struct MadeTree {
    root: tempfile::TempDir,
}

#[cfg(test)]
impl MadeTree {
    pub(crate) fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn tree(&self) -> Tree {
        Tree::at(self.root.path())
    }

    /// Writes files, `path` and contents.
    pub(crate) fn files(&self, files: &[(&str, &str)]) -> &Self {
        for (path, contents) in files {
            let path = self.root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, contents).unwrap();
        }
        self
    }

    /// Makes links, `path` to a directory of the tree, as sysfs does: relative.
    pub(crate) fn links(&self, links: &[(&str, &str)]) -> &Self {
        for (path, target) in links {
            fs::create_dir_all(self.root.path().join(target)).unwrap();
            let up = "../".repeat(path.matches('/').count());
            let path = self.root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(format!("{up}{target}"), path).unwrap();
        }
        self
    }
}
