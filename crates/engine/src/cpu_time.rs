//! CPU time that the load generator used.

/// Returns the CPU time of this process, user and system (seconds).
pub fn process_cpu_seconds() -> f64 {
    seconds_of(rustix::time::ClockId::ProcessCPUTime)
}

/// Returns the CPU time of the calling thread, user and system (seconds).
pub(crate) fn thread_cpu_seconds() -> f64 {
    seconds_of(rustix::time::ClockId::ThreadCPUTime)
}

fn seconds_of(clock: rustix::time::ClockId) -> f64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
