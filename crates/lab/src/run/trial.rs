//! One trial, from settings to record.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use pgdyno_durability::{Agreement, agreement};
use pgdyno_engine::script::Value;
use pgdyno_engine::{Live, LoadError, LoadSpec, Phase, Watch, drive};
use pgdyno_host::telemetry::{Sampler, Watched, probes};
use pgdyno_model::experiment::Length;
use pgdyno_model::record::ServerCount;
use pgdyno_model::search::Step;
use pgdyno_model::telemetry::Table;
use pgdyno_model::units::Epoch;
use pgdyno_model::{Find, Measurement, Plan, PlannedTrial, Search, Treatment, TrialRecord};

use super::between::{self, Counters};
use super::provision::Ready;
use super::server::Server;
use crate::LabError;
use crate::prepare::Prepared;
use crate::search::{Ask, Search as Climb, dither};
use pgdyno_model::progress::{Event, Progress};

/// One stretch of load.
struct Offer {
    /// Transactions per second, over what the treatment says.
    rate: Option<f64>,
    warm_up: Duration,
    length: Length,
    /// Tells the stretches of a trial apart.
    seed: u64,
}

impl Offer {
    /// The plan's.
    fn whole(plan: &Plan) -> Self {
        Self { rate: None, warm_up: plan.warm_up.0, length: plan.length, seed: 0 }
    }
}

/// What one came to.
struct Stretch {
    measurement: Measurement,
    /// When its window opened.
    opened: Option<Instant>,
    telemetry: Vec<Table>,
    count: Option<ServerCount>,
    /// Whether it could be counted in the server.
    judged: Result<(), LabError>,
}

impl Stretch {
    /// Whether nothing can be made of what comes after it.
    fn is_broken(&self) -> bool {
        self.measurement.aborted_clients > 0 || self.judged.is_err()
    }
}

/// What a trial needs besides its server.
pub(super) struct Trial<'a> {
    pub(super) prepared: &'a Prepared,
    pub(super) planned: PlannedTrial,
    pub(super) treatment: &'a Treatment,
    pub(super) progress: &'a dyn Progress,
    pub(super) stop: &'a AtomicBool,
    /// Time left in the run, given the time spent on this trial.
    pub(super) left: &'a (dyn Fn(Duration) -> Duration + Sync),
}

/// Nonzero counts are guaranteed by the plan; the types of the engine want to see them.
fn nonzero(n: u32) -> std::num::NonZeroU32 {
    std::num::NonZeroU32::new(n).unwrap_or(std::num::NonZeroU32::MIN)
}

impl Trial<'_> {
    /// An empty record of this trial, begun now.
    pub(super) fn record(&self) -> TrialRecord {
        TrialRecord {
            ordinal: self.planned.ordinal,
            block: self.planned.block,
            treatment: self.planned.treatment,
            repeat: self.planned.repeat,
            started_at: Epoch::of(SystemTime::now()),
            measured_at: None,
            failure: None,
            measurement: None,
            server_count: None,
            server: None,
            telemetry: Vec::new(),
            server_log: String::new(),
        }
    }

    /// Runs the trial on the server of `ready`. A failure is in the record; only an interruption is
    /// an error.
    pub(super) fn run(&self, mut ready: Ready<'_>) -> Result<TrialRecord, LabError> {
        let mut record = self.record();
        let mark = ready.server.log_mark();
        let outcome = self.measure(&mut ready, &mut record);
        let server = ready.server;
        record.server_log = server.log_since(mark);
        if self.stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        if let Err(error) = outcome {
            // A server that died explains more than the statement that noticed it.
            record.failure = Some(server.death().unwrap_or(error).in_words());
        }
        Ok(record)
    }

    fn measure(&self, ready: &mut Ready<'_>, record: &mut TrialRecord) -> Result<(), LabError> {
        let workload = self.prepared.workload(self.treatment);
        ready.server.apply(&self.treatment.settings, self.stop)?;
        between::settle(ready, &self.prepared.experiment.between, workload, self.stop)?;
        let server = &mut *ready.server;
        record.server = Some(server.facts()?);
        let stretch = match &self.prepared.plan.find {
            None => self.stretch(server, record, &Offer::whole(&self.prepared.plan))?,
            Some(find) => self.find(server, record, find)?,
        };
        let Stretch { measurement, opened, telemetry, count, judged } = stretch;
        record.measured_at = opened.map(|o| Epoch::of(SystemTime::now() - o.elapsed()));
        (record.telemetry, record.server_count) = (telemetry, count);
        let unfound = measurement.search.as_ref().filter(|s| s.max_rate.is_none()).map(unfound);
        let aborted = aborted(&measurement, self.treatment.clients);
        record.measurement = Some(measurement);
        match aborted {
            Some(failure) => {
                record.failure = Some(server.death().map_or(failure, |died| died.in_words()));
                Ok(())
            }
            None => {
                judged?;
                record.failure = record.failure.take().or(unfound);
                Ok(())
            }
        }
    }

    /// Looks for the highest rate that keeps the objective: the stretch that confirmed the answer,
    /// or the last where none did; with all steps.
    fn find(
        &self,
        server: &Server,
        record: &mut TrialRecord,
        find: &Find,
    ) -> Result<Stretch, LabError> {
        let plan = &self.prepared.plan;
        let mut steps: Vec<Step> = Vec::new();
        let short = |rate: Option<f64>, number: usize| Offer {
            rate,
            warm_up: plan.warm_up.0.min(find.step.0),
            length: Length::Duration(find.step),
            seed: number as u64,
        };
        // A closed loop tells where to begin.
        let first =
            self.stretch(server, record, &Offer { warm_up: plan.warm_up.0, ..short(None, 0) })?;
        steps.push(Step::of(&find.slo, None, false, &first.measurement));
        let tps = first.measurement.tps().filter(|tps| *tps > 0.0 && !first.is_broken());
        let dither = dither(plan.seed, self.planned.ordinal);
        let mut search = tps.map(|tps| Climb::new(tps, find.resolution, dither));
        let (mut latest, mut confirmed) = (None, None);
        while let Some(ask) = search.as_ref().and_then(Climb::ask) {
            let offer = if ask.confirming {
                Offer { rate: Some(ask.rate), seed: steps.len() as u64, ..Offer::whole(plan) }
            } else {
                short(Some(ask.rate), steps.len())
            };
            self.progress.event(&Event::Working { what: offering(ask, find), share: None });
            let stretch = self.stretch(server, record, &offer)?;
            let step = Step::of(&find.slo, Some(ask.rate), ask.confirming, &stretch.measurement);
            let (kept, broken) = (step.broken.is_none(), stretch.is_broken());
            steps.push(step);
            let place =
                if ask.confirming && kept && !broken { &mut confirmed } else { &mut latest };
            *place = Some(stretch);
            if broken {
                break;
            }
            if let Some(search) = &mut search {
                search.answer(kept);
            }
        }
        let (max_rate, least_broken) =
            search.map_or((None, None), |search| (search.max_rate(), search.least_broken()));
        let found = if max_rate.is_some() { confirmed.or(latest) } else { latest.or(confirmed) };
        let mut stretch = found.unwrap_or(first);
        stretch.measurement.search = Some(Search { max_rate, least_broken, steps });
        Ok(stretch)
    }

    /// Offers one stretch of load and counts in the server what was acknowledged of it.
    fn stretch(
        &self,
        server: &Server,
        record: &mut TrialRecord,
        offer: &Offer,
    ) -> Result<Stretch, LabError> {
        let workload = self.prepared.workload(self.treatment);
        let before = between::counters(server, workload, self.stop)?;
        let (measurement, opened) = self.offer(server, record, offer)?;
        let judged = self.judge(server, before, &measurement, record);
        let (telemetry, count) =
            (std::mem::take(&mut record.telemetry), record.server_count.take());
        Ok(Stretch { measurement, opened, telemetry, count, judged })
    }

    /// Offers the load with telemetry beside it; the measurement, and when its window opened.
    fn offer(
        &self,
        server: &Server,
        record: &mut TrialRecord,
        offer: &Offer,
    ) -> Result<(Measurement, Option<Instant>), LabError> {
        let (plan, treatment) = (&self.prepared.plan, self.treatment);
        let seed = plan.seed.wrapping_mul(1_000_003).wrapping_add(u64::from(self.planned.ordinal));
        let mut options = treatment.options.clone();
        options.rate = offer.rate.or(options.rate);
        let spec = LoadSpec {
            clients: nonzero(treatment.clients),
            threads: nonzero(treatment.threads),
            protocol: treatment.protocol,
            warm_up: offer.warm_up,
            length: offer.length,
            seed: seed.wrapping_add(offer.seed.wrapping_mul(7_368_787)),
            options,
            variables: vec![("scale".into(), Value::Int(i64::from(treatment.scale)).into())],
            ..LoadSpec::new(
                server.load_target(&treatment.settings),
                self.prepared.scripts(treatment).to_vec(),
            )
        };
        let watched = Watched::new(server.subject(), self.prepared.experiment.telemetry);
        let sampler =
            Sampler::start(probes(&watched), self.prepared.experiment.telemetry.interval.0);
        let began = Instant::now();
        let opened: Mutex<Option<Instant>> = Mutex::new(None);
        let on_open = |at: Instant| {
            if let Ok(mut opened) = opened.lock() {
                *opened = Some(at);
            }
        };
        let on_second = |live: &Live| {
            self.progress.event(&Event::Load {
                tps: live.tps,
                latency_us_p50: live.latency_us_p50,
                latency_us_p99: live.latency_us_p99,
                measuring: live.phase != Phase::WarmUp,
                left: (self.left)(began.elapsed()),
            });
        };
        let driven =
            drive(&spec, &Watch { stop: self.stop, on_open: &on_open, on_second: &on_second });
        let opened = opened.into_inner().ok().flatten();
        let measured = driven.as_ref().map_or(0.0, |m| m.measured_s);
        if let Some(opened) = opened {
            record.telemetry = sampler.finish(opened, opened + Duration::from_secs_f64(measured));
        }
        match driven {
            Ok(measurement) => Ok((measurement, opened)),
            Err(LoadError::Interrupted) => Err(LabError::Interrupted),
            Err(e) => Err(e.into()),
        }
    }

    /// Counts in the server what was acknowledged.
    fn judge(
        &self,
        server: &Server,
        before: Counters,
        measurement: &Measurement,
        record: &mut TrialRecord,
    ) -> Result<(), LabError> {
        let workload = self.prepared.workload(self.treatment);
        let after = between::counters(server, workload, self.stop)?;
        let count = before.until(after, workload, measurement.acknowledged());
        let each = workload.count.as_ref().map_or(0, |c| c.rows_per_transaction);
        let lost = u32::try_from(measurement.lost_connections).unwrap_or(u32::MAX);
        let in_doubt = measurement.aborted_clients.saturating_add(lost);
        let verdict = agreement(&count, each, in_doubt);
        record.server_count = Some(count);
        if let Agreement::Disagrees(words) = verdict {
            record.failure = Some(words);
        }
        Ok(())
    }
}

/// Why a trial in which clients gave up did not measure what it was meant to.
fn aborted(measurement: &Measurement, clients: u32) -> Option<String> {
    let first = measurement.abort_reasons.first().map_or("", String::as_str);
    (measurement.aborted_clients > 0)
        .then(|| format!("{} of {clients} clients gave up: {first}", measurement.aborted_clients))
}

/// Why a search has no answer.
fn unfound(search: &Search) -> String {
    let tried = search.steps.iter().filter(|s| s.broken.is_some());
    let least = tried.min_by(|a, b| a.rate.unwrap_or(0.0).total_cmp(&b.rate.unwrap_or(0.0)));
    match least {
        Some(step) => format!(
            "no rate was found that keeps the objective: the lowest that broke it was {:.1}/s ({})",
            step.rate.unwrap_or(0.0),
            step.broken.as_deref().unwrap_or_default()
        ),
        None => "no rate was found that keeps the objective: no transaction ended in a closed loop"
            .to_owned(),
    }
}

/// A step in words.
fn offering(ask: Ask, find: &Find) -> String {
    let doing = if ask.confirming { "confirming" } else { "trying" };
    format!("{doing} {:.1} transactions/s: does that keep {}?", ask.rate, find.slo)
}
