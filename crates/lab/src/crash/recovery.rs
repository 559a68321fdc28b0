//! What follows a fault: recovery within a limit, what is planted for a control, and a look at what
//! is there.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pgdyno_durability::Aftermath;
use pgdyno_engine::random::Random;
use pgdyno_host::fault::FileBaseline;
use pgdyno_host::postgres::{Cluster, StopMode};
use pgdyno_model::Fault;
use pgdyno_model::crash::Aim;
use pgdyno_model::ledger::{History, State};

use super::ground::{DATABASE, Ground};
use super::round::{Orders, Planted, Surroundings};
use super::strike::Struck;
use super::verify::{self, Before, Terms};
use crate::LabError;

/// What a server came to after a fault.
pub(super) struct Recovered {
    pub(super) aftermath: Aftermath,
    /// Until it took connections; none if it did not.
    pub(super) took: Option<Duration>,
    /// What it logged meanwhile.
    pub(super) log: String,
}

impl Recovered {
    /// The filesystem could not be mounted again: a failure of its own, or something around it that
    /// says nothing of it.
    fn without_mount(error: &LabError) -> Self {
        let words = error.in_words();
        let aftermath = match error.is_around_the_storage() {
            true => Aftermath::NotTried(words),
            false => Aftermath::WillNotMount(words),
        };
        Self { aftermath, took: None, log: String::new() }
    }
}

impl Orders {
    /// Lets the server recover, a second fault in the middle of it where that is the aim, and looks
    /// at what is there.
    #[allow(clippy::too_many_arguments, reason = "all that a round has come to")]
    pub(super) fn recover(
        &self,
        ground: &mut Ground,
        before: &Before,
        history: &History,
        struck: &Struck,
        stale: Option<&FileBaseline>,
        draws: &mut Random,
        around: &Surroundings<'_>,
    ) -> Result<Recovered, LabError> {
        let Surroundings { subject, stop, .. } = *around;
        self.tell(around, "recovery");
        if self.aim == Aim::Recovery {
            if let Err(e) = ground.power_on(stop) {
                return Ok(Recovered::without_mount(&e));
            }
            ground.cluster().begin_start()?;
            std::thread::sleep(
                Duration::from_millis(20) + Duration::from_millis(150).mul_f64(draws.unit()),
            );
            match self.fault {
                Fault::Power | Fault::EmulatedLie => {
                    ground.cut_power(0.0)?;
                }
                Fault::Immediate => ground.cluster().stop(StopMode::Immediate),
                _ => {
                    ground.cluster().kill();
                    ground.cluster().wait_dead();
                }
            }
        }
        if let Err(e) = ground.power_on(stop) {
            return Ok(Recovered::without_mount(&e));
        }
        if let Some(stale) = stale {
            stale.put_back()?;
        }
        let mark = struck.log_mark.unwrap_or_else(|| ground.cluster().log_mark());
        let began = Instant::now();
        let limit = subject.options.recovery_limit.0;
        let up = match self.fault {
            // Its postmaster lives, and recovers by itself.
            Fault::Backend => ground.cluster().wait_ready(limit, stop),
            _ => ground.cluster().start_within(limit, stop),
        };
        let took = began.elapsed();
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        if let Err(e) = up {
            ground.cluster().stop(StopMode::Immediate);
            // One that did not even begin to tell: what it told before.
            let log = Some(ground.cluster().log_since(mark)).filter(|log| !log.is_empty());
            let log = log.unwrap_or_else(|| ground.cluster().log_since(0));
            let aftermath = Aftermath::WillNotStart(in_a_line(&LabError::from(e), &log));
            return Ok(Recovered { aftermath, took: None, log });
        }
        self.tell(around, "verification");
        if self.planted == Planted::OneLost {
            take_back(ground.cluster(), history)?;
        }
        if let Some(interfere) = &subject.interference.after_recovery {
            interfere(&ground.cluster().control_target(DATABASE), &ground.cluster().data());
        }
        let terms = Terms { scale: subject.options.scale, limit, stop };
        let found = verify::look(ground.cluster(), before, mark, &terms)?;
        let log = ground.cluster().log_since(mark);
        Ok(Recovered { aftermath: Aftermath::Up(Box::new(found)), took: Some(took), log })
    }
}

/// Takes one acknowledged transaction back, and all that it did: every rule but the ledger's holds.
pub(super) fn take_back(cluster: &Cluster, history: &History) -> Result<(), LabError> {
    let Some(entry) = history.entries().find(|e| e.state == State::Acknowledged) else {
        return Ok(());
    };
    let (token, effect) = (entry.token, entry.effect);
    let sql = format!(
        "BEGIN; DELETE FROM pgdyno_token WHERE client = {} AND sequence = {}; \
         UPDATE pgbench_accounts SET abalance = abalance - ({delta}) WHERE aid = {}; \
         UPDATE pgbench_tellers SET tbalance = tbalance - ({delta}) WHERE tid = {}; \
         UPDATE pgbench_branches SET bbalance = bbalance - ({delta}) WHERE bid = {}; COMMIT",
        token.client,
        token.sequence,
        effect.account,
        effect.teller,
        effect.branch,
        delta = effect.delta,
    );
    let mut client = cluster.control(DATABASE)?;
    crate::run::execute(&mut client, "plant a lost transaction", &sql)
}

/// Why a server did not come back, in a line: what was seen, and the gravest that it said.
pub(super) fn in_a_line(error: &LabError, log: &str) -> String {
    let seen = error.to_string();
    let seen = seen.lines().next().unwrap_or_default();
    let seen = seen.split("; its last lines").next().unwrap_or_default();
    let said = log.lines().find(|line| line.contains("PANIC:") || line.contains("FATAL:  invalid"));
    let said = said.or_else(|| {
        log.lines().find(|line| line.contains("FATAL:") && !line.contains("the database system is"))
    });
    match said.and_then(|line| line.split_once("] ")) {
        Some((_, said)) => format!("{seen}; it said: {said}"),
        None => seen.to_owned(),
    }
}
