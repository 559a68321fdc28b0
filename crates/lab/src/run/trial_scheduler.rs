//! Decides which trials are still to be run: all of a plan of fixed repeats, otherwise those whose
//! comparisons are open, while the budget lasts.

use std::collections::BTreeSet;
use std::time::Duration;

use pgdyno_analysis::stopping;
use pgdyno_model::live::Outlook;
use pgdyno_model::progress::EndReason;
use pgdyno_model::{Measurement, Plan, PlannedTrial, TrialRecord};

/// Decision about a planned trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NextTrial {
    /// Run the trial.
    Run,
    /// Leave the trial out: its treatment's comparisons are decided.
    Skip,
    /// Run neither the trial nor any after it, for this reason.
    End(EndReason),
}

/// Scheduler of a run's trials.
pub(super) struct TrialScheduler<'a> {
    plan: &'a Plan,
    /// (block, tps) of each treatment's completed trials.
    tps: Vec<Vec<(u32, f64)>>,
    completed: BTreeSet<u32>,
    /// The block that is under way, and the treatments that it wants.
    block: u32,
    wanted: BTreeSet<usize>,
    /// Time that trials took so far, in earlier sessions too.
    spent: Duration,
}

impl<'a> TrialScheduler<'a> {
    pub(super) fn new(plan: &'a Plan, stored: &[TrialRecord]) -> Self {
        let mut scheduler = Self {
            plan,
            tps: vec![Vec::new(); plan.treatments.len()],
            completed: BTreeSet::new(),
            block: 0,
            wanted: BTreeSet::new(),
            spent: Duration::ZERO,
        };
        for trial in stored {
            scheduler.add(trial, took(trial));
        }
        scheduler
    }

    /// Adds a recorded trial that took `time`.
    pub(super) fn add(&mut self, trial: &TrialRecord, time: Duration) {
        self.spent += time;
        let tps = trial
            .measurement
            .as_ref()
            .filter(|_| trial.failure.is_none())
            .and_then(Measurement::compared);
        let Some(tps) = tps else { return };
        // Of several attempts the first completed one counts, as in the analysis.
        if self.completed.insert(trial.ordinal) {
            self.tps[trial.treatment].push((trial.block, tps));
        }
    }

    /// Returns how the comparisons stand, if `planned` begins another block of a run that may end
    /// by itself. Call it before [`TrialScheduler::next`].
    pub(super) fn outlook(&self, planned: PlannedTrial) -> Option<Outlook> {
        if planned.block == 1 || planned.block == self.block {
            return None;
        }
        stopping::outlook(self.plan, &self.tps, planned.block - 1)
    }

    /// Decides about `planned`, if a trial takes `each`.
    pub(super) fn next(&mut self, planned: PlannedTrial, each: Duration) -> NextTrial {
        let Some(stopping) = &self.plan.stopping else { return NextTrial::Run };
        if planned.block != self.block {
            self.block = planned.block;
            self.wanted = stopping::wanted(self.plan, &self.tps, planned.block);
            if self.wanted.is_empty() {
                return NextTrial::End(EndReason::Decided { blocks: planned.block - 1 });
            }
            let block = each * u32::try_from(self.wanted.len()).unwrap_or(u32::MAX);
            if let Some(budget) = stopping.budget
                && planned.block > stopping.floor
                && self.spent + block > budget.0
            {
                return NextTrial::End(EndReason::BudgetSpent { budget });
            }
        }
        if self.wanted.contains(&planned.treatment) { NextTrial::Run } else { NextTrial::Skip }
    }

    /// Returns the rest of the budget.
    pub(super) fn left(&self) -> Option<Duration> {
        Some(self.plan.stopping.as_ref()?.budget?.0.saturating_sub(self.spent))
    }
}

/// Returns the time that a stored trial took, as far as its record shows: until its window opened,
/// and the window.
fn took(trial: &TrialRecord) -> Duration {
    let until_window = trial.measured_at.map_or(0, |at| at.0.saturating_sub(trial.started_at.0));
    let window = trial.measurement.as_ref().map_or(0.0, |m| m.measured_s.max(0.0));
    Duration::from_nanos(until_window) + Duration::try_from_secs_f64(window).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use pgdyno_experiment::ResolvedExperiment;
    use pgdyno_experiment::file::Source;
    use pgdyno_model::units::Epoch;

    use super::*;
    use pgdyno_provision::ThisHost;

    fn plan(text: &str) -> Plan {
        let source =
            Source { name: "try".into(), shown: "try".into(), text: text.into(), base: "/".into() };
        ResolvedExperiment::with_seed(source, Vec::new(), 1, &ThisHost).unwrap().plan
    }

    fn record(planned: PlannedTrial, tps: u64) -> TrialRecord {
        let measurement =
            Measurement { measured_s: 1.0, transactions: tps, ..Measurement::default() };
        TrialRecord {
            ordinal: planned.ordinal,
            block: planned.block,
            treatment: planned.treatment,
            repeat: planned.repeat,
            started_at: Epoch(0),
            measured_at: Some(Epoch(1_000_000_000)),
            failure: None,
            measurement: Some(measurement),
            server_count: None,
            server: None,
            telemetry: Vec::new(),
            server_log: String::new(),
        }
    }

    /// Runs the plan, each trial with the tps of its (treatment, block). Returns the (block,
    /// treatment) of each trial that was run, and why the run ended.
    fn run(
        plan: &Plan,
        stored: &[TrialRecord],
        tps: impl Fn(usize, u32) -> u64,
    ) -> (Vec<(u32, usize)>, Option<EndReason>) {
        let mut scheduler = TrialScheduler::new(plan, stored);
        let mut ran = Vec::new();
        for planned in &plan.trials {
            if stored.iter().any(|t| t.ordinal == planned.ordinal) {
                continue;
            }
            match scheduler.next(*planned, Duration::from_secs(2)) {
                NextTrial::Run => {}
                NextTrial::Skip => continue,
                NextTrial::End(why) => return (ran, Some(why)),
            }
            ran.push((planned.block, planned.treatment));
            scheduler.add(
                &record(*planned, tps(planned.treatment, planned.block)),
                Duration::from_secs(2),
            );
        }
        (ran, None)
    }

    const THREE: &str = "[experiment]\nprecision = \"0.5%\"\n[factors]\nclients = [1, 2, 3]\n";

    /// Returns `base` with up to 3% of noise, which differs between treatments and blocks.
    fn shaken(base: u64, treatment: usize, block: u32) -> u64 {
        base * (1000 + 10 * ((u64::from(block) * 7 + treatment as u64 * 3) % 4)) / 1000
    }

    #[test]
    fn decided_treatments_are_let_go_and_open_ones_measured_on() {
        let plan = plan(THREE);
        assert_eq!(plan.trials.len(), 90);
        // The second is twice as fast; the third cannot be told from the first.
        let (ran, why) = run(&plan, &[], |t, block| shaken([10_000, 20_000, 10_000][t], t, block));
        let of = |t: usize| ran.iter().filter(|(_, treatment)| *treatment == t).count();
        assert_eq!(of(1), 4, "{ran:?}");
        assert!(of(0) > 4 && of(0) == of(2), "{ran:?}");
        assert!(matches!(why, None | Some(EndReason::Decided { .. })), "{why:?}");
        // Where everything is far apart, the first look is the last.
        let (ran, why) = run(&plan, &[], |t, block| shaken(10_000 * (t as u64 + 1), t, block));
        assert_eq!((ran.len(), why), (12, Some(EndReason::Decided { blocks: 4 })));
    }

    #[test]
    fn a_budget_ends_it_after_the_floor_whatever_is_open() {
        let plan = plan(&THREE.replace("precision = \"0.5%\"", "budget = \"40s\""));
        // A block takes 6 s: six of them.
        let (ran, why) = run(&plan, &[], |t, block| shaken(10_000, t, block));
        assert_eq!(
            (ran.len(), why),
            (18, Some(EndReason::BudgetSpent { budget: "40s".parse().unwrap() }))
        );
        let plan = self::plan(&THREE.replace("precision = \"0.5%\"", "budget = \"1s\""));
        assert_eq!(
            run(&plan, &[], |t, block| shaken(10_000, t, block)).0.len(),
            12,
            "the floor is run anyway"
        );
    }

    #[test]
    fn a_run_that_goes_on_takes_the_scheduler_that_it_would_have_taken() {
        let plan = plan(THREE);
        let tps = |t: usize, block: u32| shaken([10_000, 20_000, 10_000][t], t, block);
        let (whole, why) = run(&plan, &[], tps);
        for cut in [1, 7, 13, 17, whole.len() - 1] {
            let stored: Vec<TrialRecord> = plan
                .trials
                .iter()
                .filter(|p| whole[..cut].contains(&(p.block, p.treatment)))
                .map(|p| record(*p, tps(p.treatment, p.block)))
                .collect();
            let (rest, again) = run(&plan, &stored, tps);
            assert_eq!((&whole[cut..], &why), (&rest[..], &again), "cut after {cut}");
        }
    }

    #[test]
    fn one_treatment_is_measured_until_it_is_known_well_enough_and_fixed_repeats_are_all_run() {
        let plan = plan("[experiment]\nprecision = \"5%\"\n");
        let (ran, why) = run(&plan, &[], |t, block| shaken(10_000, t, block));
        assert_eq!((ran.len(), why.is_some()), (4, true));
        let (ran, _) = run(&plan, &[], |_, block| if block % 2 == 0 { 5_000 } else { 10_000 });
        assert_eq!(ran.len(), 30, "never known to 5%");
        let fixed = self::plan("[experiment]\nrepeats = 5\n[factors]\nclients = [1, 2]\n");
        assert_eq!(run(&fixed, &[], |_, _| 1000).0.len(), 10);
    }

    /// Draws from the standard normal distribution (Box and Muller).
    fn normal(random: &mut fastrand::Rng) -> f64 {
        let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * random.f64()).cos()
    }

    #[test]
    fn forecasts_of_blocks_come_close_to_the_blocks_that_simulated_runs_take() {
        let plan = plan("[experiment]\nprecision = \"1%\"\n[factors]\nclients = [1, 2]\n");
        let mut random = fastrand::Rng::with_seed(7);
        let (mut forecasts, mut close) = (0, 0);
        for _ in 0..200 {
            // 2% of spread from trial to trial, and a difference of 1.5%: decided after some looks.
            let tps = [(); 2].map(|()| -> Vec<f64> {
                (0..30).map(|_| 100_000.0 * (1.0 + 0.02 * normal(&mut random))).collect()
            });
            let tps = |t: usize, block: u32| {
                let factor = if t == 1 { 1.015 } else { 1.0 };
                (tps[t][block as usize - 1] * factor) as u64
            };
            let (ran, _) = run(&plan, &[], tps);
            let took = ran.iter().map(|(block, _)| *block).max().unwrap();
            let until = |block: u32| -> Vec<Vec<(u32, f64)>> {
                let of = |t: usize| (1..=block).map(|b| (b, tps(t, b) as f64)).collect();
                [0, 1].map(of).into()
            };
            let last = stopping::outlook(&plan, &until(took), took).unwrap();
            if took < 30 {
                assert_eq!((last.decided, last.blocks_left), (1, Some(0)), "{last:?}");
            }
            if took <= 9 {
                continue;
            }
            let outlook = stopping::outlook(&plan, &until(9), 9).unwrap();
            assert_eq!((outlook.blocks, outlook.comparisons, outlook.ceiling), (9, 1, 30));
            assert_ne!(outlook.blocks_left, Some(0), "the run went on");
            forecasts += 1;
            // Of an open end, the ceiling.
            let total = outlook.blocks_left.map_or(30, |left| 9 + left);
            close += usize::from(total <= 2 * took && took <= 2 * total);
        }
        assert!(forecasts >= 50 && close * 10 >= forecasts * 7, "{close} of {forecasts}");
    }

    #[test]
    fn nothing_is_forecast_of_one_block_nor_of_fixed_repeats() {
        let open = plan(THREE);
        let one = vec![vec![(1, 10.0)]; 3];
        assert_eq!(stopping::outlook(&open, &one, 1).unwrap().blocks_left, None);
        let fixed = plan("[experiment]\nrepeats = 5\n[factors]\nclients = [1, 2]\n");
        assert_eq!(stopping::outlook(&fixed, &one[..2], 1), None);
    }
}
