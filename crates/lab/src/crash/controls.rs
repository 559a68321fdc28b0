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
/// How often at most a torn write is tried until it shows.
const TRIES: u32 = 8;

impl Session<'_> {
    /// Plays every control that belongs to the session's faults.
    pub(super) fn controls(&mut self, scratch: &Path) -> Result<(), LabError> {
        let options = &self.subject.options;
        if !options.controls {
            let note = "no positive control was run (--no-controls): nothing shows that the instrument sees";
            self.record.outcome.notes.push(note.into());
            return Ok(());
        }
        let faults = options.faults.clone();
        if faults.contains(&Fault::Power) {
            self.planted_setting(Fault::Power, ("fsync", "off"), 1, scratch)?;
        }
        if faults.contains(&Fault::TornWrite) {
            // A torn page shows only if recovery or a checksum comes to what is torn of it.
            self.planted_setting(Fault::TornWrite, ("full_page_writes", "off"), TRIES, scratch)?;
        }
        let orders = self.orders(Fault::Process, Planted::OneLost, 0);
        let subject = self.grounded(self.subject, faults[0]);
        let round = self.round(&subject, &orders, scratch)?;
        self.conclude("one acknowledged transaction taken back", 1, round);
        Ok(())
    }

    /// Rounds of `fault` with a setting under which it must be seen, up to `tries`, on grounds of their own: these do not
    /// survive it.
    fn planted_setting(
        &mut self,
        fault: Fault,
        (name, value): (&str, &str),
        tries: u32,
        scratch: &Path,
    ) -> Result<(), LabError> {
        let subject = self.subject.with_setting(name, value);
        let subject = self.grounded(&subject, fault);
        self.clear();
        for number in 1..=tries {
            let aim = aims(fault, subject.is_emulated())[0];
            let orders = Orders { aim, ..self.orders(fault, Planted::Nothing, number) };
            let round = self.round(&subject, &orders, scratch)?;
            self.clear();
            if round.verdict.is_failure() || number == tries {
                self.conclude(&format!("{fault} with {name}={value}"), number, round);
                break;
            }
        }
        Ok(())
    }

    fn orders(&mut self, fault: Fault, planted: Planted, number: u32) -> Orders {
        let seed = round_seed(self.subject.options.seed, fault, FIRST_NUMBER + number);
        Orders { fault, number: 0, seed, aim: Aim::Load, planted, first: self.first_token() }
    }

    /// Whether what was planted was seen: as a failure, of whatever kind.
    fn conclude(&mut self, name: &str, tries: u32, round: Round) {
        let name = if tries > 1 { format!("{name} ({tries} rounds)") } else { name.to_owned() };
        self.record.outcome.controls.push(Control {
            name,
            seen: round.verdict.is_failure(),
            verdict: round.verdict,
            reason: round.reason,
        });
    }
}
