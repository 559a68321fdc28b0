//! Sentences on the conditions of a measurement.

use pgdyno_audit::{
    Asked, CheckpointCycle, CountedOut, Course, DesignKind, Difference, LoadKind, Lost, MachineUse,
};
use pgdyno_text::format;

use super::{exact, rounded};

pub(super) fn message(kind: &DesignKind, is_right: bool) -> String {
    match kind {
        DesignKind::OtherThanAsked { asked, reported, command_line } => format!(
            "the command above (line {command_line}) asks for {}, and the report is of {}: which \
             of \
             them was measured is not known",
            parameter(asked),
            parameter(reported)
        ),
        DesignKind::AsAsked { compared } => {
            let compared = compared.iter().map(parameter).collect::<Vec<_>>().join(", ");
            format!("the report is of what its command asks for: {compared}")
        }
        DesignKind::Rate { rate, tps, percent } => {
            let missed = ": the rate was not reached, so that latency grows with the run's length, \
                          from when transactions were due";
            let outcome = if is_right { "" } else { missed };
            let (tps, rate, percent) = (exact(*tps), exact(*rate), rounded(*percent));
            format!("{tps} tps of a rate of {rate} are {percent}%{outcome}")
        }
        DesignKind::FewBranches { scale, clients, runs } => few_branches(*scale, *clients, *runs),
        DesignKind::EnoughBranches { runs } => {
            format!("runs of TPC-B with a scale of their clients or more: {runs}")
        }
        DesignKind::UnequalRuns { differences: all } => format!(
            "two runs of one load that follow each other differ in {}: what is compared is not all \
             that differs",
            differences(all)
        ),
        DesignKind::EqualRuns { runs, .. } => {
            format!("{runs} runs do not differ in duration, scale, clients, query mode or version")
        }
        DesignKind::ReadOnly { storages, scale, data_mb, memory_mb, memory_line } => {
            let words = format!(
                "about {} MB of data (scale {scale}), shared_buffers of {} MB (line {memory_line})",
                rounded(*data_mb),
                exact(*memory_mb)
            );
            read_only(&storages.join(", "), &words, is_right)
        }
        DesignKind::Layout { filesystem } if is_right => {
            format!("how {filesystem} was made or mounted is told")
        }
        DesignKind::Layout { filesystem } => format!(
            "the properties of ZFS are shown, and of {filesystem} neither its devices nor mkfs and \
             mount options: nobody can tell whether both had the same devices"
        ),
        DesignKind::Progress { course, stretches, median_tps, lowest_tps, .. } => {
            progress(*course, *stretches, *median_tps, *lowest_tps)
        }
        DesignKind::Failures { lost, failed, of, percent } => {
            failures(*lost, *failed, *of, (!is_right).then_some(*percent))
        }
        DesignKind::CheckpointCycle(cycle) => checkpoint_cycle(cycle, is_right),
        DesignKind::CountedOut(count) => counted_out(count),
        DesignKind::GeneratorThreads { tps_per_thread, clients_per_thread, threads } => {
            generator_threads(*tps_per_thread, *clients_per_thread, *threads, is_right)
        }
        DesignKind::IdleCpu { idle_percent } => {
            let busy = ": the limit may have been the processor, not the storage";
            format!("{idle_percent}% of CPU were idle{}", if is_right { "" } else { busy })
        }
        DesignKind::Machine(machine) => machine_use(machine),
    }
}

/// Renders a parameter that a command asks for or that a report has.
pub(super) fn parameter(asked: &Asked) -> String {
    match asked {
        Asked::Clients(clients) => format::counted(*clients as u64, "client"),
        Asked::Threads(threads) => format::counted(*threads as u64, "thread"),
        Asked::Seconds(seconds) => format!("{} s", exact(*seconds)),
        Asked::Transactions(each) => {
            format!("{} per client", format::counted(*each as u64, "transaction"))
        }
        Asked::QueryMode(mode) => format!("query mode {mode}"),
        Asked::Load(LoadKind::TpcB) => "TPC-B".to_owned(),
        Asked::Load(LoadKind::SimpleUpdate) => "simple update".to_owned(),
        Asked::Load(LoadKind::SelectOnly) => "select only".to_owned(),
        Asked::Load(LoadKind::File) => "a script of its own".to_owned(),
        Asked::Load(LoadKind::Several) => "several scripts".to_owned(),
        Asked::Rate(true) => "a rate".to_owned(),
        Asked::Rate(false) => "no rate".to_owned(),
    }
}

/// Renders the differences of two runs: `scale (100 and 500), query mode (simple and prepared)`.
pub(super) fn differences(all: &[Difference]) -> String {
    let words = all.iter().map(|difference| match difference {
        Difference::Duration(a, b) => format!("duration ({a} and {b} s)"),
        Difference::Scale(a, b) => format!("scale ({a} and {b})"),
        Difference::Clients(a, b) => format!("clients ({a} and {b})"),
        Difference::QueryMode(a, b) => format!("query mode ({a} and {b})"),
        Difference::Version(a, b) => format!("version ({a} and {b})"),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn few_branches(scale: f64, clients: f64, runs: usize) -> String {
    let branches = match scale {
        1.0 => "1 branch, which".to_owned(),
        scale => format!("{scale} branches, one of which"),
    };
    let runs = if runs == 1 { String::new() } else { format!(" ({runs} such runs)") };
    format!(
        "scale {scale} has {branches} each transaction of TPC-B updates: {clients} clients wait \
         for \
         each other's row locks, so locks are measured more than storage or settings{runs}"
    )
}

fn read_only(storages: &str, words: &str, is_right: bool) -> String {
    if is_right {
        return format!("read-only runs read more than fits: {words}");
    }
    format!(
        "read-only runs compare {storages}, with {words}: what fits is read from memory, so no \
         storage is compared"
    )
}

fn progress(course: Course, stretches: usize, median_tps: f64, lowest_tps: f64) -> String {
    let words = match course {
        Course::Steady => return format!("{stretches} stretches of progress are steady"),
        Course::Collapsed { stretches: low } => format!(
            "{low} of {stretches} stretches are below half the median: {} of {} tps",
            exact(lowest_tps),
            exact(median_tps)
        ),
        Course::Falling { first, last } => {
            format!("tps falls all along, {} to {} tps", exact(first), exact(last))
        }
        Course::Rising { first, last } => {
            format!("tps rises all along, {} to {} tps", exact(first), exact(last))
        }
        Course::Swinging { low, high } => {
            format!("tps swings between {} and {}", exact(low), exact(high))
        }
    };
    format!(
        "{words}: the run is not one steady thing, so its mean depends on when it began and ended"
    )
}

/// Renders failures; those that are too many by their percentage.
fn failures(lost: Lost, failed: f64, of: f64, too_many: Option<f64>) -> String {
    let lost = match lost {
        Lost::Clients => "clients were aborted",
        Lost::Transactions => "transactions failed",
        Lost::IgnoredErrors => "transactions failed with errors that were ignored",
    };
    match too_many {
        None => format!("{failed} of {of} {lost}"),
        Some(percent) => format!(
            "{} of {} {lost} ({}%): what is left of the load is measured, and not the one that was \
             asked for",
            exact(failed),
            exact(of),
            rounded(percent)
        ),
    }
}

/// `a checkpoint cycle, 300 s by default`, or the setting and its line.
fn timeout(seconds: f64, line: Option<usize>) -> String {
    match line {
        Some(line) => format!("checkpoint_timeout, {} s (line {line})", exact(seconds)),
        None => format!("a checkpoint cycle, {seconds} s by default"),
    }
}

fn checkpoint_cycle(cycle: &CheckpointCycle, is_right: bool) -> String {
    let length = rounded(cycle.seconds);
    let loads = match cycle.loads {
        1 => format!("{length} s of load are"),
        n => format!("{n} times {length} s of load are each"),
    };
    let timeout = timeout(cycle.checkpoint_timeout_s, cycle.timeout_line);
    if is_right {
        return format!("{loads} {} times {timeout}", exact(cycle.cycles));
    }
    let figures = match cycle.writes {
        None => "if the script writes, its figures",
        Some(_) => "the figures",
    };
    format!(
        "{loads} less than {timeout}: {figures} may hold no checkpoint, which is when storage has \
         most to do"
    )
}

fn counted_out(count: &CountedOut) -> String {
    format!(
        "{} transactions take {} to {} s at the table's tps, less than {}: most figures may hold \
         no \
         checkpoint, and fast rows fewer than slow ones",
        count.transactions,
        rounded(count.shortest_s),
        rounded(count.longest_s),
        timeout(count.checkpoint_timeout_s, count.timeout_line)
    )
}

fn generator_threads(tps: f64, clients: f64, threads: f64, is_right: bool) -> String {
    let of = match threads > 1.0 {
        true => format!("each of {threads} threads"),
        false => "the one thread".to_owned(),
    };
    let busy = ": the load generator may have been the limit; more threads (-j) would show it";
    let outcome = if is_right { "" } else { busy };
    let (tps, clients) = (rounded(tps), exact(clients));
    format!("{tps} tps for {of} of pgbench, {clients} clients a thread{outcome}")
}

/// `the busiest device, sda, was 45.2% utilised while …`
pub(crate) fn machine_use(machine: &MachineUse) -> String {
    let device = match machine.device.as_str() {
        "" => String::new(),
        device => format!(", {device},"),
    };
    let idle = ": the disk was not under test, and a utilisation below 100% does not say that it \
                is good";
    let tenths = |percent: f64| exact((percent * 10.0).round() / 10.0);
    format!(
        "the busiest device{device} was {}% utilised while processors were at work for {}% of the \
         time{}",
        tenths(machine.utilised_percent),
        tenths(machine.cpu_percent),
        if machine.is_device_idle() { idle } else { "" }
    )
}
