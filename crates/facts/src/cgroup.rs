//! Limits of this process and of the servers that it starts: control groups and CPU affinity.

use std::collections::BTreeSet;
use std::path::Path;

use pgdyno_exec::cgroup::{cpu_quota, directories};
use pgdyno_exec::mountinfo::MountEntry;
use pgdyno_model::facts::CgroupFacts;
use pgdyno_model::units::Bytes;

use super::text::value_of;
use super::tree::Tree;

/// Returns the tightest limits of this process's own control groups and all groups above them.
/// `memory` is the machine's; a limit beyond it is no limit.
pub(super) fn read(tree: &Tree, mounts: &[MountEntry], memory: Bytes) -> CgroupFacts {
    let membership = tree.read("proc/self/cgroup").unwrap_or_default();
    let cpus = cpu_quota(&membership, mounts, |path| tree.read(path));
    let mut facts = CgroupFacts { cpus, ..CgroupFacts::default() };
    let mut limits = Limits { tree, memory, facts: &mut facts };
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        if controllers.is_empty() {
            directories(mounts, None, path).iter().for_each(|group| limits.unified(group));
        } else {
            for controller in controllers.split(',') {
                for group in directories(mounts, Some(controller), path) {
                    limits.legacy(controller, &group);
                }
            }
        }
    }
    // What `taskset` allows, within what the groups do. A control group's own set may be missing
    // here where a container does not see it.
    let status = tree.read("proc/self/status").unwrap_or_default();
    let allowed = value_of(&status, "Cpus_allowed_list");
    facts.cpuset = allowed.or(facts.cpuset);
    // All the CPUs there are is no limit.
    if let Some(online) = tree.read("sys/devices/system/cpu/online") {
        let online = numbers(&online);
        facts.cpuset = facts.cpuset.filter(|set| !online.is_subset(&numbers(set)));
    }
    facts
}

/// Returns the numbers in a list of the kernel's: `0-2,5`.
fn numbers(list: &str) -> BTreeSet<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

struct Limits<'a> {
    tree: &'a Tree,
    memory: Bytes,
    facts: &'a mut CgroupFacts,
}

impl Limits<'_> {
    fn unified(&mut self, group: &Path) {
        for file in ["memory.max", "memory.high"] {
            self.bytes(group, file);
        }
        self.cpuset(group, "cpuset.cpus.effective");
        self.io(group, "io.max");
    }

    fn legacy(&mut self, controller: &str, group: &Path) {
        match controller {
            "memory" => self.bytes(group, "memory.limit_in_bytes"),
            "cpuset" => self.cpuset(group, "cpuset.effective_cpus"),
            "blkio" => {
                for file in ["read_bps", "write_bps", "read_iops", "write_iops"] {
                    self.io(group, &format!("blkio.throttle.{file}_device"));
                }
            }
            _ => {}
        }
    }

    fn bytes(&mut self, group: &Path, file: &str) {
        if let Some(limit) = self.tree.number::<u64>(group.join(file)).map(Bytes)
            && limit < self.memory
        {
            self.facts.memory = Some(self.facts.memory.map_or(limit, |known| known.min(limit)));
        }
    }

    fn cpuset(&mut self, group: &Path, file: &str) {
        if self.facts.cpuset.is_none() {
            self.facts.cpuset = self.tree.read(group.join(file));
        }
    }

    fn io(&mut self, group: &Path, file: &str) {
        let text = self.tree.read(group.join(file)).unwrap_or_default();
        self.facts.io.extend(text.lines().map(|line| format!("{file} {line}")));
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_exec::mountinfo;

    use super::super::tree::MadeTree;
    use super::*;

    const MEMORY: Bytes = Bytes(64 << 30);

    fn facts(made: &MadeTree, mounts: &str) -> CgroupFacts {
        read(&made.tree(), &mountinfo::parse(mounts), MEMORY)
    }

    #[test]
    fn the_tightest_limit_on_the_way_up_counts() {
        let made = MadeTree::new();
        made.files(&[
            ("proc/self/cgroup", "0::/system.slice/pg.service\n"),
            ("sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/system.slice/pg.service/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/system.slice/pg.service/memory.max", "max\n"),
            ("sys/fs/cgroup/system.slice/pg.service/memory.high", "8589934592\n"),
            ("sys/fs/cgroup/system.slice/memory.max", "4294967296\n"),
            (
                "sys/fs/cgroup/system.slice/pg.service/io.max",
                "259:0 rbps=max wbps=1048576 riops=max wiops=max\n",
            ),
            ("sys/fs/cgroup/system.slice/pg.service/cpuset.cpus.effective", "0-3\n"),
            ("sys/devices/system/cpu/online", "0-7\n"),
        ]);
        let found = facts(&made, "30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        assert_eq!((found.cpus, found.memory), (Some(1.5), Some(Bytes(4 << 30))));
        assert_eq!(found.cpuset.as_deref(), Some("0-3"));
        assert_eq!(found.io, ["io.max 259:0 rbps=max wbps=1048576 riops=max wiops=max"]);
    }

    #[test]
    fn a_containers_own_part_of_the_old_hierarchy() {
        let made = MadeTree::new();
        made.files(&[
            (
                "proc/self/cgroup",
                "5:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n1:name=systemd:/\n0::/\n",
            ),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        let mounts = "40 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             41 31 0:33 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
        let found = facts(&made, mounts);
        assert_eq!(found, CgroupFacts { memory: Some(Bytes(1 << 30)), ..CgroupFacts::default() });
    }

    #[test]
    fn an_affinity_counts_where_it_leaves_out_a_cpu_that_is_online() {
        for (allowed, expected) in
            [("2", Some("2")), ("0,2-3", Some("0,2-3")), ("0-3", None), ("0-127", None)]
        {
            let made = MadeTree::new();
            let status =
                format!("Name:\tpgdyno\nCpus_allowed:\tff\nCpus_allowed_list:\t{allowed}\n");
            made.files(&[
                ("proc/self/cgroup", "0::/\n"),
                ("proc/self/status", &status),
                ("sys/devices/system/cpu/online", "0-3\n"),
            ]);
            assert_eq!(facts(&made, "").cpuset.as_deref(), expected, "{allowed}");
        }
    }

    #[test]
    fn no_limit_beyond_what_there_is() {
        let made = MadeTree::new();
        made.files(&[
            ("proc/self/cgroup", "5:memory:/\n4:cpuset:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-1\n"),
            ("sys/devices/system/cpu/online", "0-1\n"),
        ]);
        let mounts = "40 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             41 31 0:33 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
        assert_eq!(facts(&made, mounts), CgroupFacts::default());
    }
}
