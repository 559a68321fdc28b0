//! Where control groups are mounted.

use std::path::{Path, PathBuf};

use crate::mountinfo::MountEntry;

/// Returns the group in `membership`, the text of a `/proc/PID/cgroup`: of version 2, or of the
/// version 1 hierarchy with `controller`.
pub fn member_of<'a>(membership: &'a str, controller: Option<&str>) -> Option<&'a str> {
    membership.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let found = match controller {
            None => controllers.is_empty(),
            Some(name) => controllers.split(',').any(|c| c == name),
        };
        found.then_some(path)
    })
}

/// Returns the directories of the group `path` and of the groups above it, the innermost first.
///
/// `controller` names the hierarchy as in [`member_of`]. The list is empty if it is not mounted.
pub fn directories(mounts: &[MountEntry], controller: Option<&str>, path: &str) -> Vec<PathBuf> {
    let mounted = |m: &&MountEntry| match controller {
        None => m.filesystem == "cgroup2",
        Some(c) => m.filesystem == "cgroup" && m.super_options.iter().any(|o| o == c),
    };
    let Some(mount) = mounts.iter().find(mounted) else { return Vec::new() };
    // A container may see only its own part of the hierarchy mounted.
    let inside = Path::new(path).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let own = mount.point.join(inside);
    own.ancestors().take_while(|p| p.starts_with(&mount.point)).map(Path::to_owned).collect()
}
