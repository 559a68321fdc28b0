//! Memory and paging.

use pgdyno_model::units::Bytes;

use crate::doctor::rule::{DoctorRule, Facts, Judged, no_sysctl, note, warning};

/// With less memory, huge pages save little.
const HUGE_PAGES_FROM: Bytes = Bytes(32 << 30);

/// TuneD starts writing at 64 MiB; more than this takes even a fast disk a noticeable time.
const BACKLOG: u64 = 1 << 30;

pub(super) const RULES: &[DoctorRule] = &[
    DoctorRule {
        name: "transparent-hugepage",
        fine: "transparent huge pages are not forced on everything",
        source: "PostgreSQL documentation, Resource Consumption, huge_pages",
        judge: transparent_hugepage,
    },
    DoctorRule {
        name: "dirty-background",
        fine: "the kernel starts early to write dirty pages",
        source: "TuneD, profile postgresql (vm.dirty_background_bytes, vm.dirty_bytes); Linux \
                 documentation, admin-guide/sysctl/vm",
        judge: dirty_background,
    },
    DoctorRule {
        name: "zone-reclaim",
        fine: "vm.zone_reclaim_mode is off",
        source: "Linux documentation, admin-guide/sysctl/vm, zone_reclaim_mode",
        judge: zone_reclaim,
    },
    DoctorRule {
        name: "swappiness",
        fine: "the kernel seldom swaps",
        source: "TuneD, profile postgresql (vm.swappiness)",
        judge: swappiness,
    },
    DoctorRule {
        name: "huge-pages",
        fine: "huge pages are set aside, or memory is small",
        source: "PostgreSQL documentation, Managing Kernel Resources, Linux Huge Pages",
        judge: huge_pages,
    },
    DoctorRule {
        name: "overcommit",
        fine: "vm.overcommit_memory is 2",
        source: "PostgreSQL documentation, Managing Kernel Resources, Linux Memory Overcommit",
        judge: overcommit,
    },
    DoctorRule {
        name: "numa-balancing",
        fine: "the kernel does not move pages between NUMA nodes by itself, or there is one node",
        source: "Linux documentation, admin-guide/sysctl/kernel, numa_balancing",
        judge: numa_balancing,
    },
    DoctorRule {
        name: "cgroup-memory",
        fine: "no control group limits memory",
        source: "Linux documentation, admin-guide/cgroup-v2, Memory",
        judge: cgroup_memory,
    },
];

fn transparent_hugepage(facts: &Facts<'_>) -> Judged {
    let paging = &facts.host.paging;
    match paging.transparent_hugepage.as_deref() {
        None => Judged::NotApplicable,
        Some("always") => {
            let defrag = paging.transparent_hugepage_defrag.as_deref().unwrap_or("unknown");
            let words = format!(
                "transparent huge pages are `always` (defrag `{defrag}`): processes may wait while \
                 the kernel assembles them. PostgreSQL's documentation discourages them."
            );
            warning(words)
                .remedy("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
                .into()
        }
        Some(_) => Judged::Fine,
    }
}

fn dirty_background(facts: &Facts<'_>) -> Judged {
    let Some(ratio) = facts.sysctl("vm.dirty_background_ratio") else {
        return no_sysctl("vm.dirty_background_ratio");
    };
    // The kernel takes the share of available memory, which is a little less than all.
    let by_ratio = || facts.host.memory.0 / 100 * ratio;
    let (backlog, of) = match facts.sysctl("vm.dirty_background_bytes") {
        Some(bytes) if bytes > 0 => (bytes, String::new()),
        _ => (by_ratio(), format!(" (vm.dirty_background_ratio {ratio})")),
    };
    let found = (backlog > BACKLOG).then(|| {
        note(format!(
            "up to {}{of} may be dirty before the kernel begins to write: a checkpoint's fsync can \
             find that much to wait for.",
            Bytes(backlog)
        ))
        .remedy("sysctl -w vm.dirty_background_bytes=67108864 vm.dirty_bytes=536870912")
    });
    found.into()
}

fn zone_reclaim(facts: &Facts<'_>) -> Judged {
    match facts.sysctl("vm.zone_reclaim_mode") {
        // Kernels without NUMA do not have it.
        None => Judged::NotApplicable,
        Some(0) => Judged::Fine,
        Some(mode) => warning(format!(
            "vm.zone_reclaim_mode is {mode}: the kernel drops cached pages while other NUMA \
             nodes have room."
        ))
        .remedy("sysctl -w vm.zone_reclaim_mode=0")
        .into(),
    }
}

fn swappiness(facts: &Facts<'_>) -> Judged {
    if facts.host.paging.swap.is_none_or(|swap| swap == Bytes(0)) {
        return Judged::NotApplicable;
    }
    let Some(swappiness) = facts.sysctl("vm.swappiness") else { return no_sysctl("vm.swappiness") };
    let found = (swappiness > 10).then(|| {
        note(format!(
            "vm.swappiness is {swappiness}: under pressure shared buffers are swapped out \
             early."
        ))
        .remedy("sysctl -w vm.swappiness=3")
    });
    found.into()
}

fn huge_pages(facts: &Facts<'_>) -> Judged {
    let Some(pages) = facts.host.paging.huge_pages else { return Judged::NotApplicable };
    let found =
        (pages == 0 && facts.host.memory >= HUGE_PAGES_FROM).then(|| {
            note(format!(
            "no huge pages are set aside of {} of memory: huge shared buffers in small pages cost \
             page tables in every backend, and CPU time.",
            facts.host.memory
        ))
        .remedy("postgres -D PGDATA -C shared_memory_size_in_huge_pages   # then, with that \
                 number:")
        .remedy("sysctl -w vm.nr_hugepages=NUMBER")
        });
    found.into()
}

fn overcommit(facts: &Facts<'_>) -> Judged {
    let Some(mode) = facts.sysctl("vm.overcommit_memory") else {
        return no_sysctl("vm.overcommit_memory");
    };
    let found = (mode != 2).then(|| {
        note(format!(
            "vm.overcommit_memory is {mode}: when memory runs out, the kernel may kill \
             the server."
        ))
        .remedy(
            "sysctl -w vm.overcommit_memory=2   # with vm.overcommit_ratio for this \
             machine",
        )
    });
    found.into()
}

fn numa_balancing(facts: &Facts<'_>) -> Judged {
    if facts.host.paging.numa_nodes.len() < 2 {
        return Judged::NotApplicable;
    }
    match facts.sysctl("kernel.numa_balancing") {
        None => Judged::NotApplicable,
        Some(0) => Judged::Fine,
        Some(_) => note(format!(
            "{} NUMA nodes with kernel.numa_balancing on: pages are unmapped to see who uses them, \
             and moved during trials. A run shows whether that pays.",
            facts.host.paging.numa_nodes.len()
        ))
        .remedy("sysctl -w kernel.numa_balancing=0")
        .into(),
    }
}

fn cgroup_memory(facts: &Facts<'_>) -> Judged {
    let found = facts.host.cgroup.memory.map(|limit| {
        note(format!(
            "a control group limits memory to {limit} of the machine's {}; the page cache counts \
             in it.",
            facts.host.memory
        ))
        .remedy("raise memory.max (container: --memory), or choose the scale for that much memory")
    });
    found.into()
}
