//! Another connection in place of one that was lost: tries with pauses, up to a limit of time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgdyno_connect::ConnectError;
use pgdyno_connect::control::ControlError;

use crate::connection::refused;
use crate::usage_error::{Stopped, UsageError};

/// Longest time without a connection before the initialization gives up.
pub(super) const LIMIT: Duration = Duration::from_secs(60);
/// Longest wait for a server in one try, unless the user's `connect_timeout` is another.
const TRY_LIMIT: Duration = Duration::from_secs(5);
/// Wait before the second try; doubled before each further one.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest wait before a try.
pub(super) const MAX_PAUSE: Duration = Duration::from_secs(1);
/// Time between two lines that say why there is no connection yet.
const LINE: Duration = Duration::from_secs(5);
/// Longest time for which a pause does not see the stop flag.
const WATCH: Duration = Duration::from_millis(50);

/// Why a try failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// Another try may succeed.
    Passing(UsageError),
    /// No other try will.
    Final(UsageError),
}

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        let is_final = match &error {
            ControlError::Connect(
                ConnectError::Authentication { .. } | ConnectError::Interrupted { .. },
            ) => true,
            // A role that may not connect; or the database is not there any more. A server that
            // starts up, or has no room for another session, is no such case.
            _ => error.is_of_database() || error.sqlstate().is_some_and(|c| c.starts_with("28")),
        };
        let error = refused(&error);
        if is_final { Self::Final(error) } else { Self::Passing(error) }
    }
}

/// Returns how long one try may wait for a server if `left` is left of all tries.
pub(super) fn try_limit(of_user: Option<Duration>, left: Duration) -> Duration {
    // A limit of zero would be none.
    of_user.unwrap_or(TRY_LIMIT).min(left).max(WATCH)
}

/// Calls `attempt` with the time that is left until it succeeds, for `limit` at most.
///
/// `say` is given lines for the user, of this function's and of `attempt`'s.
///
/// # Errors
/// The last failure, or the stop flag was set.
pub(super) fn persist<T>(
    limit: Duration,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&str),
    mut attempt: impl FnMut(&mut dyn FnMut(&str), Duration) -> Result<T, Failure>,
) -> Result<T, Stopped> {
    let began = Instant::now();
    let (mut pause, mut next_line) = (PAUSE, LINE);
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Stopped::Interrupted);
        }
        let error = match attempt(say, limit.saturating_sub(began.elapsed())) {
            Ok(done) => return Ok(done),
            Err(Failure::Final(error)) => return Err(error.into()),
            Err(Failure::Passing(error)) => error,
        };
        let elapsed = began.elapsed();
        if elapsed >= limit {
            return Err(error.during(&format!("no connection within {limit:?}")).into());
        }
        if elapsed >= next_line {
            say(&format!("no connection after {} s: {}", elapsed.as_secs(), error.what()));
            next_line = elapsed + LINE;
        }
        rest(pause.min(limit - elapsed), stop);
        pause = MAX_PAUSE.min(pause * 2);
    }
}

/// Waits for `pause`, or until the stop flag is set.
pub(super) fn rest(pause: Duration, stop: &AtomicBool) {
    let until = Instant::now() + pause;
    while !stop.load(Ordering::Relaxed)
        && let Some(left) = until.checked_duration_since(Instant::now())
    {
        std::thread::sleep(left.min(WATCH));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Persists for `limit` with the outcomes of `attempt`, which is given the number of the try.
    fn persisted(
        limit: Duration,
        stop: &AtomicBool,
        mut attempt: impl FnMut(u32) -> Result<u32, Failure>,
    ) -> Result<u32, Stopped> {
        let mut tries = 0;
        persist(limit, stop, &mut |_| {}, |_, _| {
            tries += 1;
            attempt(tries)
        })
    }

    fn passing() -> Failure {
        Failure::Passing(UsageError::new("not yet"))
    }

    #[test]
    fn a_server_is_tried_until_it_serves_and_no_longer_than_the_limit() {
        let go_on = AtomicBool::new(false);
        let served = persisted(LIMIT, &go_on, |n| if n < 3 { Err(passing()) } else { Ok(n) });
        assert!(matches!(served, Ok(3)), "{served:?}");
        let limit = Duration::from_millis(250);
        let mut tries = 0;
        let gave_up = persisted(limit, &go_on, |n| {
            tries = n;
            Err(passing())
        });
        let Err(Stopped::Error(error)) = gave_up else { panic!("{gave_up:?}") };
        assert!(error.what().ends_with(": not yet") && tries > 1, "{error:?} {tries}");
    }

    #[test]
    fn a_final_failure_and_the_stop_flag_end_the_tries() {
        let stop = AtomicBool::new(false);
        let mut tries = 0;
        let refused = persisted(LIMIT, &stop, |n| {
            tries = n;
            Err(Failure::Final(UsageError::new("never")))
        });
        assert!(matches!(refused, Err(Stopped::Error(_))) && tries == 1, "{refused:?} {tries}");
        let stopped = persisted(LIMIT, &stop, |n| {
            tries = n;
            stop.store(true, Ordering::Relaxed);
            Err(passing())
        });
        assert!(matches!(stopped, Err(Stopped::Interrupted)) && tries == 1, "{stopped:?} {tries}");
    }
}
