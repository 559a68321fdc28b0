//! The files by which the kernel tells of itself, below a root that tests may choose.

use std::fs;
use std::path::{Path, PathBuf};

/// `/proc`, `/sys` and the like. What is missing or may not be read is simply not told.
#[derive(Clone, Debug)]
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// This machine's own.
    pub fn here() -> Self {
        Self { root: PathBuf::from("/") }
    }

    #[cfg(test)]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// `path` below the root, whether it begins with a slash or not.
    fn below(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// A file's text without surrounding blanks; none where there is none.
    pub fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.below(path)).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A file's bytes, for those that hold no text.
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        fs::read(self.below(path)).ok()
    }

    /// A file's number.
    pub fn number<T: std::str::FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.read(path)?.parse().ok()
    }

    /// A file's `0` or `1`.
    pub fn flag(&self, path: impl AsRef<Path>) -> Option<bool> {
        self.number::<u64>(path).map(|n| n != 0)
    }

    /// The names in a directory, sorted; none where there is no such directory.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.below(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// Whether it is there.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.below(path).exists()
    }

    /// Whether a directory is there.
    pub fn is_directory(&self, path: impl AsRef<Path>) -> bool {
        self.below(path).is_dir()
    }

    /// Where `path` really lies, links followed, still below the root.
    pub fn real(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let real = fs::canonicalize(self.below(path)).ok()?;
        let root = fs::canonicalize(&self.root).ok()?;
        Some(Path::new("/").join(real.strip_prefix(root).ok()?))
    }
}

/// A tree made by a test.
#[cfg(test)]
pub struct MadeTree {
    root: tempfile::TempDir,
}

#[cfg(test)]
impl MadeTree {
    pub fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    pub fn tree(&self) -> Tree {
        Tree::at(self.root.path())
    }

    /// Writes files, `path` and contents.
    pub fn files(&self, files: &[(&str, &str)]) -> &Self {
        for (path, contents) in files {
            let path = self.root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, contents).unwrap();
        }
        self
    }

    /// Makes links, `path` to a directory of the tree, as sysfs does: relative.
    pub fn links(&self, links: &[(&str, &str)]) -> &Self {
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
