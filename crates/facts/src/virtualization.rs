//! Hypervisor, container and cloud around this machine, as far as files show them: no network is
//! asked.

use pgdyno_model::facts::{Hardware, Virtualization};

use super::text::value_of;
use super::tree::Tree;

/// Beginnings of DMI's vendor, product, board or BIOS names, and the hypervisor they belong to; as
/// systemd-detect-virt.
const HYPERVISORS: &[(&str, &str)] = &[
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("Amazon EC2", "amazon"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "virtualbox"),
    ("VirtualBox", "virtualbox"),
    ("Oracle Corporation", "virtualbox"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Hyper-V", "microsoft"),
    ("Apple Virtualization", "apple"),
    ("Google Compute Engine", "google"),
];

/// Beginnings of the same names and of the chassis' asset tag, and the cloud they belong to; as
/// cloud-init's ds-identify.
const CLOUDS: &[(&str, &str)] = &[
    ("Amazon EC2", "Amazon EC2"),
    ("Google Compute Engine", "Google Compute Engine"),
    ("7783-7084-3265-9085-8269-3286-77", "Microsoft Azure"),
    ("OracleCloud.com", "Oracle Cloud"),
    ("Alibaba Cloud", "Alibaba Cloud"),
    ("DigitalOcean", "DigitalOcean"),
    ("Hetzner", "Hetzner"),
    ("Scaleway", "Scaleway"),
    ("Vultr", "Vultr"),
    ("UpCloud", "UpCloud"),
    ("Exoscale", "Exoscale"),
    ("Akamai", "Akamai"),
    ("Linode", "Akamai"),
    ("OpenStack", "OpenStack"),
];

const DMI: &str = "sys/class/dmi/id";

pub(super) fn hardware(tree: &Tree) -> Hardware {
    let id = |file: &str| tree.read(format!("{DMI}/{file}"));
    let bios: Vec<String> =
        ["bios_vendor", "bios_version", "bios_date"].into_iter().filter_map(id).collect();
    Hardware {
        vendor: id("sys_vendor"),
        product: id("product_name"),
        version: id("product_version"),
        board: id("board_name"),
        bios: (!bios.is_empty()).then(|| bios.join(" ")),
    }
}

pub(super) fn read(tree: &Tree, cpuinfo: &str) -> Virtualization {
    let names: Vec<String> =
        ["sys_vendor", "product_name", "board_vendor", "bios_vendor", "chassis_asset_tag"]
            .into_iter()
            .filter_map(|file| tree.read(format!("{DMI}/{file}")))
            .collect();
    let known = |table: &[(&str, &'static str)]| {
        table
            .iter()
            .find(|(start, _)| names.iter().any(|name| name.starts_with(start)))
            .map(|(_, what)| *what)
    };
    let cloud = known(CLOUDS);
    // On EC2's own machines the product is the instance type; on its old Xen ones it is `HVM domU`.
    let instance_type = (cloud == Some("Amazon EC2"))
        .then(|| tree.read(format!("{DMI}/product_name")))
        .flatten()
        .filter(|product| !product.contains(' '));
    let metal = instance_type.as_ref().is_some_and(|t| t.contains(".metal"));
    Virtualization {
        hypervisor: if metal { None } else { hypervisor(tree, cpuinfo, known(HYPERVISORS)) },
        container: container(tree),
        cloud: cloud.map(str::to_owned),
        instance_type,
        steal: tree.read("proc/stat").as_deref().and_then(steal),
    }
}

fn hypervisor(tree: &Tree, cpuinfo: &str, by_dmi: Option<&str>) -> Option<String> {
    let flagged = value_of(cpuinfo, "flags")
        .is_some_and(|flags| flags.split_whitespace().any(|f| f == "hypervisor"));
    if let Some(kind) = tree.read("sys/hypervisor/type") {
        return Some(kind);
    }
    if let Some(kind) = tree.read("proc/device-tree/hypervisor/compatible") {
        return Some(kind.trim_start_matches("linux,").to_owned());
    }
    if let Some(kind) = by_dmi {
        return Some(kind.to_owned());
    }
    // Hyper-V's guests bear its maker's name, and so do that maker's laptops.
    let product = tree.read(format!("{DMI}/product_name"));
    if product.as_deref() == Some("Virtual Machine") {
        return Some("microsoft".to_owned());
    }
    let clocks = tree.read("sys/devices/system/clocksource/clocksource0/available_clocksource");
    match clocks {
        _ if !flagged => None,
        Some(clocks) if clocks.contains("kvm-clock") => Some("kvm".to_owned()),
        Some(clocks) if clocks.contains("hyperv") => Some("microsoft".to_owned()),
        _ => Some("unknown".to_owned()),
    }
}

fn container(tree: &Tree) -> Option<String> {
    if let Some(manager) = tree.read("run/systemd/container") {
        return Some(manager);
    }
    // Only root may read it.
    let environment = tree.read("proc/1/environ").unwrap_or_default();
    if let Some(manager) =
        environment.split('\0').find_map(|v| v.strip_prefix("container=")).filter(|m| !m.is_empty())
    {
        return Some(manager.to_owned());
    }
    for (file, manager) in [("run/.containerenv", "podman"), (".dockerenv", "docker")] {
        if tree.exists(file) {
            return Some(manager.to_owned());
        }
    }
    let group = tree.read("proc/1/cgroup").unwrap_or_default();
    [("kubepods", "kubernetes"), ("/docker", "docker"), ("libpod", "podman"), ("/lxc", "lxc")]
        .iter()
        .find(|(part, _)| group.contains(part))
        .map(|(_, manager)| (*manager).to_owned())
}

/// Returns the share of all CPU time since boot that was stolen. `guest` and `guest_nice` are
/// within `user` and `nice`.
fn steal(stat: &str) -> Option<f64> {
    let line = stat.lines().find_map(|l| l.strip_prefix("cpu "))?;
    let ticks: Vec<f64> = line.split_whitespace().take(8).filter_map(|t| t.parse().ok()).collect();
    let all: f64 = ticks.iter().sum();
    (ticks.len() == 8 && all > 0.0).then(|| ticks[7] / all)
}

#[cfg(test)]
mod tests {
    use super::super::tree::MadeTree;
    use super::*;

    fn dmi(files: &[(&str, &str)]) -> MadeTree {
        let made = MadeTree::new();
        for (file, text) in files {
            made.files(&[(&format!("{DMI}/{file}"), &format!("{text}\n"))]);
        }
        made
    }

    #[test]
    fn a_clouds_instance_shows_its_type() {
        let made = dmi(&[
            ("sys_vendor", "Amazon EC2"),
            ("product_name", "m7i.4xlarge"),
            ("bios_vendor", "Amazon EC2"),
            ("bios_version", "1.0"),
        ]);
        let found = read(&made.tree(), "flags : fpu hypervisor\n");
        assert_eq!(found.cloud.as_deref(), Some("Amazon EC2"));
        assert_eq!(found.instance_type.as_deref(), Some("m7i.4xlarge"));
        assert_eq!(found.hypervisor.as_deref(), Some("amazon"));
        let hardware = hardware(&made.tree());
        assert_eq!(hardware.product.as_deref(), Some("m7i.4xlarge"));
        assert_eq!(hardware.bios.as_deref(), Some("Amazon EC2 1.0"));
    }

    #[test]
    fn bare_metal_has_no_hypervisor_even_in_a_cloud() {
        let made = dmi(&[("sys_vendor", "Amazon EC2"), ("product_name", "m7i.metal-24xl")]);
        assert_eq!(read(&made.tree(), "flags : fpu\n").hypervisor, None);
        let made =
            dmi(&[("sys_vendor", "Microsoft Corporation"), ("product_name", "Surface Laptop")]);
        let found = read(&made.tree(), "flags : fpu\n");
        assert_eq!((found.hypervisor, found.cloud), (None, None));
    }

    #[test]
    fn azure_is_told_by_its_asset_tag() {
        let made = dmi(&[
            ("sys_vendor", "Microsoft Corporation"),
            ("product_name", "Virtual Machine"),
            ("chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77"),
        ]);
        let found = read(&made.tree(), "flags : hypervisor\n");
        assert_eq!(found.cloud.as_deref(), Some("Microsoft Azure"));
        assert_eq!(found.hypervisor.as_deref(), Some("microsoft"));
    }

    #[test]
    fn without_dmi_the_cpu_tells_that_there_is_a_hypervisor() {
        let made = MadeTree::new();
        assert_eq!(
            read(&made.tree(), "flags : fpu hypervisor\n").hypervisor.as_deref(),
            Some("unknown")
        );
        made.files(&[(
            "sys/devices/system/clocksource/clocksource0/available_clocksource",
            "tsc kvm-clock\n",
        )]);
        assert_eq!(
            read(&made.tree(), "flags : fpu hypervisor\n").hypervisor.as_deref(),
            Some("kvm")
        );
        assert_eq!(read(&made.tree(), "flags : fpu\n").hypervisor, None);
    }

    #[test]
    fn containers_are_known_by_what_their_managers_leave() {
        let made = MadeTree::new();
        made.files(&[("proc/1/cgroup", "0::/kubepods.slice/pod1\n")]);
        assert_eq!(container(&made.tree()).as_deref(), Some("kubernetes"));
        made.files(&[(".dockerenv", "")]);
        assert_eq!(container(&made.tree()).as_deref(), Some("docker"));
        made.files(&[("proc/1/environ", "PATH=/bin\0container=lxc\0")]);
        assert_eq!(container(&made.tree()).as_deref(), Some("lxc"));
        assert_eq!(container(&MadeTree::new().tree()), None);
    }

    #[test]
    fn steal_is_a_share_of_all_time() {
        let share = steal("cpu  100 0 100 700 50 0 0 50 90 0\ncpu0 1 1 1 1 1 1 1 1\n").unwrap();
        assert!((share - 0.05).abs() < 1e-12, "{share}");
        assert_eq!(steal("cpu  1 2 3\n"), None);
    }
}
