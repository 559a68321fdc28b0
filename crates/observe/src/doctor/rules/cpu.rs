//! CPUs, clocks, and what else uses or limits them.

use crate::doctor::advice::Severity;
use crate::doctor::rule::{DoctorRule, Facts, Judged, finding, no_sysctl, note, warning};

/// The share of stolen CPU time from which a finding is made.
const STEAL: f64 = 0.01;

/// Clocks whose every reading is a call into a device or the kernel.
const SLOW_CLOCKS: &[&str] = &["acpi_pm", "hpet", "jiffies", "pit", "refined-jiffies"];

pub(super) const RULES: &[DoctorRule] = &[
    DoctorRule {
        name: "governor",
        fine: "the CPU frequency governor favours speed, or there is none",
        source: "TuneD, profile postgresql (governor); Linux documentation, admin-guide/pm/cpufreq \
                 and admin-guide/pm/intel_pstate",
        judge: governor,
    },
    DoctorRule {
        name: "frequency-limit",
        fine: "the CPUs may run at their full frequency",
        source: "Linux documentation, admin-guide/pm/cpufreq, scaling_max_freq",
        judge: frequency_limit,
    },
    DoctorRule {
        name: "clocksource",
        fine: "reading the clock is cheap",
        source: "PostgreSQL documentation, pg_test_timing",
        judge: clocksource,
    },
    DoctorRule {
        name: "steal",
        fine: "the hypervisor takes no CPU time from this machine",
        source: "Linux documentation, filesystems/proc, /proc/stat",
        judge: steal,
    },
    DoctorRule {
        name: "cgroup-cpu",
        fine: "neither a control group nor taskset limits CPU time",
        source: "Linux documentation, admin-guide/cgroup-v2, CPU and Cpuset",
        judge: cgroup_cpu,
    },
    DoctorRule {
        name: "autogroup",
        fine: "the scheduler does not group processes by session",
        source: "TuneD, profile postgresql (kernel.sched_autogroup_enabled); sched(7), The \
                 autogroup feature",
        judge: autogroup,
    },
];

fn governor(facts: &Facts<'_>) -> Judged {
    let cpu = &facts.host.cpu;
    if cpu.governors.is_empty() {
        return Judged::NotApplicable;
    }
    let driver = cpu.driver.as_deref().unwrap_or("unknown");
    // These drivers' powersave follows the load, others' stays at the lowest frequency.
    let follows = ["intel_pstate", "amd-pstate-epp"].contains(&driver);
    let slow = cpu.governors.iter().any(|g| g == "powersave") && !follows;
    let found = (cpu.governors != ["performance"]).then(|| {
        let governors = cpu.governors.join(", ");
        let (severity, consequence) = if slow {
            (Severity::Warning, "the CPUs stay at their lowest frequency")
        } else {
            (Severity::Note, "the frequency follows the load with a delay, and trials differ by it")
        };
        finding(
            severity,
            format!("CPU frequency governor `{governors}` (driver {driver}): {consequence}."),
        )
        .remedy("cpupower frequency-set -g performance")
    });
    found.into()
}

fn frequency_limit(facts: &Facts<'_>) -> Judged {
    let cpu = &facts.host.cpu;
    let (Some(allowed), Some(most)) = (cpu.allowed_max_khz, cpu.hardware_max_khz) else {
        return Judged::NotApplicable;
    };
    let found = (allowed < most).then(|| {
        warning(format!(
            "the CPUs are held to {} MHz; the hardware has {} MHz.",
            allowed / 1000,
            most / 1000
        ))
        .remedy(format!("cpupower frequency-set -u {most}"))
    });
    found.into()
}

fn clocksource(facts: &Facts<'_>) -> Judged {
    let settings = &facts.host.settings;
    let Some(clock) = settings.clocksource.as_deref() else {
        return Judged::Unobservable("the kernel does not show its clock source".to_owned());
    };
    let found = SLOW_CLOCKS.contains(&clock).then(|| {
        let found = warning(format!(
            "the clock source is `{clock}`: each reading of the clock is slow, for PostgreSQL's \
             track_io_timing and EXPLAIN ANALYZE and for the load generator."
        ));
        if settings.clocksources.iter().any(|c| c == "tsc") {
            found.remedy(
                "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource   # \
                 see dmesg for why the kernel left it",
            )
        } else {
            found.remedy("dmesg | grep -i -e tsc -e clocksource   # why the kernel offers no tsc")
        }
    });
    found.into()
}

fn steal(facts: &Facts<'_>) -> Judged {
    let Some(steal) = facts.host.virtualization.steal else {
        return Judged::Unobservable("/proc/stat does not tell of stolen time".to_owned());
    };
    let found = (steal >= STEAL).then(|| {
        warning(format!(
            "the hypervisor gave {:.1}% of this machine's CPU time since boot to others: trials \
             depend on their load.",
            steal * 100.0
        ))
        .remedy("measure on a dedicated host or instance, or with more repeats, block by block")
    });
    found.into()
}

fn cgroup_cpu(facts: &Facts<'_>) -> Judged {
    let cgroup = &facts.host.cgroup;
    let mut found = Vec::new();
    if let Some(cpus) = cgroup.cpus.filter(|c| *c < f64::from(facts.host.cpus)) {
        let words = format!(
            "a control group allows {cpus} CPUs' worth of time on {} CPUs: processes are stopped \
             when it is used up, for up to a period of 100 ms.",
            facts.host.cpus
        );
        found.push(warning(words).remedy("raise cpu.max, or cpu.cfs_quota_us (container: --cpus)"));
    }
    if let Some(set) = &cgroup.cpuset {
        let words = format!(
            "pgdyno, and the servers that it starts, may run on CPU {set} of {} only (`taskset`, \
             or a control group's cpuset).",
            facts.host.cpus
        );
        found.push(note(words).remedy(
            "start pgdyno without taskset, or widen cpuset.cpus (container: --cpuset-cpus), unless \
             that is intended",
        ));
    }
    found.into()
}

fn autogroup(facts: &Facts<'_>) -> Judged {
    const NAME: &str = "kernel.sched_autogroup_enabled";
    match facts.sysctl(NAME) {
        // A kernel built without it groups nothing.
        None if facts.host.settings.sysctl.is_empty() => no_sysctl(NAME),
        None | Some(0) => Judged::Fine,
        Some(_) => note(
            "kernel.sched_autogroup_enabled is on: CPU time is divided between sessions, not \
             between processes, so that server and load generator have other shares than \
             their processes would.",
        )
        .remedy("sysctl -w kernel.sched_autogroup_enabled=0")
        .into(),
    }
}
