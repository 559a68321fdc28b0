//! Roles of a table's columns by their names, in the languages of the reports that were read.

use crate::words::{self, Words};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The n-th repeat.
    Repeat(u32),
    /// Transactions in a second, or another throughput.
    Tps,
    /// Measurement that only warms up, and is no repeat.
    WarmUp,
    Mean,
    Ratio,
    Share,
    Spread,
    /// A cell that the one before it spans.
    Spanned,
    Other,
}

/// Returns the role of a column by its name.
pub(super) fn role(name: &str) -> Role {
    let lower = name.trim().to_lowercase();
    let words: Vec<&str> = words::split(&lower);
    let begins = |starts: Words| words.iter().any(|w| starts.any_starts(w));
    let is = |known: Words| words.iter().any(|w| known.has(w));
    // Languages that part no words.
    let has = |known: Words| known.any_in(&lower);
    if lower.is_empty() {
        return Role::Spanned;
    }
    if has(Words("warmup|warm-up|warm up|прогрев|预热")) {
        return Role::WarmUp;
    }
    let other = begins(Words("lat|cpu|util|idle|wait|hit|read|writ|client|klient|user|thread"))
        || is(Words("ms|us|s|iops|mb|gb"))
        || has(Words("延迟"));
    // `transactions/s` and `ops/s` end in what seconds are called too.
    if other && (!names_tps(&lower) || begins(Words("lat|read|writ"))) {
        return Role::Other;
    }
    if begins(Words("share|anteil|podíl|podil|доля")) || has(Words("of total|占比")) {
        return Role::Share;
    }
    let ratio = Words("ratio|relativ|poměr|pomer|verhältnis|отношени|speedup");
    if lower == "%" || begins(ratio) || has(Words("比例")) {
        return Role::Ratio;
    }
    let mean = Words("mean|average|avg|průměr|prumer|mittel|durchschnitt|moyenne|средн");
    if begins(mean) || has(Words("平均|∅|ø")) {
        return Role::Mean;
    }
    if is(Words("sd|stddev|stdev|std"))
        || begins(Words("deviation|abweichung|odchylka|отклонени"))
        || has(Words("±|标准差"))
    {
        return Role::Spread;
    }
    repeat(&words).map_or(if names_tps(&lower) { Role::Tps } else { Role::Other }, Role::Repeat)
}

/// `run 3`, `#3`, `tps 3`: the number of a repeat.
fn repeat(words: &[&str]) -> Option<u32> {
    const NAMES: Words = Words("run|r|test|trial|repeat|tps|lauf|versuch|pokus|měření|прогон|第");
    let numbers: Vec<&str> = words
        .iter()
        .map(|word| NAMES.iter().find_map(|name| word.strip_prefix(name)).unwrap_or(word))
        .filter(|rest| !rest.is_empty())
        .collect();
    let [number] = numbers.as_slice() else { return None };
    let number = number.trim_end_matches(['次', '回']);
    (number.len() <= 2).then(|| number.parse().ok()).flatten()
}

/// Whether the words name tps, or another throughput of a database.
pub(super) fn names_tps(text: &str) -> bool {
    const WORDS: Words = Words("tps|ktps|qps|kqps|tpm|nopm|tpmc|throughput");
    const PER_SECOND: Words = Words(
        "transactions per second|transactions/s|transactions / s|transaction/s|trans/s|txn/s|\
         txns/s|tx/s|xact/s|queries per second|queries/s|ops/s|operations/s|\
         operations per second|commits/s|commits per second|requests/s|req/s|\
         transaktionen pro sekunde|транзакций в секунду|транзакций/с|transakcí za sekundu|\
         每秒事务|吞吐",
    );
    // A disk's throughput is of bytes.
    const BYTES: Words = Words("mb/s|gb/s|mib/s|gib/s|kb/s|kib/s|mbps|bandwidth");
    let lower = text.to_lowercase();
    !BYTES.any_in(&lower)
        && (words::split(&lower).into_iter().any(|word| WORDS.has(word))
            || PER_SECOND.any_in(&lower))
}

/// Whether a column is called a time that a load or a query took, of one measurement and no
/// percentile.
pub(super) fn names_time(name: &str) -> bool {
    const TIMES: Words = Words(
        "latency|runtime|run time|elapsed|execution time|query time|response time|duration (|\
         время|длительность|laufzeit|耗时|延迟",
    );
    const OTHERWISE: Words = Words(
        "p50|p90|p95|p99|percentile|max|min|stddev|avg|average|mean|median|diff|delta|change|\
         impact|overhead|средн|connection",
    );
    let lower = name.to_lowercase();
    TIMES.any_in(&lower) && !OTHERWISE.any_in(&lower)
}

/// Whether a column's name is that of a thing that was varied: its rows are no repeats.
pub(super) fn names_condition(name: &str) -> bool {
    const CONDITIONS: Words = Words(
        "clients|client|connections|concurrency|users|threads|thread|jobs|workers|cores|cpus|scale|\
         size|block|blocksize|recordsize|rate|mode|filesystem|fs|mount|options|device|disk|raid|\
         version|config|configuration|setting|setup|server|host|pooler",
    );
    words::split(&name.to_lowercase()).into_iter().any(|word| CONDITIONS.has(word))
}

/// Whether a column counts clients.
pub(super) fn names_clients(name: &str) -> bool {
    const NAMES: Words = Words("clients|client|connections|concurrency");
    matches!(words::split(&name.to_lowercase())[..], [only] if NAMES.has(only))
}

/// Whether a column has the mean latency in milliseconds.
pub(super) fn names_mean_latency_ms(name: &str) -> bool {
    const OTHERWISE: Words =
        Words("p50|p90|p95|p99|percentile|max|min|stddev|std|median|95|99|connect|diff|delta");
    let lower = name.to_lowercase();
    lower.contains("latency") && words::split(&lower).contains(&"ms") && !OTHERWISE.any_in(&lower)
}
