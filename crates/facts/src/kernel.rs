//! The kernel: command line, vulnerabilities, settings, clock sources.

use pgdyno_model::facts::KernelFacts;

use super::tree::Tree;

const CLOCK: &str = "sys/devices/system/clocksource/clocksource0";
const VULNERABILITIES: &str = "sys/devices/system/cpu/vulnerabilities";

/// The settings that are read from `/proc/sys`.
const SYSCTLS: &[&str] = &[
    "fs.aio-max-nr",
    "kernel.io_uring_disabled",
    "kernel.numa_balancing",
    "kernel.sched_autogroup_enabled",
    "kernel.sched_rt_runtime_us",
    "net.core.somaxconn",
    "vm.dirty_background_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_bytes",
    "vm.dirty_expire_centisecs",
    "vm.dirty_ratio",
    "vm.dirty_writeback_centisecs",
    "vm.laptop_mode",
    "vm.min_free_kbytes",
    "vm.nr_overcommit_hugepages",
    "vm.overcommit_kbytes",
    "vm.overcommit_memory",
    "vm.overcommit_ratio",
    "vm.swappiness",
    "vm.vfs_cache_pressure",
    "vm.zone_reclaim_mode",
];

pub(super) fn read(tree: &Tree) -> KernelFacts {
    let sysctl = |name: &&str| {
        Some(((*name).to_owned(), tree.read(format!("proc/sys/{}", name.replace('.', "/")))?))
    };
    KernelFacts {
        cmdline: tree.read("proc/cmdline").map(|line| public(&line)),
        vulnerabilities: tree
            .names(VULNERABILITIES)
            .into_iter()
            .filter_map(|name| {
                tree.read(format!("{VULNERABILITIES}/{name}")).map(|state| (name, state))
            })
            .collect(),
        sysctl: SYSCTLS.iter().filter_map(sysctl).collect(),
        clocksource: tree.read(format!("{CLOCK}/current_clocksource")),
        clocksources: tree
            .read(format!("{CLOCK}/available_clocksource"))
            .map(|all| all.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default(),
    }
}

/// Returns the command line without secrets. Reports are passed on, and some machines are started
/// with secrets.
fn public(cmdline: &str) -> String {
    const SECRETS: &[&str] = &["pass", "secret", "token", "credential", "auth", "key"];
    let kernel = cmdline.split(" -- ").next().unwrap_or_default();
    let words = kernel.split_whitespace().map(|word| match word.split_once('=') {
        Some((name, _)) if SECRETS.iter().any(|s| name.to_lowercase().contains(s)) => {
            format!("{name}=…")
        }
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::tree::MadeTree;
    use super::*;

    #[test]
    fn settings_are_named_as_sysctl_names_them() {
        let made = MadeTree::new();
        made.files(&[
            ("proc/sys/vm/dirty_ratio", "20\n"),
            ("proc/sys/fs/aio-max-nr", "65536\n"),
            ("proc/sys/vm/unheard_of", "1\n"),
            ("sys/devices/system/cpu/vulnerabilities/spectre_v2", "Vulnerable\n"),
            (
                "sys/devices/system/clocksource/clocksource0/available_clocksource",
                "tsc hpet acpi_pm \n",
            ),
        ]);
        let kernel = read(&made.tree());
        let names: Vec<&str> = kernel.sysctl.keys().map(String::as_str).collect();
        assert_eq!(names, ["fs.aio-max-nr", "vm.dirty_ratio"]);
        assert_eq!(kernel.vulnerabilities["spectre_v2"], "Vulnerable");
        assert_eq!(kernel.clocksources, ["tsc", "hpet", "acpi_pm"]);
        assert_eq!(kernel.clocksource, None);
    }

    #[test]
    fn no_secret_of_the_command_line_is_kept() {
        assert_eq!(
            public(
                "quiet mitigations=off Console_Password=x rd.luks.key=/k \
                 root=/dev/vda -- --token abc"
            ),
            "quiet mitigations=off Console_Password=… rd.luks.key=… root=/dev/vda"
        );
    }
}
