//! Searches for the highest rate that keeps an objective: rates out, verdicts in. Knows no clock
//! and no server.
//!
//! 1. Brackets the rate by factors, from about half of a closed loop's rate on.
//! 2. Bisects the bracket. Each rate is tried twice, and once more where the two verdicts disagree,
//!    since near the limit a short step is a toss.
//! 3. Confirms the answer over a whole window. Where that fails, goes down by one, two, four, …
//!    times the resolution, then up again by bisection with whole windows: a longer window meets
//!    what short ones missed, and by how much is not known.
//!
//! Each trial searches on a grid of rates of its own: [`dither`] draws where the grid begins. On
//! one grid for all trials of a treatment, each would miss the limit by the same amount, and
//! repeats could not show that. On drawn grids, the misses are independent and uniform over one
//! step: the mean lies half a step below the limit, for every treatment alike.

/// Least first rate, as a share of the closed loop's tps.
const START: f64 = 0.5;
/// Factor by which the bracket grows upwards.
const UP: f64 = 1.5;
/// Factor by which the bracket grows downwards: two steps of [`UP`], so that bisection ends on the
/// same grid either way.
const DOWN: f64 = 1.0 / (UP * UP);
/// Lowest rate that is tried, as a share of the first.
const LEAST: f64 = 1.0 / 128.0;
/// Highest rate that is tried, as a multiple of the first. A closed loop's rate bounds nothing, but
/// no server reaches such a multiple of it.
const MOST: f64 = 64.0;
/// Confirmations on the way up again.
const REFINEMENTS: u32 = 3;

/// A rate to try next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateRequest {
    /// The rate (1/s).
    pub rate: f64,
    /// Whether the rate is tried over a whole window.
    pub confirming: bool,
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct RateSearch {
    first: f64,
    resolution: f64,
    /// The highest rate that kept the objective, and the lowest that did not.
    kept: Option<f64>,
    broken: Option<f64>,
    state: State,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    /// The bracket is open at an end; the rate to try.
    Bracket(f64),
    /// The bracket is closed; a rate in it, and how often it kept and broke the objective so far.
    Bisect(f64, u32, u32),
    /// The rate to confirm, and how many confirmations failed before.
    Confirm(f64, u32),
    /// A confirmed rate, a higher rate to confirm, and how many higher rates were tried before.
    Refine(f64, f64, u32),
    /// The search is over; the highest rate that was confirmed.
    Done(Option<f64>),
}

/// Draws where in a step of the grid the search of trial `ordinal` begins (0 to 1). Equal seeds and
/// ordinals give equal draws.
pub fn dither(seed: u64, ordinal: u32) -> f64 {
    /// Keeps these draws apart from those of the order and the load.
    const PURPOSE: u64 = 0x5EA5_C4D1_7E4B_9A27;
    // The seed is mixed first, since people choose neighbouring ones; then one stream serves all
    // trials of the run.
    let mixed = fastrand::Rng::with_seed(seed ^ PURPOSE).u64(..);
    let mut stream = fastrand::Rng::with_seed(mixed);
    for _ in 0..ordinal {
        stream.u64(..);
    }
    stream.f64()
}

/// Returns the factor between neighbours of the grid that bisection ends on: the root of [`UP`] is
/// taken until the step is at most the resolution.
fn grid_step(resolution: f64) -> f64 {
    let mut step = UP;
    while step > 1.0 + resolution {
        step = step.sqrt();
    }
    step
}

impl RateSearch {
    /// Creates a search. The first rate is half of the closed loop's `tps` (1/s, positive), raised
    /// by the share `dither` (0 to 1) of a step of the grid.
    pub fn new(tps: f64, resolution: f64, dither: f64) -> Self {
        let first = START * tps * grid_step(resolution).powf(dither);
        Self { first, resolution, kept: None, broken: None, state: State::Bracket(first) }
    }

    /// Returns the rate to try next; none once the search is over.
    pub fn request(&self) -> Option<RateRequest> {
        match self.state {
            State::Bracket(rate) | State::Bisect(rate, ..) => {
                Some(RateRequest { rate, confirming: false })
            }
            State::Confirm(rate, _) | State::Refine(_, rate, _) => {
                Some(RateRequest { rate, confirming: true })
            }
            State::Done(_) => None,
        }
    }

    /// Returns the highest confirmed rate (1/s) once the search is over; none if no rate was
    /// confirmed.
    pub fn max_rate(&self) -> Option<f64> {
        match self.state {
            State::Done(answer) => answer,
            _ => None,
        }
    }

    /// Returns the lowest rate (1/s) that broke the objective.
    pub fn least_broken(&self) -> Option<f64> {
        self.broken
    }

    /// Records whether the rate that was requested kept the objective.
    pub fn answer(&mut self, kept: bool) {
        self.state = match self.state {
            State::Bracket(rate) => {
                self.settle(rate, kept);
                self.narrow()
            }
            State::Bisect(rate, yes, no) => {
                let (yes, no) = (yes + u32::from(kept), no + u32::from(!kept));
                if yes.max(no) < 2 {
                    State::Bisect(rate, yes, no)
                } else {
                    self.settle(rate, yes > no);
                    self.narrow()
                }
            }
            // At the first, it is known to the resolution already.
            State::Confirm(rate, 0) if kept => State::Done(Some(rate)),
            State::Confirm(rate, _) if kept => self.refine(rate, 0),
            State::Confirm(rate, failed) => {
                self.broken = Some(self.broken.map_or(rate, |b| b.min(rate)));
                let lower = rate / (1.0 + self.resolution).powi(1 << failed.min(4));
                if lower < self.first * LEAST {
                    State::Done(None)
                } else {
                    State::Confirm(lower, failed + 1)
                }
            }
            State::Refine(_, rate, tried) if kept => self.refine(rate, tried + 1),
            State::Refine(confirmed, rate, tried) => {
                self.broken = Some(self.broken.map_or(rate, |b| b.min(rate)));
                self.refine(confirmed, tried + 1)
            }
            State::Done(answer) => State::Done(answer),
        };
    }

    /// Tries a rate between `confirmed` and the lowest broken rate, if they lie further apart than
    /// the resolution and tries are left. Otherwise ends the search.
    fn refine(&self, confirmed: f64, tried: u32) -> State {
        match self.broken {
            Some(broken) if broken / confirmed > 1.0 + self.resolution && tried < REFINEMENTS => {
                State::Refine(confirmed, (confirmed * broken).sqrt(), tried)
            }
            _ => State::Done(Some(confirmed)),
        }
    }

    fn settle(&mut self, rate: f64, kept: bool) {
        *(if kept { &mut self.kept } else { &mut self.broken }) = Some(rate);
    }

    fn narrow(&self) -> State {
        match (self.kept, self.broken) {
            (Some(kept), None) if kept * UP > self.first * MOST => State::Confirm(kept, 0),
            (Some(kept), None) => State::Bracket(kept * UP),
            (None, Some(broken)) if broken * DOWN < self.first * LEAST => State::Done(None),
            (None, Some(broken)) => State::Bracket(broken * DOWN),
            (Some(kept), Some(broken)) if broken / kept > 1.0 + self.resolution => {
                State::Bisect((kept * broken).sqrt(), 0, 0)
            }
            (Some(kept), _) => State::Confirm(kept, 0),
            (None, None) => State::Bracket(self.first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws a number from 0 to 1, by xorshift: equal on every platform.
    fn uniform(state: &mut u64) -> f64 {
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        f64::from(u32::try_from(state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32).unwrap())
            / f64::from(u32::MAX)
    }

    fn begun(tps: f64, seed: u64, ordinal: u32) -> RateSearch {
        RateSearch::new(tps, 0.03, dither(seed, ordinal))
    }

    /// Searches a system that keeps the objective up to `capacity`, with a toss within `blur` of
    /// it. Returns the answer and the number of steps.
    fn search(capacity: f64, tps: f64, blur: f64, seed: u64) -> (Option<f64>, u32, RateSearch) {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut search = begun(tps, seed, 0);
        let mut steps = 0;
        while let Some(ask) = search.request() {
            // Longer windows blur less.
            let blur = if ask.confirming { blur / 2.0 } else { blur };
            let limit = capacity * (1.0 + blur * (2.0 * uniform(&mut state) - 1.0));
            search.answer(ask.rate < limit);
            steps += 1;
            assert!(steps < 60, "it must end");
        }
        (search.max_rate(), steps, search)
    }

    #[test]
    fn a_sharp_capacity_is_found_to_the_resolution_wherever_it_begins() {
        for capacity in [3.0, 800.0, 12_345.0] {
            for start in [0.05, 0.3, 0.9, 1.0, 1.7, 12.0, 50.0] {
                let (found, steps, search) = search(capacity, start * capacity, 0.0, 1);
                let found = found.unwrap();
                assert!(
                    found < capacity && found > capacity / 1.031,
                    "{capacity} from {start}: {found}"
                );
                assert!(search.least_broken().unwrap() >= capacity);
                assert!(steps < 32, "{capacity} from {start}: {steps} steps");
            }
        }
    }

    #[test]
    fn a_blurred_capacity_is_found_without_bias_beyond_the_resolution() {
        let mut found: Vec<f64> = (1..=400)
            .map(|seed| {
                // Where it begins differs from trial to trial, as a closed loop's tps does.
                let (found, ..) = search(1000.0, 1000.0 + 3.0 * (seed % 50) as f64, 0.06, seed);
                found.unwrap()
            })
            .collect();
        found.sort_by(f64::total_cmp);
        let mean = found.iter().sum::<f64>() / 400.0;
        assert!((950.0..1005.0).contains(&mean), "{mean}");
        assert!(found[20] > 900.0 && found[379] < 1040.0, "{} {}", found[20], found[379]);
    }

    /// Returns the share of 400 runs that call two treatments different. Each is searched `repeats`
    /// times, on a quiet host with capacities 1,000 and `other`.
    fn share_called_different(repeats: u32, other: f64) -> f64 {
        let mut state = 11;
        let runs: u32 = 400;
        let different = (1..=runs).filter(|run| {
            let mut ordinal = 0;
            let mut treatment = |capacity: f64| -> Vec<(u32, f64)> {
                // What a closed loop reaches is the treatment's own, and hardly differs between its
                // trials.
                let closed_loop = capacity * (0.9 + 0.4 * uniform(&mut state));
                let trial = |block| {
                    let tps = closed_loop * (1.0 + 0.002 * (uniform(&mut state) - 0.5));
                    ordinal += 1;
                    let mut search = begun(tps, u64::from(*run), ordinal);
                    while let Some(ask) = search.request() {
                        let limit = capacity * (1.0 + 0.002 * (uniform(&mut state) - 0.5));
                        search.answer(ask.rate < limit);
                    }
                    (block, search.max_rate().unwrap())
                };
                (1..=repeats).map(trial).collect()
            };
            let (a, b) = (treatment(1000.0), treatment(other));
            pgdyno_stats::ratio(&a, &b).p.is_some_and(|p| p < 0.05)
        });
        f64::from(u32::try_from(different.count()).unwrap()) / f64::from(runs)
    }

    #[test]
    fn equal_capacities_of_a_quiet_host_are_seldom_called_different() {
        for repeats in [3, 5, 10] {
            let share = share_called_different(repeats, 1000.0);
            println!("{repeats} repeats, equal: {:.1}% called different", 100.0 * share);
            assert!(share <= 0.075, "{repeats} repeats: {share}");
        }
    }

    #[test]
    fn a_trial_draws_its_grid_once_and_each_another() {
        assert_eq!(dither(7, 3).to_bits(), dither(7, 3).to_bits());
        let mean = |draw: &dyn Fn(u32) -> f64| (0..1000).map(draw).sum::<f64>() / 1000.0;
        for mean in [mean(&|trial| dither(1, trial)), mean(&|seed| dither(u64::from(seed), 0))] {
            assert!((0.46..0.54).contains(&mean), "{mean}");
        }
        // Up, down and right at once: the miss is uniform over one step, whose middle is 1.3%.
        for tps in [300.0, 1500.0, 9000.0] {
            let miss = |trial| {
                let mut search = begun(tps, 5, trial);
                while let Some(ask) = search.request() {
                    search.answer(ask.rate < 1000.0);
                }
                (1000.0 / search.max_rate().unwrap()).ln()
            };
            let mean = mean(&miss);
            assert!((0.0120..0.0134).contains(&mean), "from {tps}: {mean}");
            assert!((0..1000).all(|trial| miss(trial) <= grid_step(0.03).ln() + 1e-9));
        }
    }

    #[test]
    fn capacities_that_differ_by_the_resolution_are_told_apart() {
        let share = share_called_different(5, 1030.0);
        println!("5 repeats, 3% apart: {:.1}% called different", 100.0 * share);
        assert!(share >= 0.8, "{share}");
    }

    #[test]
    fn what_nothing_keeps_or_everything_keeps_ends() {
        let (found, steps, _) = search(0.0, 100.0, 0.0, 1);
        assert_eq!((found, steps), (None, 6));
        let (found, _, search) = search(f64::INFINITY, 100.0, 0.0, 1);
        assert!(found.unwrap() > 2000.0 && search.least_broken().is_none());
    }

    #[test]
    fn an_answer_that_is_not_confirmed_goes_down_ever_faster_and_up_again() {
        // Short steps keep it up to 1,000, whole windows only up to so much.
        for limit in [985.0, 950.0, 700.0, 150.0] {
            let mut search = RateSearch::new(1000.0, 0.03, 0.0);
            let mut asked = Vec::new();
            while let Some(ask) = search.request() {
                search.answer(ask.rate < if ask.confirming { limit } else { 1000.0 });
                asked.extend(ask.confirming.then_some(ask.rate));
            }
            let found = search.max_rate().unwrap();
            assert!(found < limit && found > 0.9 * limit, "{limit}: {found} {asked:?}");
            assert!(asked.len() <= 13, "{limit}: {asked:?}");
        }
        let mut never = RateSearch::new(1000.0, 0.03, 0.0);
        let mut tried = 0;
        while let Some(ask) = never.request() {
            never.answer(!ask.confirming && ask.rate < 1000.0);
            tried += u32::from(ask.confirming);
        }
        assert_eq!((never.max_rate(), tried < 20), (None, true));
    }

    #[test]
    fn a_host_that_stalls_now_and_then_costs_precision_and_not_the_answer() {
        // One short step in ten and one whole window in three are broken by something else.
        let mut state = 7;
        for _ in 0..300 {
            let mut search =
                RateSearch::new(1000.0 + 100.0 * uniform(&mut state), 0.03, uniform(&mut state));
            let mut steps = 0;
            while let Some(ask) = search.request() {
                let stall = uniform(&mut state) < if ask.confirming { 0.33 } else { 0.1 };
                search.answer(ask.rate < 800.0 && !stall);
                steps += 1;
            }
            assert!(steps < 45);
            let found = search.max_rate().unwrap();
            assert!(found < 800.0 && found > 20.0, "{found}");
        }
    }
}
