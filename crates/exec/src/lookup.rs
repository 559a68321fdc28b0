//! Where programs are looked for.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Returns `PATH` and the folders of root's programs, which `su` and some containers leave out of
/// it.
pub fn search_path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|p| p.is_absolute()).collect();
    for folder in ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    std::env::join_paths(folders).unwrap_or(path)
}

/// Finds the program `name`; none when it is not installed.
pub fn locate(name: &str) -> Option<PathBuf> {
    let executable = |p: &PathBuf| {
        p.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&search_path()).map(|folder| folder.join(name)).find(executable)
}
