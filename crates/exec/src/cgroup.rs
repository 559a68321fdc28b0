//! Where control groups are mounted, and how much CPU time they and the CPU affinity allow.

use std::fs;
use std::path::{Path, PathBuf};

use crate::mountinfo::{self, MountEntry};

/// Returns the group in `membership`, the text of a `/proc/PID/cgroup`: of version 2, or of the
/// version 1 hierarchy with `controller`.
fn member_of<'a>(membership: &'a str, controller: Option<&str>) -> Option<&'a str> {
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
/// `controller` names a hierarchy of version 1; without one it is that of version 2. The list is
/// empty if it is not mounted.
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

/// Returns the directories of the group in `membership`, the text of a `/proc/PID/cgroup`, and of
/// those above it, as [`directories`] does.
pub fn groups(membership: &str, mounts: &[MountEntry], controller: Option<&str>) -> Vec<PathBuf> {
    let path = member_of(membership, controller);
    path.map_or_else(Vec::new, |path| directories(mounts, controller, path))
}

/// Returns the CPUs' worth of time (count) that the groups in `membership`, the text of a
/// `/proc/PID/cgroup`, and those above them allow: the least that `cpu.max` or `cpu.cfs_quota_us`
/// says. None where no group sets a limit. `read` returns the text of a file.
pub fn cpu_quota(
    membership: &str,
    mounts: &[MountEntry],
    read: impl Fn(&Path) -> Option<String>,
) -> Option<f64> {
    let unified = groups(membership, mounts, None);
    let unified = unified.into_iter().filter_map(|group| read(&group.join("cpu.max")));
    let legacy = groups(membership, mounts, Some("cpu"));
    let legacy = legacy.into_iter().filter_map(|group| {
        let quota = read(&group.join("cpu.cfs_quota_us"))?;
        Some(format!("{quota} {}", read(&group.join("cpu.cfs_period_us"))?))
    });
    let cpus = |text: String| {
        let mut words = text.split_whitespace().map(str::parse::<f64>);
        match (words.next()?, words.next()?) {
            // A quota of `max` or -1 is none.
            (Ok(quota), Ok(period)) if quota > 0.0 && period > 0.0 => Some(quota / period),
            _ => None,
        }
    };
    unified.chain(legacy).filter_map(cpus).min_by(f64::total_cmp)
}

/// Returns the CPUs' worth of time that this process may use (count): the CPUs of its affinity, or
/// less where its control group says so. None where the kernel does not tell.
pub fn cpus_allowed() -> Option<f64> {
    let affinity = f64::from(rustix::thread::sched_getaffinity(None).ok()?.count());
    let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = mountinfo::mounts().unwrap_or_default();
    let quota = cpu_quota(&membership, &mounts, |path| fs::read_to_string(path).ok());
    Some(quota.map_or(affinity, |quota| quota.min(affinity)))
}

#[cfg(test)]
mod tests {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::*;

    #[test]
    fn a_process_may_use_the_cpus_of_its_affinity_at_most() {
        // Of this test's own thread.
        let all = sched_getaffinity(None).unwrap();
        let first = (0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap();
        let mut one = CpuSet::new();
        one.set(first);
        sched_setaffinity(None, &one).unwrap();
        let allowed = cpus_allowed().unwrap();
        assert!(allowed > 0.0 && allowed <= 1.0, "{allowed}");
        sched_setaffinity(None, &all).unwrap();
        assert!(cpus_allowed().unwrap() <= f64::from(all.count()));
    }
}
