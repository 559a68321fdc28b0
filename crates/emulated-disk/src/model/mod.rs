//! The disk itself, without FUSE: contents, durable contents, and faults.

use std::io;

use pgdyno_exec::monotonic::MonotonicTime;

use super::cache::{Cache, Cached, Data};
use super::disk_log::{LogWriter, Record};
use super::medium::Medium;
use super::page::{PAGE_SIZE, tears};
use super::pieces::index;
use super::published::{FlushNumbers, Published};
use super::rule::{Cut, DiskError, Effect, Hits, Operation, Rule, TearUnit};
use super::status::{CutFacts, DiskCounters, DiskStatus, FlushFacts, FlushSpan, RuleState};

struct Armed {
    rule: Rule,
    state: RuleState,
}

/// The disk. A request that fails returns its error number.
pub(super) struct Disk<M> {
    medium: M,
    size: u64,
    /// The size of the cache (bytes). Beyond it, the oldest writes go to the medium.
    bound: u64,
    cache: Cache,
    powered: bool,
    lying: bool,
    cut: Option<CutFacts>,
    rules: Vec<Armed>,
    next_rule: u64,
    counters: DiskCounters,
    /// The counters at the beginning of the baseline.
    baseline: DiskCounters,
    flushes: FlushFacts,
    random: fastrand::Rng,
    /// The number of the newest event: a write, a discard, a flush, a loss at a cut.
    events: u64,
    log: Option<LogWriter>,
    /// Where other processes read [`Self::events`].
    position: Option<Published>,
    flush_numbers: FlushNumbers,
}

/// A flush that was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlushRequest {
    /// When the flush was requested.
    pub(super) began: MonotonicTime,
    /// Number of the newest event at that time.
    pub(super) covers: u64,
    /// Number among the requested flushes, from 1.
    pub(super) number: u64,
}

type Answer = Result<(), DiskError>;

impl<M: Medium> Disk<M> {
    pub(super) fn new(medium: M, size: u64, bound: u64, seed: u64, log: Option<LogWriter>) -> Self {
        Self {
            medium,
            size,
            bound,
            cache: Cache::default(),
            powered: true,
            lying: false,
            cut: None,
            rules: Vec::new(),
            next_rule: 1,
            counters: DiskCounters::default(),
            baseline: DiskCounters::default(),
            flushes: FlushFacts::default(),
            random: fastrand::Rng::with_seed(seed),
            events: 0,
            log,
            position: None,
            flush_numbers: FlushNumbers::default(),
        }
    }

    pub(super) fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Answer {
        let length = self.within(offset, buffer.len() as u64)?;
        match self.verdict(Operation::Read, offset, length, None) {
            Some((_, Effect::Fail(error))) => return self.fail(error),
            Some((rule, Effect::Cut(cut))) => return self.lose_power(&cut, Some(rule)),
            _ => {}
        }
        self.medium.read_at(offset, buffer).map_err(|e| broken(&e))?;
        self.cache.overlay(offset, buffer);
        self.counters.reads += 1;
        self.counters.read_bytes += length;
        Ok(())
    }

    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> Answer {
        let length = self.within(offset, data.len() as u64)?;
        let verdict = self.verdict(Operation::Write, offset, length, Some(data));
        match verdict {
            Some((_, Effect::Fail(error))) => return self.fail(error),
            Some((_, Effect::Lie)) => {
                self.counters.lies += 1;
                return Ok(());
            }
            _ => {}
        }
        self.counters.writes += 1;
        self.counters.written_bytes += length;
        let mut write = Cached { sequence: self.number(), offset, data: Data::Bytes(data.into()) };
        if let Some((rule, Effect::Tear(unit) | Effect::TearAndCut(unit, _))) = verdict {
            write = self.torn(rule, &write, unit);
        }
        self.log(&Record::Write(&write))?;
        if let Some((rule, Effect::TearAndCut(_, cut))) = verdict {
            // What was cached before may be older at the same place; it loses to this one.
            let lost = self.lose_power(&cut, Some(rule));
            write.apply(&mut self.medium).map_err(|e| broken(&e))?;
            if let Some(facts) = &mut self.cut {
                facts.torn = true;
            }
            return lost;
        }
        self.cache.put(write);
        if let Some((rule, Effect::Cut(cut))) = verdict {
            return self.lose_power(&cut, Some(rule));
        }
        self.bound_cache()
    }

    pub(super) fn discard(&mut self, offset: u64, length: u64) -> Answer {
        let length = self.within(offset, length)?;
        self.counters.writes += 1;
        self.counters.discards += 1;
        let write = Cached { sequence: self.number(), offset, data: Data::Zeros(length) };
        self.log(&Record::Write(&write))?;
        self.cache.put(write);
        self.bound_cache()
    }

    /// Numbers a flush whose request arrived at `began`.
    pub(super) fn begin_flush(&mut self, began: MonotonicTime) -> Result<FlushRequest, DiskError> {
        let number = self.flush_numbers.begin().map_err(|e| broken(&e))?;
        Ok(FlushRequest { began, covers: self.events, number })
    }

    /// Flushes the cache.
    pub(super) fn flush(&mut self, request: FlushRequest) -> Answer {
        let FlushRequest { began, covers, number } = request;
        self.within(0, 0)?;
        let verdict = self.verdict(Operation::Flush, 0, 0, None);
        match verdict {
            Some((_, Effect::Fail(error))) => return self.fail(error),
            Some((rule, Effect::Cut(cut))) => return self.lose_power(&cut, Some(rule)),
            _ => {}
        }
        if self.lying || matches!(verdict, Some((_, Effect::Lie))) {
            self.counters.lies += 1;
            self.log_flush(covers, false)?;
            self.acknowledge(began, false);
            return Ok(());
        }
        self.log_flush(covers, true)?;
        self.cache.destage_all(&mut self.medium).map_err(|e| broken(&e))?;
        self.counters.flushes += 1;
        self.flush_numbers.complete(number).map_err(|e| broken(&e))?;
        self.acknowledge(began, true);
        Ok(())
    }

    /// The answer is sent once the caller lets go of the disk.
    fn acknowledge(&mut self, began: MonotonicTime, is_done: bool) {
        self.counters.acknowledged_flushes += 1;
        self.flushes.record(FlushSpan { began, completed: MonotonicTime::now() }, is_done);
    }

    /// Cuts the power.
    pub(super) fn cut(&mut self, cut: &Cut) {
        if self.powered {
            let _ = self.lose_power(cut, None);
        }
    }

    /// Serves the durable bytes again. Disarms all rules, and ends lying.
    pub(super) fn power_on(&mut self) {
        self.powered = true;
        self.lying = false;
        self.rules.clear();
    }

    /// Makes all writes durable, even if the disk lies, and begins a new baseline.
    pub(super) fn begin_baseline(&mut self) -> io::Result<()> {
        self.cache.destage_all(&mut self.medium)?;
        self.baseline = self.counters;
        self.flushes.longest_ns = 0;
        Ok(())
    }

    pub(super) fn seed(&mut self, seed: u64) {
        self.random = fastrand::Rng::with_seed(seed);
    }

    pub(super) fn lie(&mut self, on: bool) {
        self.lying = on;
    }

    pub(super) fn arm(&mut self, rule: Rule) -> u64 {
        let id = self.next_rule;
        self.next_rule += 1;
        self.rules.push(Armed { rule, state: RuleState { id, selected: 0, hit: 0 } });
        id
    }

    pub(super) fn disarm(&mut self, id: u64) {
        self.rules.retain(|armed| armed.state.id != id);
    }

    pub(super) fn is_powered(&self) -> bool {
        self.powered
    }

    /// Publishes flushes in `file` from now on; none: nowhere.
    pub(super) fn publish_flushes(&mut self, file: Option<Published>) -> io::Result<()> {
        self.flush_numbers.publish(file)
    }

    /// Writes the buffered log to its file.
    pub(super) fn sync_log(&mut self) -> io::Result<()> {
        self.log.as_mut().map_or(Ok(()), LogWriter::sync)
    }

    /// Makes all writes durable and begins the log that `begin` creates, together with the file
    /// that tells its position.
    pub(super) fn begin_log(
        &mut self,
        begin: impl FnOnce(&mut M) -> io::Result<(LogWriter, Published)>,
    ) -> io::Result<()> {
        if self.log.is_some() {
            return Err(io::Error::other("it keeps a log already"));
        }
        self.cache.destage_all(&mut self.medium)?;
        let (log, position) = begin(&mut self.medium)?;
        position.store(0, self.events)?;
        (self.log, self.position) = (Some(log), Some(position));
        Ok(())
    }

    /// Ends the log and lets `replace` put other contents in place of the medium's. The disk has no
    /// power meanwhile, so that nobody sees it.
    pub(super) fn replace_contents(
        &mut self,
        replace: impl FnOnce(&mut M) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.powered {
            return Err(io::Error::other("it has power: cut that first"));
        }
        self.sync_log()?;
        (self.log, self.position) = (None, None);
        self.cache.take();
        replace(&mut self.medium)
    }

    pub(super) fn status(&self) -> DiskStatus {
        DiskStatus {
            powered: self.powered,
            lying: self.lying,
            counters: self.counters,
            events: self.events,
            since_baseline: self.counters.since(&self.baseline),
            flushes: self.flushes,
            cached_writes: self.cache.len() as u64,
            cached_bytes: self.cache.cost(),
            cut: self.cut,
            rules: self.rules.iter().map(|armed| armed.state).collect(),
        }
    }

    /// Returns the durable contents.
    #[cfg(test)]
    pub(super) fn medium(&self) -> &M {
        &self.medium
    }

    /// Refuses requests without power, and requests past the end.
    fn within(&self, offset: u64, length: u64) -> Result<u64, DiskError> {
        match offset.checked_add(length) {
            Some(end) if self.powered && end <= self.size => Ok(length),
            _ => Err(DiskError::Eio),
        }
    }

    /// Returns the effect of the first rule that hits the request. Every rule counts it.
    fn verdict(
        &mut self,
        operation: Operation,
        offset: u64,
        length: u64,
        data: Option<&[u8]>,
    ) -> Option<(u64, Effect)> {
        let mut verdict = None;
        let (medium, cache) = (&self.medium, &self.cache);
        for Armed { rule, state } in &mut self.rules {
            let tear = rule.effect.tear();
            let before = || there(medium, rule.effect.beneath(cache), offset, length);
            if !rule.on.takes(operation, offset, length, data, tear, &before)
                || tear.is_some_and(|unit| operation != Operation::Write || length <= unit.bytes())
            {
                continue;
            }
            state.selected += 1;
            let hit = match rule.hits {
                Hits::Nth(n) => state.selected == n,
                Hits::From(n) => state.selected >= n,
                Hits::Chance(share) => self.random.f64() < share,
            };
            if hit && verdict.is_none() {
                state.hit += 1;
                verdict = Some((state.id, rule.effect));
            }
        }
        verdict
    }

    fn fail(&mut self, error: DiskError) -> Answer {
        self.counters.failed += 1;
        Err(error)
    }

    fn lose_power(&mut self, cut: &Cut, rule: Option<u64>) -> Answer {
        let cached = self.cache.take();
        let mut facts = CutFacts {
            at: MonotonicTime::now(),
            flushes: self.flushes,
            since_baseline: DiskCounters::default(),
            at_write: self.counters.writes,
            after_flushes: self.counters.flushes,
            rule,
            survives: cut.survives,
            dropped: 0,
            survived: 0,
            torn: false,
        };
        let newest = cached.len();
        for (n, write) in cached.into_iter().enumerate() {
            let tear =
                cut.tear.filter(|unit| n + 1 == newest && write.data.length() > unit.bytes());
            let kept = if let Some(unit) = tear {
                facts.torn = true;
                self.counters.torn += 1;
                let kept = self.somewhere(&write, unit, &[]);
                Some(Cached { data: write.data.first(kept), ..write.clone() })
            } else if cut.survives > 0.0 && self.random.f64() < cut.survives {
                facts.survived += 1;
                Some(write.clone())
            } else {
                facts.dropped += 1;
                None
            };
            let kept_bytes = kept.as_ref().map_or(0, |k| k.data.length());
            if kept_bytes < write.data.length() {
                let number = self.number();
                let lost = Record::Lost { number, write: write.sequence, kept: kept_bytes };
                let _ = self.log(&lost);
            }
            if let Some(kept) = kept {
                kept.apply(&mut self.medium).map_err(|e| broken(&e))?;
            }
        }
        self.counters.dropped += facts.dropped;
        self.counters.survived += facts.survived;
        facts.since_baseline = self.counters.since(&self.baseline);
        self.cut = Some(facts);
        self.powered = false;
        let _ = self.sync_log();
        Err(DiskError::Eio)
    }

    /// Returns the first part of `write`, torn by rule `id`.
    fn torn(&mut self, id: u64, write: &Cached, unit: TearUnit) -> Cached {
        let rule = self.rules.iter().find(|armed| armed.state.id == id).map(|armed| &armed.rule);
        let places = match (&write.data, rule) {
            (Data::Bytes(bytes), Some(rule)) => {
                let cache = rule.effect.beneath(&self.cache);
                let before = || there(&self.medium, cache, write.offset, write.data.length());
                rule.tears_in(bytes, unit, &before)
            }
            _ => Vec::new(),
        };
        let kept = self.somewhere(write, unit, &places);
        self.counters.torn += 1;
        Cached { data: write.data.first(kept), ..write.clone() }
    }

    /// Draws the length of a torn write (bytes): one of the `places` of a page, or else any number
    /// of units.
    fn somewhere(&mut self, write: &Cached, unit: TearUnit, places: &[Vec<u64>]) -> u64 {
        let units = write.data.length().div_ceil(unit.bytes());
        let anywhere: Vec<u64>;
        let places = match places {
            [] => {
                anywhere = (1..units.max(2)).map(|n| n * unit.bytes()).collect();
                &anywhere
            }
            pages => &pages[self.random.usize(..pages.len())],
        };
        // Every second one at the first place, where most of it is lost.
        let place = if self.random.bool() { 0 } else { self.random.usize(..places.len()) };
        places[place].min(write.data.length())
    }

    /// Writes back the oldest, as a drive does when its cache is full.
    fn bound_cache(&mut self) -> Answer {
        while self.cache.cost() > self.bound {
            if !self.cache.destage_oldest(&mut self.medium).map_err(|e| broken(&e))? {
                break;
            }
            self.counters.destaged += 1;
        }
        Ok(())
    }

    /// Numbers an event.
    fn number(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    fn log_flush(&mut self, covers: u64, is_done: bool) -> Answer {
        let number = self.number();
        self.log(&Record::Flush { number, covers: covers.min(number - 1), is_done })
    }

    /// Records the newest event, and tells other processes of it.
    fn log(&mut self, record: &Record<'_>) -> Answer {
        let Some(log) = &mut self.log else { return Ok(()) };
        let told = self.position.as_ref().map_or(Ok(()), |position| position.store(0, self.events));
        log.append(record).and(told).map_err(|e| broken(&e))
    }
}

impl Effect {
    fn tear(&self) -> Option<TearUnit> {
        match self {
            Self::Tear(unit) | Self::TearAndCut(unit, _) => Some(*unit),
            Self::Fail(_) | Self::Cut(_) | Self::Lie => None,
        }
    }

    /// Returns the cached contents after a write with this effect; none if a cut loses the cache.
    fn beneath<'a>(&self, cache: &'a Cache) -> Option<&'a Cache> {
        (!matches!(self, Self::TearAndCut(..))).then_some(cache)
    }
}

impl Rule {
    /// Returns the offsets in `data` at which a selected page can tear.
    fn tears_in(&self, data: &[u8], unit: TearUnit, before: &dyn Fn() -> Vec<u8>) -> Vec<Vec<u64>> {
        let Some(content) = self.on.holds else { return Vec::new() };
        let pages = self.on.pages(content, data, Some(unit), before);
        let before = before();
        let tears = |at: usize| {
            let ends =
                tears(&before[at..at + PAGE_SIZE], &data[at..at + PAGE_SIZE], unit).into_iter();
            ends.map(|end| (at + end) as u64).collect()
        };
        pages.into_iter().map(tears).collect()
    }
}

/// Reads from the disk, or from the medium alone. Returns zeros where the disk's own files cannot
/// be read; the request then fails by itself.
fn there<M: Medium>(medium: &M, cache: Option<&Cache>, offset: u64, length: u64) -> Vec<u8> {
    let mut bytes = vec![0; index(length)];
    if medium.read_at(offset, &mut bytes).is_ok()
        && let Some(cache) = cache
    {
        cache.overlay(offset, &mut bytes);
    }
    bytes
}

/// Reports an error of the file below the emulation, which spoils the results.
#[allow(clippy::print_stderr, reason = "the server's standard error is its log")]
fn broken(error: &io::Error) -> DiskError {
    eprintln!("the emulated disk's own files: {error}");
    match error.kind() {
        io::ErrorKind::StorageFull => DiskError::Enospc,
        _ => DiskError::Eio,
    }
}

#[cfg(test)]
mod tests;
