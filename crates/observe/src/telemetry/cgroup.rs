//! Limits of the server's control group and the throttling they cause, for version 1 and 2
//! (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/).
//!
//! A limit may be on the group itself or on any group above it. Throttling is the sum over all of
//! them, a limit the tightest of them. There is no value where there is no limit.

use std::fs;
use std::path::{Path, PathBuf};

use pgdyno_exec::mountinfo;
use pgdyno_exec::mountinfo::MountEntry;
use pgdyno_model::telemetry::{Column, Kind};

use super::columns::Columns;
use super::probe::{Probe, ProbeError, ProbeResult, float, read};

struct Cgroup {
    hierarchies: Vec<Hierarchy>,
    columns: Columns,
}

/// A mounted hierarchy and its groups that hold the server, the innermost first.
struct Hierarchy {
    groups: Vec<PathBuf>,
    kind: &'static [Source],
}

/// One value of a group.
struct Source {
    column: &'static str,
    unit: &'static str,
    kind: Kind,
    file: &'static str,
    /// The word at the beginning of its line. None if the file holds nothing but the value.
    key: Option<&'static str>,
    /// The factor that converts it to `unit`.
    scale: f64,
    over: Over,
}

/// The groups that a value is computed from.
#[derive(Clone, Copy, PartialEq)]
enum Over {
    /// The group itself.
    Own,
    /// The sum over the group and those above it.
    All,
    /// The smallest over the group and those above it.
    Tightest,
}

impl Source {
    /// Sets the factor that converts the file's unit.
    const fn times(mut self, scale: f64) -> Self {
        self.scale = scale;
        self
    }
}

const fn counter(
    column: &'static str,
    unit: &'static str,
    file: &'static str,
    key: Option<&'static str>,
    over: Over,
) -> Source {
    Source { column, unit, kind: Kind::Counter, file, key, scale: 1.0, over }
}

/// A gauge (bytes).
const fn gauge(
    column: &'static str,
    file: &'static str,
    key: Option<&'static str>,
    over: Over,
) -> Source {
    Source { column, unit: "bytes", kind: Kind::Gauge, file, key, scale: 1.0, over }
}

const V2: &[Source] = &[
    counter("cpu_usage", "s", "cpu.stat", Some("usage_usec"), Over::Own).times(1e-6),
    counter("nr_periods", "count", "cpu.stat", Some("nr_periods"), Over::All),
    counter("nr_throttled", "count", "cpu.stat", Some("nr_throttled"), Over::All),
    counter("throttled", "s", "cpu.stat", Some("throttled_usec"), Over::All).times(1e-6),
    gauge("memory", "memory.current", None, Over::Own),
    gauge("memory_max", "memory.max", None, Over::Tightest),
    counter("memory_high_events", "count", "memory.events", Some("high"), Over::All),
    counter("memory_max_events", "count", "memory.events", Some("max"), Over::All),
    counter("oom_kills", "count", "memory.events", Some("oom_kill"), Over::Own),
    gauge("file_dirty", "memory.stat", Some("file_dirty"), Over::Own),
    gauge("file_writeback", "memory.stat", Some("file_writeback"), Over::Own),
    counter("pgscan", "pages", "memory.stat", Some("pgscan"), Over::Own),
    counter("pgsteal", "pages", "memory.stat", Some("pgsteal"), Over::Own),
    counter("pressure_cpu_some", "us", "cpu.pressure", Some("some"), Over::Own),
    counter("pressure_io_some", "us", "io.pressure", Some("some"), Over::Own),
    counter("pressure_memory_some", "us", "memory.pressure", Some("some"), Over::Own),
];

const V1: &[Source] = &[
    counter("cpu_usage", "s", "cpuacct.usage", None, Over::Own).times(1e-9),
    counter("nr_periods", "count", "cpu.stat", Some("nr_periods"), Over::All),
    counter("nr_throttled", "count", "cpu.stat", Some("nr_throttled"), Over::All),
    counter("throttled", "s", "cpu.stat", Some("throttled_time"), Over::All).times(1e-9),
    gauge("memory", "memory.usage_in_bytes", None, Over::Own),
    gauge("memory_max", "memory.limit_in_bytes", None, Over::Tightest),
    counter("memory_max_events", "count", "memory.failcnt", None, Over::All),
    counter("oom_kills", "count", "memory.oom_control", Some("oom_kill"), Over::Own),
    counter("io_serviced", "count", "blkio.throttle.io_serviced", Some("Total"), Over::Own),
    counter("io_bytes", "bytes", "blkio.throttle.io_service_bytes", Some("Total"), Over::Own),
];

pub(super) fn make(data: Option<&Path>) -> ProbeResult {
    let process = match data {
        Some(data) => postmaster(data).unwrap_or_else(|| "self".to_owned()),
        None => return Err(ProbeError::UnknownData),
    };
    let membership = read(format!("/proc/{process}/cgroup"))?;
    let hierarchies = hierarchies(&membership, &read("/proc/self/mountinfo")?);
    if hierarchies.is_empty() {
        let what = "control group of the server";
        return Err(ProbeError::NotVisible { what, place: "/proc/self/mountinfo" });
    }
    Ok(Some(Box::new(Cgroup { hierarchies, columns: Columns::default() })))
}

/// Reads the postmaster's pid from its lock file.
fn postmaster(data: &Path) -> Option<String> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let pid: u32 = text.lines().next()?.trim().parse().ok()?;
    Path::new(&format!("/proc/{pid}")).exists().then(|| pid.to_string())
}

/// Returns the hierarchies in which `/proc/PID/cgroup` names groups.
fn hierarchies(membership: &str, mounts: &str) -> Vec<Hierarchy> {
    let mut out = Vec::new();
    for MountEntry { root, point, filesystem, super_options, .. } in mountinfo::parse(mounts) {
        // A membership line is `number:controllers:group`; version 2 has the number 0 and no
        // controllers.
        let group = membership.lines().find_map(|m| {
            let mut fields = m.splitn(3, ':');
            let (number, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
            let ours = match filesystem.as_str() {
                "cgroup2" => number == "0" && controllers.is_empty(),
                "cgroup" => {
                    !controllers.is_empty()
                        && controllers.split(',').all(|c| super_options.iter().any(|o| o == c))
                }
                _ => false,
            };
            ours.then_some(group)
        });
        let Some(group) = group else { continue };
        // In a container the mount shows only the part below its root.
        let below = Path::new(group).strip_prefix(&root).unwrap_or(Path::new(group));
        let own = point.join(below.strip_prefix("/").unwrap_or(below));
        let own = if own.exists() { own } else { point.clone() };
        let groups =
            own.ancestors().take_while(|g| g.starts_with(&point)).map(Path::to_owned).collect();
        out.push(Hierarchy { groups, kind: if filesystem == "cgroup2" { V2 } else { V1 } });
    }
    out
}

impl Probe for Cgroup {
    fn columns(&self) -> &[Column] {
        self.columns.all()
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        let mut row = self.columns.row();
        for hierarchy in &self.hierarchies {
            for source in hierarchy.kind {
                if let Some(value) = hierarchy.value(source) {
                    row.set(source.column, source.unit, source.kind, value * source.scale);
                }
            }
            for (column, unit, value) in hierarchy.cpu_max().into_iter().chain(hierarchy.io()) {
                let kind = if column == "cpu_max" { Kind::Gauge } else { Kind::Counter };
                row.set(&column, unit, kind, value);
            }
        }
        Ok(row.values())
    }
}

impl Hierarchy {
    fn value(&self, source: &Source) -> Option<f64> {
        let groups =
            if source.over == Over::Own { self.groups.get(..1)? } else { self.groups.as_slice() };
        let values = groups
            .iter()
            .filter_map(|g| value(&fs::read_to_string(g.join(source.file)).ok()?, source.key));
        if source.over == Over::Tightest {
            values.reduce(f64::min)
        } else {
            values.reduce(|a, b| a + b)
        }
    }

    /// Returns the tightest CPU limit (cores).
    fn cpu_max(&self) -> Option<(String, &'static str, f64)> {
        let number =
            |path: PathBuf| -> Option<f64> { fs::read_to_string(path).ok()?.trim().parse().ok() };
        let limit = |group: &PathBuf| -> Option<f64> {
            if let Ok(text) = fs::read_to_string(group.join("cpu.max")) {
                let (quota, period) = text.trim().split_once(' ')?;
                return Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?);
            }
            let quota = number(group.join("cpu.cfs_quota_us")).filter(|quota| *quota > 0.0)?;
            Some(quota / number(group.join("cpu.cfs_period_us"))?)
        };
        let limit = self.groups.iter().filter_map(limit).reduce(f64::min)?;
        Some(("cpu_max".to_owned(), "cores", limit))
    }

    /// Parses version 2's traffic by device: `8:0 rbytes=1 wbytes=2 rios=3 wios=4 …`.
    fn io(&self) -> Vec<(String, &'static str, f64)> {
        let Some(text) =
            self.groups.first().and_then(|g| fs::read_to_string(g.join("io.stat")).ok())
        else {
            return Vec::new();
        };
        let of_line = |line: &str| -> Option<Vec<(String, &'static str, f64)>> {
            let (device, fields) = line.split_once(' ')?;
            let link = fs::read_link(Path::new("/sys/dev/block").join(device)).ok()?;
            let device = link.file_name()?.to_str()?.to_owned();
            let pairs = fields.split_whitespace().filter_map(|pair| pair.split_once('='));
            let known = pairs.filter_map(|(name, value)| {
                let unit = if name.ends_with("bytes") { "bytes" } else { "count" };
                Some((format!("{device}.{name}"), unit, value.parse().ok()?))
            });
            Some(known.collect())
        };
        text.lines().filter_map(of_line).flatten().collect()
    }
}

/// Parses the number after `key`, or of the whole file. None for `max`, and for 2^63, which stands
/// for it in version 1.
fn value(text: &str, key: Option<&str>) -> Option<f64> {
    const NO_LIMIT: f64 = 9e18;
    let number = match key {
        None => text.trim().parse().ok().map(float)?,
        Some("some") => float(super::pressure::total(text, "some")?),
        Some(key) => {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
            float(line.trim().parse().ok()?)
        }
    };
    (number < NO_LIMIT).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group with a limit below one without, and above it one with another.
    fn tree() -> (tempfile::TempDir, Hierarchy) {
        let root = tempfile::tempdir().unwrap();
        let outer = root.path().join("outer");
        let inner = outer.join("inner");
        fs::create_dir_all(&inner).unwrap();
        for (group, max, throttled) in [(&outer, "50000 100000", 3), (&inner, "max 100000", 4)] {
            fs::write(group.join("cpu.max"), max).unwrap();
            let stat = format!(
                "usage_usec 2500000\nnr_periods 9\nnr_throttled {throttled}\nthrottled_usec 1000\n"
            );
            fs::write(group.join("cpu.stat"), stat).unwrap();
        }
        fs::write(outer.join("memory.max"), "1048576\n").unwrap();
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        let hierarchy = Hierarchy { groups: vec![inner, outer, root.path().to_owned()], kind: V2 };
        (root, hierarchy)
    }

    #[test]
    fn limits_and_throttling_of_groups_above_count_too() {
        let (_root, hierarchy) = tree();
        let mut probe = Cgroup { hierarchies: vec![hierarchy], columns: Columns::default() };
        let values = probe.sample().unwrap();
        let of = |name: &str| {
            let place = probe.columns().iter().position(|c| c.name == name);
            place.and_then(|place| values[place])
        };
        assert_eq!(of("nr_throttled"), Some(7.0));
        assert_eq!(of("cpu_usage"), Some(2.5));
        assert_eq!(of("cpu_max"), Some(0.5));
        assert_eq!(of("memory_max"), Some(1_048_576.0));
    }

    #[test]
    fn a_process_is_found_in_every_hierarchy_that_is_mounted() {
        let membership = "4:memory:/a/b\n2:cpu,cpuacct:/\n0::/unified/c\n";
        let mountinfo = "34 31 0:31 / /cg/cpu rw,relatime shared:1 - cgroup cgroup rw,cpu,cpuacct\n\
            35 31 0:33 /a /cg/memory rw,relatime - cgroup cgroup rw,memory\n\
            36 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n\
            37 31 0:39 / /x rw - ext4 /dev/vda rw\n";
        let found = hierarchies(membership, mountinfo);
        assert_eq!(found.len(), 3);
        // Nothing of this exists here: each falls back to what its mount shows.
        assert!(
            found.iter().all(|h| h.groups.len() == 1),
            "groups that are not there are not asked"
        );
        assert_eq!(value("9223372036854771712\n", None), None);
        assert_eq!(value("max\n", None), None);
        assert_eq!(value("high 2\nmax 7\n", Some("max")), Some(7.0));
    }
}
