//! Details of trials as text elements: JSON, gzip, base64, within a budget of bytes.

use std::io::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::detail::TrialDetail;
use pgdyno_analysis::TrialView;

/// Bytes of a page without the front end, so that the file stays below 25 MB.
const PAGE: usize = 24_000_000;

/// Bytes of all details together, where the rest of the page leaves room for so many.
const BUDGET: usize = 14_000_000;

/// Most bytes of one trial's detail: decoding more would keep a reader waiting.
const MOST: usize = 4_000_000;

/// Most buckets of time: more than a wide screen has pixels for.
const FINEST: usize = 1800;

/// Fewest buckets: coarser ones would hide what happened, whatever their size.
const COARSEST: usize = 12;

/// Encodes the details of `trials`, each with its index. Trials without seconds and telemetry have
/// none. The rest of the page has `taken` bytes.
pub(super) fn details(
    trials: &[TrialView],
    taken: usize,
) -> serde_json::Result<Vec<(usize, String)>> {
    let heavy = trials.iter().filter(|trial| TrialDetail::rows(trial) > 0).count();
    let budget = (PAGE.saturating_sub(taken).min(BUDGET) / heavy.max(1)).min(MOST);
    let mut out = Vec::with_capacity(heavy);
    for (i, trial) in trials.iter().enumerate() {
        if let Some(text) = within(trial, budget)? {
            out.push((i, text));
        }
    }
    Ok(out)
}

/// Encodes a trial's detail with as many buckets as `budget` has room for.
fn within(trial: &TrialView, budget: usize) -> serde_json::Result<Option<String>> {
    let mut limit = FINEST;
    loop {
        let Some(detail) = TrialDetail::new(trial, limit) else { return Ok(None) };
        let text = encode(&detail)?;
        if text.len() <= budget || limit <= COARSEST {
            return Ok(Some(text));
        }
        // A limit beyond the rows would change nothing.
        limit = (limit.min(TrialDetail::rows(trial)) / 2).max(COARSEST);
    }
}

fn encode(detail: &TrialDetail) -> serde_json::Result<String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // At once: the encoder clears its buffer at each write, and JSON is written in small parts.
    let json = serde_json::to_vec(detail)?;
    let written = encoder.write_all(&json).and_then(|()| encoder.finish());
    let bytes = written.map_err(serde_json::Error::io)?;
    Ok(BASE64_STANDARD.encode(bytes))
}
