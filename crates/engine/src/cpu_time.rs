//! CPU time that the load generator used, and how much it may use.

use pgdyno_exec::cgroup::own_cpu_quota;

/// Returns the CPU time of this process, user and system (seconds).
pub(crate) fn process_cpu_seconds() -> f64 {
    seconds_of(rustix::time::ClockId::ProcessCPUTime)
}

/// Returns the CPU time of the calling thread, user and system (seconds).
pub(crate) fn thread_cpu_seconds() -> f64 {
    seconds_of(rustix::time::ClockId::ThreadCPUTime)
}

/// Returns the CPUs' worth of time that this process may use (count): the CPUs of its affinity, or
/// less where its control group says so. None where the kernel does not tell.
pub(crate) fn cpus_allowed() -> Option<f64> {
    let affinity = f64::from(rustix::thread::sched_getaffinity(None).ok()?.count());
    Some(own_cpu_quota().map_or(affinity, |quota| quota.min(affinity)))
}

#[allow(clippy::cast_precision_loss)]
fn seconds_of(clock: rustix::time::ClockId) -> f64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
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
