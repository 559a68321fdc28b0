//! A load's ledger at a witness.

use std::io;

use pgdyno_engine::ledger::{ClientLedger, Ledger};
use pgdyno_engine::schedule::{Clock, Moment};
use pgdyno_model::ledger::{Effect, Token};

use super::connection::{Ask, Connection, Deed};

/// The ledger of a load at a witness. Its calls wait for the witness's disk: each client needs a
/// thread of its own.
pub(super) struct WitnessLedger {
    pub(super) connection: Connection,
}

impl Ledger for WitnessLedger {
    fn open(&self, client: u32, _: &Clock) -> io::Result<Box<dyn ClientLedger>> {
        let token = Token { client, sequence: 0 };
        Ok(Box::new(WitnessClient { connection: self.connection.clone(), token }))
    }
}

struct WitnessClient {
    connection: Connection,
    /// The present transaction's.
    token: Token,
}

impl WitnessClient {
    fn tell(&mut self, deed: Deed) -> io::Result<()> {
        self.connection
            .done(Ask::Tell(self.token, deed))
            .map_err(|e| io::Error::new(e.kind(), format!("the witness did not take it: {e}")))
    }
}

impl ClientLedger for WitnessClient {
    fn next(&self) -> u64 {
        self.token.sequence + 1
    }

    fn issued(&mut self, effect: &Effect, _: Moment) -> io::Result<()> {
        self.token.sequence += 1;
        self.tell(Deed::Issued(*effect))
    }

    fn committing(&mut self) -> io::Result<()> {
        self.tell(Deed::Committing)
    }

    fn acknowledged(&mut self, _: Moment) -> io::Result<()> {
        self.tell(Deed::Acknowledged)
    }

    fn failed(&mut self, _: Moment) -> io::Result<()> {
        self.tell(Deed::Failed)
    }
}
