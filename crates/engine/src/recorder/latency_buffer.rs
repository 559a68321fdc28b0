//! Latency distributions of one thread, filled in batches.
//!
//! A latency is first pushed to a short list. A full list is counted at once: by the time that a
//! server process has run, the counts have left the processor's caches. Counting one latency would
//! wait for memory; counting many in a row lets the processor fetch several places at a time.

use pgdyno_model::{Latencies, LatencyCounts};

use crate::program::Program;

/// Latencies that are kept before they are counted.
const CAPACITY: usize = 512;

/// Latency distributions: one for the current second, one for each statement that keeps one.
pub(super) struct LatencyBuffer {
    counts: Vec<LatencyCounts>,
    /// By script: index of its first statement's distribution, and how many statements have one.
    statements: Vec<(u32, usize)>,
    /// Distribution's index and latency (nanoseconds), not counted yet.
    pending: Vec<(u32, u64)>,
}

impl LatencyBuffer {
    /// Index of the distribution of the current second's transactions.
    const SECOND: u32 = 0;

    /// Creates empty distributions for `program`.
    pub(super) fn new(program: &Program) -> Self {
        let mut next = Self::SECOND + 1;
        let mut statements = Vec::new();
        for script in &program.scripts {
            statements.push((next, script.distributions));
            next += script.distributions as u32;
        }
        let counts = (0..next).map(|_| LatencyCounts::new()).collect();
        Self { counts, statements, pending: Vec::with_capacity(CAPACITY) }
    }

    #[inline]
    fn push(&mut self, index: u32, latency: u64) {
        if self.pending.len() == CAPACITY {
            self.flush();
        }
        self.pending.push((index, latency));
    }

    /// Adds a transaction's latency (nanoseconds) to the current second.
    #[inline]
    pub(super) fn push_transaction(&mut self, latency: u64) {
        self.push(Self::SECOND, latency);
    }

    /// Adds a statement's latency (nanoseconds), if the statement keeps a distribution.
    #[inline]
    pub(super) fn push_statement(&mut self, script: usize, statement: usize, latency: u64) {
        let (first, kept) = self.statements[script];
        if statement < kept {
            self.push(first + statement as u32, latency);
        }
    }

    #[cold]
    fn flush(&mut self) {
        for (index, latency) in self.pending.drain(..) {
            self.counts[index as usize].record(latency);
        }
    }

    fn drain_into(&mut self, index: u32, sum: &mut Latencies) {
        self.flush();
        self.counts[index as usize].drain_into(sum);
    }

    /// Moves the current second's distribution out.
    pub(super) fn take_second(&mut self) -> Latencies {
        let mut latency = Latencies::new();
        self.drain_into(Self::SECOND, &mut latency);
        latency
    }

    /// Moves the distributions of `script`'s statements into `sums`, in order.
    pub(super) fn drain_statements<'a>(
        &mut self,
        script: usize,
        sums: impl Iterator<Item = &'a mut Latencies>,
    ) {
        for (index, sum) in (self.statements[script].0..).zip(sums) {
            self.drain_into(index, sum);
        }
    }
}
