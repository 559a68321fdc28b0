//! Memory and CPU time of the server's processes, from `/proc/PID/smaps_rollup` and
//! `/proc/PID/schedstat`. Every five seconds, or more seldom where reading the memory takes long.
//!
//! PSS counts a page that several processes map in equal shares, so that sums over processes hold
//! each page once: shared buffers are in the sum, and a backend's own part is `Private` of its
//! rollup. Resident memory (RSS) would count shared buffers once for each backend. pgdyno's own
//! connections count among the other processes.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pgdyno_model::telemetry::{Column, Kind};
use rustix::io::Errno;

use super::context::TelemetryContext;
use super::probe::{Probe, ProbeError, ProbeResult, column, float, read};
use super::session::{Query, TelemetrySession};

/// Shortest time between two samples.
const INTERVAL: Duration = Duration::from_secs(5);
/// Time between two samples for each second that reading the memory takes: a rollup walks the page
/// tables of a process, under a lock that its page faults need. 16 backends that map shared buffers
/// of 8 GB take more than a second.
const PAUSE: u32 = 100;
/// Most backends whose memory a sample reads. Beyond it, an evenly spread part of them stands for
/// all.
const MOST: usize = 128;
const PROC: &str = "/proc";

/// Processes of the server: pid, and whether it is a backend of database `$1`. Who may not read all
/// statistics sees no type of others' backends.
const PROCESSES: &str = "SELECT pid, \
        COALESCE(datid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = $1), false) \
        AND application_name IS DISTINCT FROM 'pgdyno control' \
        AND COALESCE(backend_type IN ('client backend', 'parallel worker'), true) \
    FROM pg_catalog.pg_stat_get_activity(NULL) ORDER BY pid";

struct Processes {
    session: TelemetrySession,
    processes: Query,
    loaded: String,
    data: PathBuf,
    columns: Vec<Column>,
    cpu: CpuTotals,
    /// For how long the last sample read memory.
    took: Duration,
}

pub(super) fn make(context: &TelemetryContext) -> ProbeResult {
    let data = context.server.data.clone().ok_or(ProbeError::UnknownData)?;
    let data = data.canonicalize().unwrap_or(data);
    let session = context.session()?.clone();
    let processes = session.prepare(PROCESSES)?;
    let columns = [
        ("backends", "count", Kind::Gauge),
        ("backends_pss", "bytes", Kind::Gauge),
        ("backends_private", "bytes", Kind::Gauge),
        ("backend_pss", "bytes", Kind::Gauge),
        ("backend_private", "bytes", Kind::Gauge),
        ("others_pss", "bytes", Kind::Gauge),
        ("backends_cpu", "s", Kind::Counter),
        ("others_cpu", "s", Kind::Counter),
    ];
    Ok(Some(Box::new(Processes {
        session,
        processes,
        loaded: context.server.loaded.database.clone(),
        data,
        columns: columns.map(|(name, unit, kind)| column(name, unit, kind)).into(),
        cpu: CpuTotals::default(),
        took: Duration::ZERO,
    })))
}

impl Probe for Processes {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        let rows = self.session.rows(&mut self.processes, &[&self.loaded])?;
        let (mut backends, mut others) = (Vec::new(), Vec::new());
        for row in rows {
            let (pid, is_backend): (i32, bool) = (row.try_get(0)?, row.try_get(1)?);
            if !works_in(Path::new(PROC), pid, &self.data) {
                continue;
            }
            if is_backend { &mut backends } else { &mut others }.push(pid);
        }
        // The postmaster, which is no session, is named in the first line of its lock file.
        let lock_file = std::fs::read_to_string(self.data.join("postmaster.pid")).ok();
        others.extend(lock_file.and_then(|text| text.lines().next()?.trim().parse::<i32>().ok()));
        if others.is_empty() && backends.is_empty() {
            let what = "process of this server";
            return Err(ProbeError::NotVisible { what, place: PROC });
        }
        let began = Instant::now();
        let loaded = memory(Path::new(PROC), &backends)?;
        let rest = memory(Path::new(PROC), &others)?;
        self.took = began.elapsed();
        let cpu = self.cpu.add(Path::new(PROC), &backends, &others);
        let count = float(backends.len() as u64);
        let all = |mean: f64| Some(mean * count);
        let each = |mean: f64| (!backends.is_empty()).then_some(mean);
        Ok(vec![
            Some(count),
            all(loaded.pss),
            all(loaded.private),
            each(loaded.pss),
            each(loaded.private),
            Some(rest.pss * float(others.len() as u64)),
            Some(cpu.0),
            Some(cpu.1),
        ])
    }

    fn interval(&self) -> Duration {
        pause(self.took)
    }
}

/// Time from one sample to the next where reading the memory takes `took`.
fn pause(took: Duration) -> Duration {
    INTERVAL.max(took * PAUSE)
}

/// Whether process `pid` works in `data`: in another container its number may be another's.
fn works_in(proc: &Path, pid: i32, data: &Path) -> bool {
    std::fs::read_link(proc.join(format!("{pid}/cwd"))).is_ok_and(|at| at == data)
}

/// Mean memory of a process (bytes).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Memory {
    pss: f64,
    private: f64,
}

/// Returns the mean memory of `pids`, from at most [`MOST`] of them. A process that ended meanwhile
/// is left out.
fn memory(proc: &Path, pids: &[i32]) -> Result<Memory, ProbeError> {
    let step = pids.len().div_ceil(MOST).max(1);
    let (mut sum, mut count) = (Memory::default(), 0_u32);
    for pid in pids.iter().step_by(step) {
        let file = proc.join(format!("{pid}/smaps_rollup"));
        let text = match read(&file) {
            Ok(text) => text,
            Err(_) if !proc.join(pid.to_string()).exists() => continue,
            // The kernel answers ESRCH for a process that is ending.
            Err(ProbeError::Read { cause, .. })
                if cause.raw_os_error() == Some(Errno::SRCH.raw_os_error()) =>
            {
                continue;
            }
            Err(why) => return Err(why),
        };
        let one = rollup(&text).ok_or(ProbeError::Malformed { path: file, wanted: "Pss" })?;
        sum = Memory { pss: sum.pss + one.pss, private: sum.private + one.private };
        count += 1;
    }
    let count = f64::from(count.max(1));
    Ok(Memory { pss: sum.pss / count, private: sum.private / count })
}

/// Reads `Pss`, and the sum of the two `Private` lines (in kB), of a rollup.
fn rollup(text: &str) -> Option<Memory> {
    let line = |name: &str| -> Option<f64> {
        let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        rest.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    let private = line("Private_Clean")? + line("Private_Dirty")?;
    Some(Memory { pss: line("Pss")? * 1024.0, private: private * 1024.0 })
}

/// CPU time of processes that come and go: sums that only grow.
#[derive(Default)]
struct CpuTotals {
    /// Last reading of each process, by pid (seconds).
    last: HashMap<i32, f64>,
    backends: f64,
    others: f64,
}

impl CpuTotals {
    /// Adds the CPU time that `backends` and `others` used since the last call, and returns both
    /// sums (seconds). Time between a process's last reading and its end is missed.
    fn add(&mut self, proc: &Path, backends: &[i32], others: &[i32]) -> (f64, f64) {
        self.backends += self.grown(proc, backends);
        self.others += self.grown(proc, others);
        let there: HashSet<i32> = backends.iter().chain(others).copied().collect();
        self.last.retain(|pid, _| there.contains(pid));
        (self.backends, self.others)
    }

    fn grown(&mut self, proc: &Path, pids: &[i32]) -> f64 {
        let mut sum = 0.0;
        for pid in pids {
            let Some(now) = cpu(proc, *pid) else { continue };
            let before = self.last.insert(*pid, now).unwrap_or(0.0);
            // A new process with the pid of an old one begins again.
            sum += if now >= before { now - before } else { now };
        }
        sum
    }
}

/// Returns the CPU time of process `pid` (seconds): the first number of its schedstat is
/// nanoseconds (Documentation/scheduler/sched-stats.rst).
fn cpu(proc: &Path, pid: i32) -> Option<f64> {
    let text = std::fs::read_to_string(proc.join(format!("{pid}/schedstat"))).ok()?;
    let nanoseconds: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use pgdyno_test_support::wait_for;

    use super::*;

    const ROLLUP: &str = "5581a000-7ffd5000 ---p 00000000 00:00 0    [rollup]\n\
        Rss:               19036 kB\nPss:                4210 kB\nPss_Dirty:          1800 kB\n\
        Shared_Clean:      11000 kB\nPrivate_Clean:       120 kB\nPrivate_Dirty:      1480 kB\n";

    fn process(proc: &Path, pid: i32, rollup: &str, nanoseconds: u64) {
        let folder = proc.join(pid.to_string());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("smaps_rollup"), rollup).unwrap();
        fs::write(folder.join("schedstat"), format!("{nanoseconds} 17 4\n")).unwrap();
    }

    #[test]
    fn a_rollup_has_the_proportional_share_and_the_private_pages() {
        let read = rollup(ROLLUP).unwrap();
        assert_eq!(read, Memory { pss: 4210.0 * 1024.0, private: 1600.0 * 1024.0 });
        assert_eq!(rollup("Rss: 12 kB\n"), None);
    }

    #[test]
    fn the_memory_of_many_is_the_mean_of_an_even_part_of_them() {
        let proc = tempfile::tempdir().unwrap();
        let pids: Vec<i32> = (1..=980).collect();
        for pid in &pids {
            process(proc.path(), *pid, ROLLUP, 1);
        }
        assert_eq!(memory(proc.path(), &pids).unwrap(), rollup(ROLLUP).unwrap());
        assert_eq!(memory(proc.path(), &[]).unwrap(), Memory::default());
        assert_eq!(memory(proc.path(), &[5000]).unwrap(), Memory::default(), "it ended");
        process(proc.path(), 7, "nothing", 1);
        let error = memory(proc.path(), &[7]).unwrap_err();
        assert!(matches!(error, ProbeError::Malformed { wanted: "Pss", .. }), "{error}");
    }

    #[test]
    fn memory_that_takes_long_to_read_is_read_seldom() {
        assert_eq!(pause(Duration::from_millis(20)), INTERVAL);
        assert_eq!(pause(Duration::from_millis(1250)), Duration::from_secs(125));
    }

    #[test]
    fn a_process_that_is_ending_is_left_out_of_the_memory() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let rollup = format!("/proc/{pid}/smaps_rollup");
        let error = wait_for("a zombie", || fs::read_to_string(&rollup).err());
        assert_eq!(error.raw_os_error(), Some(Errno::SRCH.raw_os_error()));
        assert_eq!(memory(Path::new(PROC), &[pid]).unwrap(), Memory::default());
        child.wait().unwrap();
    }

    #[test]
    fn cpu_time_only_grows_when_processes_end_and_pids_return() {
        let proc = tempfile::tempdir().unwrap();
        let mut totals = CpuTotals::default();
        process(proc.path(), 1, ROLLUP, 2_000_000_000);
        process(proc.path(), 2, ROLLUP, 1_000_000_000);
        assert_eq!(totals.add(proc.path(), &[1], &[2]), (2.0, 1.0));
        process(proc.path(), 1, ROLLUP, 3_000_000_000);
        assert_eq!(totals.add(proc.path(), &[1], &[]), (3.0, 1.0));
        process(proc.path(), 1, ROLLUP, 500_000_000);
        assert_eq!(totals.add(proc.path(), &[1], &[]), (3.5, 1.0), "another process");
    }
}
