//! Who keeps a filesystem from being unmounted.

use std::fs;
use std::path::{Path, PathBuf};

use crate::mountinfo;

/// Those who use the filesystem mounted at `point`, in words: processes with files, a directory or
/// a program on it, mounts upon it, loop devices over its files.
pub(crate) fn users(point: &Path) -> String {
    let point = &*mountinfo::as_listed(point);
    let mut users = processes(point);
    let beneath = mountinfo::mounted_beneath(point).unwrap_or_default();
    users.extend(
        beneath
            .iter()
            .filter(|m| m.point != point)
            .map(|m| format!("the mount {}", m.point.display())),
    );
    users.extend(loops(point));
    named(&users)
}

/// Returns users in words, also if there are none.
pub(crate) fn named(users: &[String]) -> String {
    if users.is_empty() { "nobody that /proc shows".into() } else { users.join(", ") }
}

/// The processes that have `point` open, a file or a directory, or anything below it.
pub(crate) fn processes(point: &Path) -> Vec<String> {
    let Ok(list) = fs::read_dir("/proc") else { return Vec::new() };
    let mut found: Vec<(i32, String)> = list
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let process = entry.path();
            let used = used_by(&process).into_iter().find(|path| path.starts_with(point))?;
            let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
            Some((pid, format!("process {pid} ({}: {})", name.trim(), used.display())))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, text)| text).collect()
}

/// Returns every path that a process holds: of its directory, its root, its program, its open and
/// its mapped files.
fn used_by(process: &Path) -> Vec<PathBuf> {
    let links = ["cwd", "root", "exe"].map(|name| process.join(name)).into_iter();
    let within = |folder: &str| {
        let list = fs::read_dir(process.join(folder)).into_iter().flatten();
        list.filter_map(|entry| Some(entry.ok()?.path())).collect::<Vec<_>>()
    };
    links
        .chain(within("fd"))
        .chain(within("map_files"))
        .filter_map(|link| fs::read_link(link).ok())
        .collect()
}

fn loops(point: &Path) -> Vec<String> {
    let list = fs::read_dir("/sys/block").into_iter().flatten();
    list.filter_map(|entry| {
        let entry = entry.ok()?;
        let file = fs::read_to_string(entry.path().join("loop/backing_file")).ok()?;
        Path::new(file.trim_end())
            .starts_with(point)
            .then(|| format!("the loop device /dev/{}", entry.file_name().to_string_lossy()))
    })
    .collect()
}
