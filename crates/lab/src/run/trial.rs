//! One trial, from settings to record.
//!
//! [`Trial::run`] applies the treatment's settings, settles the server, and offers load: one phase,
//! or the phases of a search for the highest rate. Each phase returns its [`PhaseResult`]; the
//! record is put together at the end.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use pgdyno_dataset::workload::Workload;
use pgdyno_dataset::{BulkLoad, growing_tables};
use pgdyno_durability::{Agreement, agreement};
use pgdyno_engine::copy::GrowingTable;
use pgdyno_engine::script::Value;
use pgdyno_engine::{
    LiveSecond, LoadGroup, LoadObserver, LoadSpec, Phase, WeightedScript, run_load,
};
use pgdyno_exec::cgroup::cpus_allowed;
use pgdyno_exec::program::start_piped;
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::checks::generators::generators;
use pgdyno_generators::{Admission, Generators, GeneratorsError, Hands};
use pgdyno_model::counters::LoadCounters;
use pgdyno_model::experiment::Length;
use pgdyno_model::facts::ServerFacts;
use pgdyno_model::load_rate::LoadRate;
use pgdyno_model::progress::{Activity, Event};
use pgdyno_model::record::ServerCount;
use pgdyno_model::search::Step;
use pgdyno_model::telemetry::Table;
use pgdyno_model::units::Epoch;
use pgdyno_model::{ClientGroup, Failure, FailureKind};
use pgdyno_model::{Find, Measurement, Plan, PlannedTrial, Search, Treatment, TrialRecord};
use pgdyno_observe::telemetry::Sampler;
use pgdyno_postgres::ExternalServer;

use super::cluster_pool::ReadyServer;
use super::consistency::broken_condition;
use super::counters::read_counters;
use super::flush_accounting::FlushAccounting;
use super::observation::Observation;
use super::replica::await_replay;
use super::server::Server;
use super::settle::settle;
use crate::live::load_second;
use crate::search::{RateRequest, RateSearch, dither};
use pgdyno_provision::BenchError;
use pgdyno_provision::Context;

/// One phase of load.
struct LoadPhase {
    /// Transactions per second; none: the treatment's own rate.
    rate: Option<f64>,
    warm_up: Duration,
    length: Length,
    /// Distinguishes the phases of a trial; 0 for the only phase.
    seed: u64,
}

impl LoadPhase {
    /// Returns the phase that the plan asks for: its warm-up and its whole window.
    fn whole(plan: &Plan) -> Self {
        Self { rate: None, warm_up: plan.warm_up.0, length: plan.length, seed: 0 }
    }
}

/// The result of one phase of load.
struct PhaseResult {
    measurement: Measurement,
    /// When the measured window opened.
    opened: Option<Instant>,
    telemetry: Vec<Table>,
    /// The server's counts, beside the clients' own; an error if they could not be read.
    count: Result<ServerCount, BenchError>,
    /// Why the two counts contradict each other, in this phase or in another one of the trial; or
    /// a condition of the workload that is broken.
    disagreement: Option<String>,
}

impl PhaseResult {
    /// Returns whether another phase after this one would be of no use.
    fn is_broken(&self) -> bool {
        self.measurement.counters.aborted_clients > 0 || self.count.is_err()
    }
}

/// Result of one attempt at a trial.
pub(super) struct Attempt {
    pub(super) record: TrialRecord,
    /// Whether another attempt may go better: a generator failed, not the server or the load.
    pub(super) may_pass: bool,
}

/// A trial, with everything it needs besides its server.
pub(super) struct Trial<'a> {
    pub(super) resolved: &'a ResolvedExperiment,
    pub(super) planned: PlannedTrial,
    pub(super) treatment: &'a Treatment,
    pub(super) context: Context<'a>,
    /// Returns the time left in the run, given the time spent on this trial.
    pub(super) left: &'a (dyn Fn(Duration) -> Duration + Sync),
}

/// Counts of a plan are never 0; the engine's types say so.
fn nonzero(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN)
}

impl Trial<'_> {
    /// Returns an empty record of this trial, begun now.
    pub(super) fn new_record(&self) -> TrialRecord {
        let PlannedTrial { ordinal, block, treatment, repeat } = self.planned;
        TrialRecord {
            ordinal,
            block,
            treatment,
            repeat,
            started_at: Epoch::now(),
            measured_at: None,
            failure: None,
            measurement: None,
            server_count: None,
            server: None,
            telemetry: Vec::new(),
            server_log: String::new(),
        }
    }

    /// Runs the trial on the server of `ready`. A failure is part of the record.
    ///
    /// # Errors
    /// [`BenchError::Interrupted`], and no other.
    pub(super) fn run(&self, mut ready: ReadyServer<'_>) -> Result<Attempt, BenchError> {
        let mut begun = self.new_record();
        let mark = ready.server.log_mark();
        let (facts, measured) = self.measure(&mut ready);
        begun.server = facts;
        let server = ready.server;
        begun.server_log = server.log_since(mark);
        self.context.check_stop()?;
        Ok(match measured {
            Ok(phase) => Attempt { record: self.record(begun, phase, server), may_pass: false },
            Err(error) => {
                // A server that died explains more than the statement that noticed it.
                let error = server.death().unwrap_or(error);
                let may_pass =
                    error.cause::<GeneratorsError>().is_some_and(GeneratorsError::may_pass);
                let record = TrialRecord { failure: Some(error.failure()), ..begun };
                Attempt { record, may_pass }
            }
        })
    }

    /// Measures the trial. Returns the server's facts too, unless an error came before they were
    /// read.
    fn measure(
        &self,
        ready: &mut ReadyServer<'_>,
    ) -> (Option<ServerFacts>, Result<PhaseResult, BenchError>) {
        let workload = self.resolved.workload(self.treatment);
        let between = &self.resolved.experiment.between;
        let facts = ready
            .server
            .apply(&self.treatment.settings, self.context.stop)
            .and_then(|()| settle(ready, between, workload, self.context))
            .and_then(|()| ready.server.facts());
        let facts = match facts {
            Ok(facts) => facts,
            Err(e) => return (None, Err(e)),
        };
        let scripts = self.resolved.scripts(self.treatment);
        let accounting = FlushAccounting::begin(ready.accounted.as_ref(), ready.server, &scripts);
        let phase = accounting.and_then(|accounting| self.phases(ready.server, &accounting));
        (Some(facts), phase)
    }

    /// Offers the load: one phase, or those of a search.
    fn phases(
        &self,
        server: &Server,
        accounting: &FlushAccounting,
    ) -> Result<PhaseResult, BenchError> {
        let plan = &self.resolved.plan;
        let mut phase = match &plan.find {
            None => self.phase(server, &LoadPhase::whole(plan), accounting),
            Some(find) => self.find_rate(server, find, accounting),
        }?;
        accounting.finish(&mut phase.measurement);
        if !phase.is_broken() && phase.disagreement.is_none() {
            let workload = self.resolved.workload(self.treatment);
            phase.disagreement = broken_condition(server, workload, self.context)?;
        }
        Ok(phase)
    }

    /// Completes the record of a trial that measured.
    fn record(&self, begun: TrialRecord, phase: PhaseResult, server: &mut Server) -> TrialRecord {
        let PhaseResult { measurement, opened, telemetry, count, disagreement } = phase;
        let unfound = measurement.search.as_ref().filter(|s| s.max_rate.is_none()).map(unfound);
        let aborted = aborted(&measurement, self.treatment.clients);
        let (server_count, failure) = match (aborted, count) {
            (Some(reason), count) => {
                let death = server.death().map(|death| death.failure());
                let aborted = || Failure::new(FailureKind::Load, reason);
                (count.ok(), Some(death.unwrap_or_else(aborted)))
            }
            (None, Err(e)) => (None, Some(server.death().unwrap_or(e).failure())),
            (None, Ok(count)) => {
                let disagreement = disagreement.map(|why| Failure::new(FailureKind::Server, why));
                let unfound = unfound.map(|why| Failure::new(FailureKind::Load, why));
                (Some(count), disagreement.or(unfound))
            }
        };
        TrialRecord {
            measured_at: opened.map(|o| Epoch::from_time(SystemTime::now() - o.elapsed())),
            failure,
            measurement: Some(measurement),
            server_count,
            telemetry,
            ..begun
        }
    }

    /// Searches for the highest rate that keeps the objective.
    ///
    /// Returns the phase that confirmed the answer, or the last phase where none did, with all
    /// steps of the search; why the counts of any phase contradict each other; and what flush
    /// accounting found in all of them.
    fn find_rate(
        &self,
        server: &Server,
        find: &Find,
        accounting: &FlushAccounting,
    ) -> Result<PhaseResult, BenchError> {
        let plan = &self.resolved.plan;
        let mut steps: Vec<Step> = Vec::new();
        let (mut disagreement, mut accounts) = (None, LoadCounters::default());
        let mut note = |phase: &PhaseResult| {
            disagreement = phase.disagreement.clone().or(disagreement.take());
            accounts.merge(&phase.measurement.counters);
        };
        let short = |rate: Option<f64>, number: usize| LoadPhase {
            rate,
            warm_up: plan.warm_up.0.min(find.step.0),
            length: Length::Duration(find.step),
            seed: number as u64,
        };
        // A closed loop tells where to begin.
        let first_load = LoadPhase { warm_up: plan.warm_up.0, ..short(None, 0) };
        let first = self.phase(server, &first_load, accounting)?;
        note(&first);
        steps.push(Step::judge(&find.slo, None, false, &first.measurement));
        let tps = first.measurement.tps().filter(|tps| *tps > 0.0 && !first.is_broken());
        let dither = dither(plan.seed, self.planned.ordinal);
        let mut search = tps.map(|tps| RateSearch::new(tps, find.resolution, dither));
        let (mut latest, mut confirmed) = (None, None);
        while let Some(request) = search.as_ref().and_then(RateSearch::request) {
            let RateRequest { rate, confirming } = request;
            let load = if confirming {
                LoadPhase { rate: Some(rate), seed: steps.len() as u64, ..LoadPhase::whole(plan) }
            } else {
                short(Some(rate), steps.len())
            };
            let objective = find.slo.clone();
            self.context.begin(Activity::TryingRate { rate, confirming, objective });
            let phase = self.phase(server, &load, accounting)?;
            note(&phase);
            let step = Step::judge(&find.slo, Some(rate), confirming, &phase.measurement);
            let (is_kept, is_broken) = (step.broken.is_none(), phase.is_broken());
            steps.push(step);
            let place = match confirming && is_kept && !is_broken {
                true => &mut confirmed,
                false => &mut latest,
            };
            *place = Some(phase);
            if is_broken {
                break;
            }
            if let Some(search) = &mut search {
                search.answer(is_kept);
            }
        }
        let (max_rate, least_broken) =
            search.map_or((None, None), |search| (search.max_rate(), search.least_broken()));
        let found = if max_rate.is_some() { confirmed.or(latest) } else { latest.or(confirmed) };
        let mut phase = found.unwrap_or(first);
        phase.measurement.search = Some(Search { max_rate, least_broken, steps });
        phase.measurement.counters.flush_accounting = accounts.flush_accounting;
        phase.disagreement = phase.disagreement.or(disagreement);
        Ok(phase)
    }

    /// Offers one phase of load, with telemetry beside it, and counts in the server what it did.
    fn phase(
        &self,
        server: &Server,
        load: &LoadPhase,
        accounting: &FlushAccounting,
    ) -> Result<PhaseResult, BenchError> {
        let workload = self.resolved.workload(self.treatment);
        let before = read_counters(server, workload, self.context)?;
        let stop = self.context.stop;
        let observation = Observation::start(server, &self.resolved.experiment, stop)?;
        let spec = LoadSpec { flushes: accounting.flushes(), ..self.load_spec(server, load)? };
        let (driven, opened) = self.run_load(server, &spec, observation.sampler());
        let measured = driven.as_ref().map_or(0.0, |m| m.measured_s);
        let telemetry = opened.map_or_else(Vec::new, |opened| {
            observation.finish(opened, opened + Duration::from_secs_f64(measured), stop)
        });
        let headline = self.resolved.plan.headline.clone();
        let measurement = Measurement { headline, ..driven? };
        let after = read_counters(server, workload, self.context);
        let count = after.map(|after| before.until(after, workload, measurement.acknowledged()));
        let count_disagreement = |count| disagreement(count, workload, &measurement);
        let disagreement = count.as_ref().ok().and_then(count_disagreement);
        Ok(PhaseResult { measurement, opened, telemetry, count, disagreement })
    }

    /// Returns the load of a phase.
    ///
    /// # Errors
    /// A server of a group takes no connection, or the server does not tell what `\copyfrom` needs.
    fn load_spec(&self, server: &Server, load: &LoadPhase) -> Result<LoadSpec, BenchError> {
        let (plan, treatment) = (&self.resolved.plan, self.treatment);
        let seed = plan.seed.wrapping_mul(1_000_003).wrapping_add(u64::from(self.planned.ordinal));
        let mut options = treatment.options.clone();
        options.rate = load.rate.map(LoadRate::Constant).or(options.rate);
        let groups = treatment.groups.iter().map(|group| self.load_group(server, group));
        let scripts = self.resolved.scripts(treatment);
        Ok(LoadSpec {
            tables: self.growing_tables(server, &scripts)?,
            groups: groups.collect::<Result<_, _>>()?,
            clients: nonzero(treatment.clients),
            threads: nonzero(treatment.threads),
            protocol: treatment.protocol,
            warm_up: load.warm_up,
            length: load.length,
            seed: seed.wrapping_add(load.seed.wrapping_mul(7_368_787)),
            options,
            variables: vec![("scale".into(), Value::Int(i64::from(treatment.scale)).into())],
            ..LoadSpec::new(server.load_target(&treatment.settings), scripts)
        })
    }

    /// Returns the tables that `scripts` fill while the load runs.
    fn growing_tables(
        &self,
        server: &Server,
        scripts: &[WeightedScript],
    ) -> Result<Vec<Arc<GrowingTable>>, BenchError> {
        let (plan, data) = (&self.resolved.plan, self.resolved.data(self.treatment));
        let scale = self.treatment.scale;
        let usual = BulkLoad::new(data, scale, plan.seed_of_data(), &plan.loading);
        let load = BulkLoad { schema: server.schema(), ..usual };
        Ok(growing_tables(&load, &server.control_target(), scripts)?)
    }

    /// Returns `group` with the server that is its own, if it has one, beside `server`. A replica
    /// has then caught up.
    fn load_group(&self, server: &Server, group: &ClientGroup) -> Result<LoadGroup, BenchError> {
        let postgres = &self.resolved.experiment.postgres;
        let named = group.server.as_deref();
        let own = named.and_then(|name| Some((name, postgres.dsn_of(Some(name))?)));
        let Some((name, dsn)) = own else {
            return Ok(LoadGroup { group: group.clone(), servers: None });
        };
        let beside = ExternalServer::connect(dsn)?;
        await_replay(server, &beside, name, self.context)?;
        let target = server.prepared(beside.target(), &self.treatment.settings);
        Ok(LoadGroup { group: group.clone(), servers: Some(target.into()) })
    }

    /// Runs `spec` and reports progress. Returns the measurement and when its window opened.
    fn run_load(
        &self,
        server: &Server,
        spec: &LoadSpec,
        sampler: &Sampler,
    ) -> (Result<Measurement, BenchError>, Option<Instant>) {
        let began = Instant::now();
        let opened: Mutex<Option<Instant>> = Mutex::new(None);
        let on_open = |at: Instant| {
            if let Ok(mut opened) = opened.lock() {
                *opened = Some(at);
            }
        };
        let on_second = |live: &LiveSecond| {
            // The window is closed: transactions that began in it come to their end.
            if live.phase == Phase::Draining {
                return;
            }
            let left = (self.left)(began.elapsed());
            let second = load_second(live, sampler.waits(), left);
            self.context.event(&Event::Load(second));
        };
        let stop = self.context.stop;
        let observer = LoadObserver { stop, on_open: &on_open, on_second: &on_second };
        let admit = |addresses: &BTreeSet<IpAddr>| server.admit(addresses, stop);
        let admission = server.listens_on();
        let admission = admission.map(|server| Admission { server, admit: &admit });
        let generators = generators(&self.resolved.experiment.generators, self.treatment);
        let driven = generators
            .map_err(|error| GeneratorsError::Deal(error).into())
            .and_then(|generators| offer(spec, &observer, generators.as_ref(), admission));
        (driven, opened.into_inner().ok().flatten())
    }
}

/// Offers a load from this process, or from `generators`.
fn offer(
    spec: &LoadSpec,
    observer: &LoadObserver<'_>,
    generators: Option<&Generators>,
    admission: Option<Admission<'_>>,
) -> Result<Measurement, BenchError> {
    let Some(generators) = generators else {
        let driven = run_load(spec, observer).map(|m| m.with_cpus_allowed(cpus_allowed()));
        return Ok(driven?);
    };
    let hands =
        Hands { start: start_piped, notice: &|_| {}, admission, cpus_allowed: cpus_allowed() };
    Ok(pgdyno_generators::run_load(spec, observer, generators, &hands)?)
}

/// Says why the server's `count` contradicts what clients were told.
fn disagreement(
    count: &ServerCount,
    workload: &Workload,
    measurement: &Measurement,
) -> Option<String> {
    let each = workload.count.as_ref().map_or(0, |c| c.rows_per_transaction);
    let lost = u32::try_from(measurement.counters.lost_connections).unwrap_or(u32::MAX);
    let in_doubt = measurement.counters.aborted_clients.saturating_add(lost);
    match agreement(count, each, in_doubt) {
        Agreement::Disagrees(reason) => Some(reason),
        _ => None,
    }
}

/// Says why a trial in which clients gave up did not measure what it was meant to.
fn aborted(measurement: &Measurement, clients: u32) -> Option<String> {
    let first = measurement.counters.abort_reasons.first().map_or("", String::as_str);
    (measurement.counters.aborted_clients > 0).then(|| {
        format!("{} of {clients} clients gave up: {first}", measurement.counters.aborted_clients)
    })
}

/// Says why a search has no answer.
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
