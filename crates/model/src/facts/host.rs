//! Facts about the machine. Unknown facts stay empty, also in runs of older versions that did not
//! collect them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// The machine that ran the trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFacts {
    /// Name on the network, from uname.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Digest of `/etc/machine-id`, which tells machines apart. None where the file does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Distribution and version, from `/etc/os-release`.
    pub os: String,
    /// Kernel name, release and machine, from uname.
    pub kernel: String,
    /// CPU model, from `/proc/cpuinfo`.
    pub cpu_model: String,
    /// Logical CPUs online (count).
    pub cpus: u32,
    /// Main memory.
    pub memory: Bytes,
    /// Manufacturer and model.
    #[serde(default)]
    pub hardware: Hardware,
    /// Layout and clocking of the CPUs.
    #[serde(default)]
    pub cpu: CpuFacts,
    /// Layout and paging of the memory.
    #[serde(default)]
    pub paging: MemoryFacts,
    /// Command line and settings of the kernel.
    #[serde(default)]
    pub settings: KernelFacts,
    /// Hypervisor, container and cloud.
    #[serde(default)]
    pub virtualization: Virtualization,
    /// Limits of pgdyno's control group.
    #[serde(default)]
    pub cgroup: CgroupFacts,
    /// Load average over the minute before, from `/proc/loadavg`: processes that ran, or waited for
    /// a CPU or a disk (count). None in records of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_average: Option<f64>,
}

/// DMI's names, from `/sys/class/dmi/id`. Serial numbers and UUIDs are never read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Hardware {
    /// `sys_vendor`.
    pub vendor: Option<String>,
    /// `product_name`.
    pub product: Option<String>,
    /// `product_version`.
    pub version: Option<String>,
    /// `board_name`.
    pub board: Option<String>,
    /// `bios_vendor`, `bios_version` and `bios_date`, as far as there.
    pub bios: Option<String>,
}

/// CPUs, from `/sys/devices/system/cpu` and `/proc/cpuinfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CpuFacts {
    /// Sockets (count).
    pub sockets: Option<u32>,
    /// Cores of all sockets together (count).
    pub cores: Option<u32>,
    /// Whether several hardware threads share a core (`smt/active`).
    pub smt: Option<bool>,
    /// The different `cpufreq/scaling_governor` in use; one where all CPUs have the same.
    pub governors: Vec<String>,
    /// `cpufreq/scaling_driver`.
    pub driver: Option<String>,
    /// The different `cpufreq/energy_performance_preference` in use.
    pub energy_preferences: Vec<String>,
    /// The lowest frequency that the hardware has (kHz), `cpuinfo_min_freq`.
    pub hardware_min_khz: Option<u64>,
    /// The highest frequency that the hardware has (kHz), `cpuinfo_max_freq`.
    pub hardware_max_khz: Option<u64>,
    /// The lowest of the highest frequencies that the CPUs are allowed (kHz), `scaling_max_freq`.
    pub allowed_max_khz: Option<u64>,
    /// Whether turbo or boost is on.
    pub boost: Option<bool>,
    /// Microcode revision, from `/proc/cpuinfo`.
    pub microcode: Option<String>,
}

/// Memory, from `/sys/kernel/mm`, `/sys/devices/system/node` and `/proc/meminfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MemoryFacts {
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_hugepage: Option<String>,
    /// Effort of the kernel to provide transparent huge pages: `transparent_hugepage/defrag`.
    pub transparent_hugepage_defrag: Option<String>,
    /// Explicit huge pages set aside (count), `HugePages_Total`.
    pub huge_pages: Option<u64>,
    /// Size of one explicit huge page.
    pub huge_page_size: Option<Bytes>,
    /// Swap space.
    pub swap: Option<Bytes>,
    /// The memory of each NUMA node, in the nodes' order.
    pub numa_nodes: Vec<Bytes>,
}

/// The kernel's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct KernelFacts {
    /// `/proc/cmdline` up to ` -- `, where init's arguments begin. Values that look like secrets
    /// are left out.
    pub cmdline: Option<String>,
    /// CPU vulnerabilities and their mitigations, from `/sys/devices/system/cpu/vulnerabilities`.
    pub vulnerabilities: BTreeMap<String, String>,
    /// Sysctls that affect databases, by name.
    pub sysctl: BTreeMap<String, String>,
    /// The clock behind `clock_gettime`: `tsc`, `kvm-clock`, `hpet`, …
    pub clocksource: Option<String>,
    /// Every clock that the kernel could use.
    pub clocksources: Vec<String>,
}

/// Virtualization around the system: hypervisor, container, cloud.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Virtualization {
    /// The hypervisor: `kvm`, `vmware`, …; `unknown` where the CPU says that there is one and DMI
    /// does not say which.
    pub hypervisor: Option<String>,
    /// The container manager: `docker`, `podman`, `lxc`, …
    pub container: Option<String>,
    /// The cloud, as DMI tells it: `Amazon EC2`, …
    pub cloud: Option<String>,
    /// Instance type of the cloud, where DMI tells it.
    pub instance_type: Option<String>,
    /// CPU time since boot that the hypervisor gave to others (share of all CPU time, 0 to 1).
    pub steal: Option<f64>,
}

/// Limits of pgdyno's own control group and those above it: the tightest of each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CgroupFacts {
    /// CPUs' worth of time (count), from `cpu.max` or `cpu.cfs_quota_us`.
    pub cpus: Option<f64>,
    /// CPUs that may be used, if not all: `Cpus_allowed_list`, which `taskset` sets within the
    /// control group's limits, else `cpuset.cpus.effective`.
    pub cpuset: Option<String>,
    /// Memory, page cache included, from `memory.max`, `memory.high` or `memory.limit_in_bytes`.
    pub memory: Option<Bytes>,
    /// Limits of devices' traffic, as `io.max` or `blkio.throttle.*` have them.
    pub io: Vec<String>,
}

impl HostFacts {
    /// Returns the name for people, else the id; none where an earlier version looked.
    pub fn label(&self) -> Option<&str> {
        self.name.as_deref().or(self.id.as_deref())
    }

    /// Whether `other` is known to be another machine, however alike the two are.
    pub fn is_other_than(&self, other: &Self) -> bool {
        matches!((&self.id, &other.id), (Some(a), Some(b)) if a != b)
    }

    /// Returns the parts in which two sessions' machines differ, in words. Empty if both are alike
    /// or one of them does not tell. Steal time and load change by themselves: they are none.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let (a, b) = (self, other);
        let mut different = Vec::new();
        let mut compare = |what, same: bool| {
            if !same {
                different.push(what);
            }
        };
        compare("operating system", a.os == b.os);
        compare("kernel", a.kernel == b.kernel);
        compare("CPU", (&a.cpu_model, a.cpus) == (&b.cpu_model, b.cpus));
        compare("memory", a.memory == b.memory);
        compare("hardware", alike(&a.hardware, &b.hardware));
        compare("CPU frequency or layout", alike(&a.cpu, &b.cpu));
        compare("paging", alike(&a.paging, &b.paging));
        compare("kernel settings", alike(&a.settings, &b.settings));
        let place = |v: &Virtualization| Virtualization { steal: None, ..v.clone() };
        compare("virtualisation", alike(&place(&a.virtualization), &place(&b.virtualization)));
        // No limit is a fact too, but only where the fingerprint was taken at all.
        let taken = a.settings != KernelFacts::default() && b.settings != KernelFacts::default();
        compare("control group limits", !taken || a.cgroup == b.cgroup);
        different
    }
}

/// Whether two are equal, or one was never collected.
fn alike<T: Default + PartialEq>(a: &T, b: &T) -> bool {
    a == b || *a == T::default() || *b == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_and_facts_never_collected_are_no_difference() {
        let old = HostFacts { os: "Debian".into(), cpus: 4, ..HostFacts::default() };
        let mut new = old.clone();
        new.settings.sysctl.insert("vm.swappiness".into(), "60".into());
        new.virtualization.steal = Some(0.1);
        new.cgroup.cpus = Some(2.0);
        assert_eq!(old.differences(&new), [""; 0]);
        let mut later = new.clone();
        later.virtualization.steal = Some(0.2);
        assert_eq!(new.differences(&later), [""; 0]);
        later.settings.sysctl.insert("vm.swappiness".into(), "1".into());
        later.cgroup.cpus = None;
        later.cpus = 8;
        assert_eq!(new.differences(&later), ["CPU", "kernel settings", "control group limits"]);
    }

    #[test]
    fn equal_machines_are_told_apart_by_their_ids_alone() {
        let host = |name: &str, id: Option<&str>| HostFacts {
            name: Some(name.to_owned()),
            id: id.map(str::to_owned),
            ..HostFacts::default()
        };
        let (db1, db2) = (host("db1", Some("1")), host("db2", Some("2")));
        assert!(db1.is_other_than(&db2) && db1.differences(&db2).is_empty());
        assert!(!db1.is_other_than(&host("renamed", Some("1"))));
        assert!(!db1.is_other_than(&host("old", None)));
        assert_eq!(db1.label(), Some("db1"));
    }

    #[test]
    fn a_host_stored_by_an_older_pgdyno_still_opens() {
        let old = concat!(
            r#"{"os":"Debian","kernel":"Linux 6.1","cpu_model":"A CPU","cpus":2,"#,
            r#""memory":8000000000}"#
        );
        let host: HostFacts = serde_json::from_str(old).unwrap();
        assert_eq!((host.cpus, host.cpu), (2, CpuFacts::default()));
    }
}
