//! Positive controls: rounds that must fail, so that silence means something.

use std::path::Path;

use pgdyno_model::Fault;
use pgdyno_model::crash::{Aim, Control, Round};

use super::aim::aims;
use super::round::{Orders, Planted};
use super::{Session, round_seed};
use crate::LabError;

/// Rounds of controls are numbered apart from all others.
const FIRST_NUMBER: u32 = 1 << 30;
/// How often at most a fault of the disk is tried until it shows.
const TRIES: u32 = 3;

/// Folders of PGDATA whose files a power loss must not find unflushed: tables and indexes, the
/// commit log, the control file and shared catalogs. WAL is what fsync=off is planted for.
const FOLDERS: [&str; 3] = ["base", "pg_xact", "global"];

/// How many rounds the controls of `fault` take, all of them seen at once.
pub(crate) fn control_rounds(fault: Fault) -> u32 {
    match fault {
        Fault::Power => 1 + FOLDERS.len() as u32,
        Fault::EmulatedLie | Fault::Plug => 0,
        _ => 1,
    }
}

impl Session<'_> {
    /// Plays the controls of every fault of the session.
    pub(super) fn controls(&mut self, scratch: &Path) -> Result<(), LabError> {
        let options = &self.subject.options;
        if !options.controls {
            let note = "no positive control was run (`--no-controls`, or `controls = false`): nothing shows that the \
                        instrument sees";
            self.record.outcome.notes.push(note.into());
            return Ok(());
        }
        for fault in options.faults.clone() {
            match fault {
                Fault::Power => {
                    self.planted_setting(fault, ("fsync", "off"), 1, scratch)?;
                    for folder in FOLDERS {
                        self.stale_files(folder, scratch)?;
                    }
                }
                Fault::TornWrite => {
                    self.planted_setting(fault, ("full_page_writes", "off"), TRIES, scratch)?;
                }
                Fault::IoError => {
                    self.planted_setting(fault, ("data_sync_retry", "on"), TRIES, scratch)?;
                }
                Fault::Process | Fault::Immediate | Fault::Backend | Fault::DiskFull => {
                    self.one_lost(fault, scratch)?;
                }
                // It is planted itself; a plug is pulled by hand.
                Fault::EmulatedLie | Fault::Plug => {}
            }
        }
        Ok(())
    }

    /// A round of `fault` after which one acknowledged transaction is taken back, with all that it
    /// did.
    fn one_lost(&mut self, fault: Fault, scratch: &Path) -> Result<(), LabError> {
        let subject = self.grounded(self.subject, fault);
        let orders = self.orders(fault, Planted::OneLost, 0);
        let round = self.round(&subject, &orders, scratch)?;
        self.conclude(fault, "one acknowledged transaction taken back", 1, round);
        Ok(())
    }

    /// A power loss that finds the files of `folder` as they were when the round began.
    fn stale_files(&mut self, folder: &'static str, scratch: &Path) -> Result<(), LabError> {
        let subject = self.grounded(self.subject, Fault::Power);
        let orders = self.orders(Fault::Power, Planted::StaleFiles(folder), 0);
        let round = self.round(&subject, &orders, scratch)?;
        self.clear();
        self.conclude(Fault::Power, &format!("power with {folder}/ not flushed"), 1, round);
        Ok(())
    }

    /// Rounds of `fault` with a setting under which it must be seen, up to `tries`, on grounds of
    /// their own: these do not survive it.
    fn planted_setting(
        &mut self,
        fault: Fault,
        (name, value): (&str, &str),
        tries: u32,
        scratch: &Path,
    ) -> Result<(), LabError> {
        let mut subject = self.subject.with_setting(name, value);
        if fault == Fault::TornWrite {
            subject.write_in_place();
        }
        let subject = self.grounded(&subject, fault);
        self.clear();
        for number in 1..=tries {
            let orders = self.orders(fault, Planted::Nothing, number);
            let round = self.round(&subject, &orders, scratch)?;
            self.clear();
            if round.verdict.is_failure() || number == tries {
                self.conclude(fault, &format!("{fault} with {name}={value}"), number, round);
                break;
            }
        }
        Ok(())
    }

    fn orders(&mut self, fault: Fault, planted: Planted, number: u32) -> Orders {
        let seed = round_seed(self.subject.options.seed, fault, FIRST_NUMBER + number);
        // Right after a checkpoint nothing but the checkpoint's own flushes stands behind what it
        // made superfluous.
        let aim = aims(fault, self.subject.grounded(fault).is_emulated())[0];
        let aim = if fault == Fault::Power { Aim::AfterCheckpoint } else { aim };
        Orders { fault, number: 0, seed, aim, planted, first: self.first_token() }
    }

    /// Whether what was planted was seen: as a failure, of whatever kind.
    fn conclude(&mut self, fault: Fault, name: &str, tries: u32, round: Round) {
        let name = if tries > 1 { format!("{name} ({tries} rounds)") } else { name.to_owned() };
        self.record.outcome.controls.push(Control {
            name,
            fault: Some(fault),
            seen: round.verdict.is_failure(),
            verdict: round.verdict,
            reason: round.reason,
        });
    }
}
