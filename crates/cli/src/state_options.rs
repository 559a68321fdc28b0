//! The options that name a state of a recorded disk.

use clap::Args;
use pgdyno_lab::{DiskState, Tear};

#[derive(Args, Clone, Debug)]
pub(crate) struct StateOptions {
    /// The newest write that is there, by its number [default: the newest of the log]
    #[arg(long, value_name = "N")]
    newest: Option<u64>,
    /// Earlier writes that are not there
    #[arg(long, value_name = "N", value_delimiter = ',')]
    omit: Vec<u64>,
    /// A write of which only the first bytes are there
    #[arg(long, value_name = "N:BYTES", value_parser = tear)]
    torn: Option<Tear>,
}

impl StateOptions {
    /// Returns the state that is named, of a log whose newest write is `newest`.
    pub(crate) fn state(&self, newest: u64) -> DiskState {
        let mut omitted = self.omit.clone();
        omitted.sort_unstable();
        DiskState { newest: self.newest.unwrap_or(newest), omitted, torn: self.torn }
    }
}

/// Reads `N:BYTES`.
fn tear(text: &str) -> Result<Tear, String> {
    let parts =
        text.split_once(':').and_then(|(n, bytes)| Some((n.parse().ok()?, bytes.parse().ok()?)));
    let (write, kept) =
        parts.ok_or("say the write's number and how many bytes of it are there: 12:4096")?;
    Ok(Tear { write, kept })
}
