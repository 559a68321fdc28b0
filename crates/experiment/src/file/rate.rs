//! Rates over time: lists of stages, and series in files.

use std::path::Path;

use pgdyno_model::experiment::Factor;
use pgdyno_model::level::LevelValue;
use pgdyno_model::load_rate::{LoadRate, LoadRateError, RateStage};
use pgdyno_model::units::Span;

use super::error::Complaint;
use super::factors::sets_of;
use super::levels::setting_value;
use super::source::Source;

/// Largest file of a series (bytes).
const LARGEST: u64 = 8 << 20;
/// First line of a series.
const HEADER: &str = "time,rate";

/// Returns the text of `value`, a rate that `key` has: its own, or that of the stages of a list or
/// a series.
pub(super) fn rate_value(
    key: &str,
    value: &toml::Value,
    source: &Source,
) -> Result<LevelValue, Complaint> {
    let Some(stages) = value.as_array() else {
        return read_series(setting_value(key, value)?, source);
    };
    let stages = stages.iter().map(stage).collect::<Result<_, _>>()?;
    Ok(LevelValue::Text(LoadRate::staged(stages)?.to_string()))
}

/// Reads `["60s", 500]` or `["60s", 500, 2000]`.
fn stage(value: &toml::Value) -> Result<RateStage, Complaint> {
    let parts = value.as_array().map(Vec::as_slice);
    let number = |value: &toml::Value| value.as_float().or(value.as_integer().map(|n| n as f64));
    let read = match parts {
        Some([length, from]) => (length.as_str(), number(from), number(from)),
        Some([length, from, to]) => (length.as_str(), number(from), number(to)),
        _ => (None, None, None),
    };
    let (Some(length), Some(from), Some(to)) = read else {
        return Err(Complaint::new(format!("`{value}` is no stage of a rate"))
            .with_help("write it like `[\"60s\", 500]`, or `[\"30s\", 500, 2000]` for a ramp"));
    };
    let length: Span = length.parse().map_err(|e| Complaint::new(format!("{e}")))?;
    Ok(RateStage::new(length, from, to)?)
}

impl From<LoadRateError> for Complaint {
    fn from(error: LoadRateError) -> Self {
        Self::new(error.to_string())
    }
}

/// Whether `text` names a file with the series of a rate.
pub(super) fn is_series(text: &str) -> bool {
    Path::new(text).extension().is_some_and(|extension| extension == "csv")
}

/// Puts the stages of a series in the place of its file's name, if `value` is one.
fn read_series(value: LevelValue, source: &Source) -> Result<LevelValue, Complaint> {
    match value {
        LevelValue::Text(name) if is_series(&name) => {
            let path = source.absolute(name.into());
            let cannot =
                |why| Complaint::new(format!("cannot take rates of {}: {why}", path.display()));
            let read = text_of(&path).and_then(|text| series(&text)).map_err(cannot);
            read.map(|rate| LevelValue::Text(rate.to_string())).map_err(|complaint| {
                complaint.with_help(format!(
                    "below a first line `{HEADER}`, each line has a second and the transactions \
                     per second from then on: `0,500`, `60,2000`"
                ))
            })
        }
        other => Ok(other),
    }
}

/// Puts the stages of series in the place of files' names, in all levels of `factors`. Labels stay.
pub(super) fn read_factors(factors: &mut [Factor], source: &Source) -> Result<(), Complaint> {
    for (_, value) in sets_of(factors).filter(|(key, _)| key.is_rate()) {
        *value = read_series(value.clone(), source)?;
    }
    Ok(())
}

fn text_of(path: &Path) -> Result<String, String> {
    let metadata = path.metadata().map_err(|e| e.to_string())?;
    if !metadata.is_file() {
        return Err("it is no file".to_owned());
    }
    if metadata.len() > LARGEST {
        return Err(format!("it has more than {} MiB", LARGEST >> 20));
    }
    std::fs::read_to_string(path).map_err(|e| e.to_string())
}

/// Reads a series: from each line's second on, its rate, up to the next line's second. The last one
/// lasts as long as the one before.
fn series(text: &str) -> Result<LoadRate, String> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let header = lines.next().map_or("", |(_, line)| line.trim_start_matches('\u{feff}').trim());
    if header.replace(' ', "") != HEADER {
        return Err(format!("its first line is not `{HEADER}`"));
    }
    let mut points: Vec<(u64, f64)> = Vec::new();
    for (number, line) in lines {
        let wrong = |why: &str| format!("line {number}, `{line}`: {why}");
        let (time, rate) = line.split_once(',').ok_or_else(|| wrong("it has no comma"))?;
        let time = time.trim().parse().map_err(|_| wrong("its time is no whole second"))?;
        let rate = rate.trim().parse().map_err(|_| wrong("its rate is no number"))?;
        if points.last().is_some_and(|(before, _)| *before >= time) {
            return Err(wrong("its second is not after that of the line before"));
        }
        points.push((time, rate));
    }
    let lengths: Vec<u64> = points.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    let Some(last) = lengths.last() else { return Err("it has fewer than two rates".to_owned()) };
    let lengths = lengths.iter().chain([last]);
    let stages = points
        .iter()
        .zip(lengths)
        .map(|((_, rate), seconds)| RateStage::new(Span::from_secs(*seconds), *rate, *rate));
    let stages = stages.collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    LoadRate::staged(stages).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_has_a_rate_from_each_second_on() {
        let read = series("time,rate\n1700000000,500\n1700000060, 2000.5 \n\n1700000070,0\n");
        assert_eq!(read.unwrap().to_string(), "500 for 1m, 2000.5 for 10s, 0 for 10s");
        for (text, word) in [
            ("", "first line"),
            ("0,500\n60,500\n", "first line"),
            ("time,rate\n0,500\n", "fewer than two"),
            ("time,rate\n0,500\n0,600\n", "line 3, `0,600`"),
            ("time,rate\n0.5,500\n", "no whole second"),
            ("time,rate\n0,fast\n", "no number"),
            ("time,rate\n0;500\n", "no comma"),
            ("time,rate\n0,-5\n1,5\n", "0 or more"),
            ("time,rate\n0,0\n1,0\n", "nothing is due"),
        ] {
            let error = series(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
