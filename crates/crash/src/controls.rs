//! Positive controls: rounds that must fail, so that silence means something.

use pgdyno_experiment::checks::crash::STALE_FOLDERS;
use pgdyno_model::Fault;
use pgdyno_model::crash::{Aim, Control, Round};

use super::aim::aims;
use super::round_plan::{Planted, RoundPlan};
use super::session::{CrashSession, round_seed};
use pgdyno_provision::BenchError;

/// Rounds of controls are numbered apart from all others.
const FIRST_NUMBER: u32 = 1 << 30;
/// How often at most a fault of the disk is tried until it shows.
const TRIES: u32 = 3;

/// Runs the positive controls of every fault of `session`.
///
/// # Errors
/// pgdyno itself cannot go on, or a signal asked to stop.
pub(super) fn run_controls(session: &mut CrashSession<'_>) -> Result<(), BenchError> {
    Controls(session).run()
}

/// Runs positive controls in a session.
struct Controls<'s, 'a>(&'s mut CrashSession<'a>);

impl Controls<'_, '_> {
    fn run(&mut self) -> Result<(), BenchError> {
        let options = &self.0.subject.options;
        if !options.controls {
            let note = "no positive control was run (`--no-controls`, or `controls = false`): \
                        nothing shows that the instrument sees";
            self.0.record.outcome.notes.push(note.into());
            return Ok(());
        }
        for fault in options.faults.clone() {
            match fault {
                Fault::Power => {
                    self.planted_setting(fault, ("fsync", "off"), 1)?;
                    for folder in STALE_FOLDERS {
                        self.stale_files(folder)?;
                    }
                }
                Fault::TornWrite => {
                    self.planted_setting(fault, ("full_page_writes", "off"), TRIES)?;
                }
                Fault::IoError => {
                    self.planted_setting(fault, ("data_sync_retry", "on"), TRIES)?;
                }
                Fault::Process | Fault::Immediate | Fault::Backend | Fault::DiskFull => {
                    self.one_lost(fault)?;
                }
                // It is planted itself; a plug is pulled by hand.
                Fault::EmulatedLie | Fault::Plug => {}
            }
        }
        Ok(())
    }

    /// A round of `fault` after which one acknowledged transaction is taken back, with all that it
    /// did.
    fn one_lost(&mut self, fault: Fault) -> Result<(), BenchError> {
        let subject = self.0.prepare(self.0.subject, fault);
        let plan = self.plan(fault, Planted::OneLost, 0);
        let round = self.0.round(&subject, &plan)?;
        self.conclude(fault, "one acknowledged transaction taken back", 1, round);
        Ok(())
    }

    /// A power loss that finds the files of `folder` as they were when the round began.
    fn stale_files(&mut self, folder: &'static str) -> Result<(), BenchError> {
        let subject = self.0.prepare(self.0.subject, Fault::Power);
        let plan = self.plan(Fault::Power, Planted::StaleFiles(folder), 0);
        let round = self.0.round(&subject, &plan)?;
        self.0.clear();
        self.conclude(Fault::Power, &format!("power with {folder}/ not flushed"), 1, round);
        Ok(())
    }

    /// Rounds of `fault` with a setting under which it must be seen, up to `tries`, on a test bed
    /// of their own: it does not survive them.
    fn planted_setting(
        &mut self,
        fault: Fault,
        (name, value): (&str, &str),
        tries: u32,
    ) -> Result<(), BenchError> {
        let mut subject = self.0.subject.with_setting(name, value);
        if fault == Fault::TornWrite {
            subject.write_in_place();
        }
        let subject = self.0.prepare(&subject, fault);
        self.0.clear();
        for number in 1..=tries {
            let plan = self.plan(fault, Planted::Nothing, number);
            let round = self.0.round(&subject, &plan)?;
            self.0.clear();
            if round.verdict.is_failure() || number == tries {
                self.conclude(fault, &format!("{fault} with {name}={value}"), number, round);
                break;
            }
        }
        Ok(())
    }

    fn plan(&mut self, fault: Fault, planted: Planted, number: u32) -> RoundPlan {
        let seed = round_seed(self.0.subject.options.seed, fault, FIRST_NUMBER + number);
        // Right after a checkpoint nothing but the checkpoint's own flushes stands behind what it
        // made superfluous.
        let aim = aims(fault, self.0.subject.on_storages_for(fault).is_emulated())[0];
        let aim = if fault == Fault::Power { Aim::AfterCheckpoint } else { aim };
        let first = self.0.first_token();
        RoundPlan { fault, number: 0, seed, aim, planted, until_failure: true, first }
    }

    /// Records whether the planted failure was detected: any kind of failure counts.
    fn conclude(&mut self, fault: Fault, name: &str, tries: u32, round: Round) {
        let name = if tries > 1 { format!("{name} ({tries} rounds)") } else { name.to_owned() };
        self.0.record.outcome.controls.push(Control {
            name,
            fault: Some(fault),
            seen: round.verdict.is_failure(),
            verdict: round.verdict,
            reason: round.reason,
        });
    }
}
