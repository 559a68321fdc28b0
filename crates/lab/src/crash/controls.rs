//! Positive controls: rounds that must fail, so that silence means something.

use std::path::Path;

use pgdyno_model::Fault;
use pgdyno_model::crash::{Aim, Control, Round};

use super::round::{Orders, Planted};
use super::{Session, round_seed};
use crate::LabError;

/// Rounds of controls are numbered apart from all others.
const NUMBER: u32 = u32::MAX;

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
        let power = faults.contains(&Fault::Power);
        if power {
            // A ground of its own: it does not survive this.
            let off = self.subject.with_setting("fsync", "off");
            let off = self.grounded(&off, Fault::Power);
            let orders = self.orders(Fault::Power, Planted::Nothing);
            let round = self.round(&off, &orders, scratch)?;
            self.conclude("fsync=off under power loss", round);
            self.clear();
        }
        let orders = self.orders(Fault::Process, Planted::OneLost);
        let subject = self.grounded(self.subject, faults[0]);
        let round = self.round(&subject, &orders, scratch)?;
        self.conclude("one acknowledged transaction taken back", round);
        Ok(())
    }

    fn orders(&mut self, fault: Fault, planted: Planted) -> Orders {
        let seed = round_seed(self.subject.options.seed, fault, NUMBER);
        Orders { fault, number: 0, seed, aim: Aim::Load, planted, first: self.first_token() }
    }

    /// Whether what was planted was seen: as a failure, of whatever kind.
    fn conclude(&mut self, name: &str, round: Round) {
        self.record.outcome.controls.push(Control {
            name: name.to_owned(),
            seen: round.verdict.is_failure(),
            verdict: round.verdict,
            reason: round.reason,
        });
    }
}
