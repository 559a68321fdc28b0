//! CPUs: number, layout and clock frequencies.

use std::collections::BTreeSet;

use pgdyno_model::facts::CpuFacts;

use super::text::value_of;
use super::tree::Tree;

const CPUS: &str = "sys/devices/system/cpu";

pub(super) fn read(tree: &Tree, cpuinfo: &str) -> CpuFacts {
    let each: Vec<String> = tree
        .names(CPUS)
        .into_iter()
        .filter(|n| {
            n.strip_prefix("cpu")
                .is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
        })
        .collect();
    let of = |cpu: &str, file: &str| tree.read(format!("{CPUS}/{cpu}/{file}"));
    let distinct = |file: &str| -> Vec<String> {
        each.iter().filter_map(|cpu| of(cpu, file)).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let khz = |file: &str| -> Vec<u64> {
        let file = format!("cpufreq/{file}");
        each.iter().filter_map(|cpu| of(cpu, &file)?.parse().ok()).collect()
    };
    let mut sockets = BTreeSet::new();
    let mut cores = BTreeSet::new();
    for cpu in &each {
        // Virtual machines of some architectures tell no package: -1.
        if let (Some(socket), Some(core)) =
            (of(cpu, "topology/physical_package_id"), of(cpu, "topology/core_id"))
        {
            cores.insert((socket.clone(), of(cpu, "topology/die_id"), core));
            sockets.insert(socket);
        }
    }
    let count = |n: usize| (n > 0).then(|| u32::try_from(n).unwrap_or(u32::MAX));
    CpuFacts {
        sockets: count(sockets.len()),
        cores: count(cores.len()),
        smt: tree.flag(format!("{CPUS}/smt/active")),
        governors: distinct("cpufreq/scaling_governor"),
        driver: distinct("cpufreq/scaling_driver").into_iter().next(),
        energy_preferences: distinct("cpufreq/energy_performance_preference"),
        hardware_min_khz: khz("cpuinfo_min_freq").into_iter().min(),
        hardware_max_khz: khz("cpuinfo_max_freq").into_iter().max(),
        allowed_max_khz: khz("scaling_max_freq").into_iter().min(),
        boost: tree
            .flag(format!("{CPUS}/cpufreq/boost"))
            .or_else(|| tree.flag(format!("{CPUS}/intel_pstate/no_turbo")).map(|off| !off)),
        microcode: value_of(cpuinfo, "microcode"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::MadeTree;
    use super::*;

    #[test]
    fn two_sockets_with_two_threads_a_core() {
        let made = MadeTree::new();
        for cpu in 0..8 {
            let at = |file: &str| format!("{CPUS}/cpu{cpu}/{file}");
            let (package, core) = (cpu % 2, cpu / 2 % 2);
            made.files(&[
                (&at("topology/physical_package_id"), &format!("{package}\n")),
                (&at("topology/core_id"), &format!("{core}\n")),
                (
                    &at("cpufreq/scaling_governor"),
                    if cpu == 7 { "powersave\n" } else { "performance\n" },
                ),
                (&at("cpufreq/scaling_driver"), "acpi-cpufreq\n"),
                (&at("cpufreq/cpuinfo_max_freq"), "3600000\n"),
                (&at("cpufreq/scaling_max_freq"), if cpu == 3 { "2000000\n" } else { "3600000\n" }),
            ]);
        }
        made.files(&[
            (&format!("{CPUS}/smt/active"), "1\n"),
            (&format!("{CPUS}/intel_pstate/no_turbo"), "1\n"),
            (&format!("{CPUS}/cpufreq/policy0/x"), ""),
        ]);
        let cpu = read(&made.tree(), "microcode\t: 0x2b\n");
        assert_eq!((cpu.sockets, cpu.cores, cpu.smt), (Some(2), Some(4), Some(true)));
        assert_eq!(cpu.governors, ["performance", "powersave"]);
        assert_eq!((cpu.hardware_max_khz, cpu.allowed_max_khz), (Some(3_600_000), Some(2_000_000)));
        assert_eq!((cpu.boost, cpu.microcode.as_deref()), (Some(false), Some("0x2b")));
    }
}
