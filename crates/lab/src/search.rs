//! How the highest rate that keeps an objective is looked for: rates out, verdicts in. Knows no clock and no server.
//!
//! Brackets it, from half of what a closed loop reaches, by factors; bisects the bracket, each rate tried twice, and once more where
//! the two disagree, since near the limit a short step is a toss; then confirms the answer over a whole window. Where it is not confirmed,
//! goes down by the resolution, twice, four times it, …, and up again by bisection with whole windows: a longer window meets what short
//! ones missed, and by how much is not known.

/// Factor by which the bracket grows.
const UP: f64 = 1.5;
/// Factor by which it goes down.
const DOWN: f64 = 0.5;
/// Rates below the first by more than this are not tried.
const LEAST: f64 = 1.0 / 128.0;
/// Rates above the first by more than this are not tried: what a closed loop reaches is no bound, but no such multiple of it is reached.
const MOST: f64 = 64.0;
/// Confirmations on the way up again.
const REFINEMENTS: u32 = 3;

/// What is to be tried next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ask {
    /// The rate (1/s).
    pub(crate) rate: f64,
    /// Whether over a whole window.
    pub(crate) confirming: bool,
}

/// A search under way.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    first: f64,
    resolution: f64,
    /// The highest rate that kept the objective, and the lowest that did not.
    kept: Option<f64>,
    broken: Option<f64>,
    state: State,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    /// The bracket is open at an end.
    Bracket(f64),
    /// The bracket is closed; the verdicts on a rate so far: (kept, broken).
    Bisect(f64, u32, u32),
    /// The answer is to be confirmed, with so many failures before.
    Confirm(f64, u32),
    /// A confirmed rate, a higher one that is to be confirmed, and how many such were tried before.
    Refine(f64, f64, u32),
    /// It is.
    Done(Option<f64>),
}

impl Search {
    /// From half of the closed loop's `tps` on (1/s, positive).
    pub(crate) fn new(tps: f64, resolution: f64) -> Self {
        let first = DOWN * tps;
        Self { first, resolution, kept: None, broken: None, state: State::Bracket(first) }
    }

    /// What to try next; none when it is over.
    pub(crate) fn ask(&self) -> Option<Ask> {
        match self.state {
            State::Bracket(rate) | State::Bisect(rate, ..) => Some(Ask { rate, confirming: false }),
            State::Confirm(rate, _) | State::Refine(_, rate, _) => Some(Ask { rate, confirming: true }),
            State::Done(_) => None,
        }
    }

    /// The answer, once it is over; none if no rate was confirmed.
    pub(crate) fn max_rate(&self) -> Option<f64> {
        match self.state {
            State::Done(answer) => answer,
            _ => None,
        }
    }

    /// The lowest rate that was found not to keep the objective.
    pub(crate) fn least_broken(&self) -> Option<f64> {
        self.broken
    }

    /// What was asked for did, or did not, keep the objective.
    pub(crate) fn answer(&mut self, kept: bool) {
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
                if lower < self.first * LEAST { State::Done(None) } else { State::Confirm(lower, failed + 1) }
            }
            State::Refine(_, rate, tried) if kept => self.refine(rate, tried + 1),
            State::Refine(confirmed, rate, tried) => {
                self.broken = Some(self.broken.map_or(rate, |b| b.min(rate)));
                self.refine(confirmed, tried + 1)
            }
            State::Done(answer) => State::Done(answer),
        };
    }

    /// `confirmed` is; what lies between it and the lowest broken rate is looked at, if that is far and there are tries left.
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

    /// A number from 0 to 1, the same everywhere.
    fn uniform(state: &mut u64) -> f64 {
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        f64::from(u32::try_from(state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32).unwrap())
            / f64::from(u32::MAX)
    }

    /// Searches a system that keeps its objective up to `capacity`, with a toss within `blur` of it; the answer and the number of steps.
    fn search(capacity: f64, tps: f64, blur: f64, seed: u64) -> (Option<f64>, u32, Search) {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut search = Search::new(tps, 0.03);
        let mut steps = 0;
        while let Some(ask) = search.ask() {
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
                assert!(found < capacity && found > capacity / 1.031, "{capacity} from {start}: {found}");
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

    #[test]
    fn what_nothing_keeps_or_everything_keeps_ends() {
        let (found, steps, _) = search(0.0, 100.0, 0.0, 1);
        assert_eq!((found, steps), (None, 8));
        let (found, _, search) = search(f64::INFINITY, 100.0, 0.0, 1);
        assert!(found.unwrap() > 2000.0 && search.least_broken().is_none());
    }

    #[test]
    fn an_answer_that_is_not_confirmed_goes_down_ever_faster_and_up_again() {
        // Short steps keep it up to 1,000, whole windows only up to so much.
        for limit in [985.0, 950.0, 700.0, 150.0] {
            let mut search = Search::new(1000.0, 0.03);
            let mut asked = Vec::new();
            while let Some(ask) = search.ask() {
                search.answer(ask.rate < if ask.confirming { limit } else { 1000.0 });
                asked.extend(ask.confirming.then_some(ask.rate));
            }
            let found = search.max_rate().unwrap();
            assert!(found < limit && found > 0.9 * limit, "{limit}: {found} {asked:?}");
            assert!(asked.len() <= 13, "{limit}: {asked:?}");
        }
        let mut never = Search::new(1000.0, 0.03);
        let mut tried = 0;
        while let Some(ask) = never.ask() {
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
            let mut search = Search::new(1000.0 + 100.0 * uniform(&mut state), 0.03);
            let mut steps = 0;
            while let Some(ask) = search.ask() {
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
