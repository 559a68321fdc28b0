//! What a table's column is by its name, in the languages of the reports that were read.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The n-th repeat.
    Repeat(u32),
    /// Transactions in a second, or another throughput.
    Tps,
    /// What only warms up, and is no repeat.
    WarmUp,
    Mean,
    Ratio,
    Share,
    Spread,
    /// A cell that the one before it spans.
    Spanned,
    Other,
}

/// What a column is by its name.
pub(super) fn role(name: &str) -> Role {
    let lower = name.trim().to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let begins =
        |beginnings: &[&str]| words.iter().any(|w| beginnings.iter().any(|b| w.starts_with(b)));
    let is = |known: &[&str]| words.iter().any(|w| known.contains(w));
    // Languages that part no words.
    let has = |known: &[&str]| known.iter().any(|k| lower.contains(k));
    if lower.is_empty() {
        return Role::Spanned;
    }
    if has(&["warmup", "warm-up", "warm up", "прогрев", "预热"]) {
        return Role::WarmUp;
    }
    let other = begins(&[
        "lat", "cpu", "util", "idle", "wait", "hit", "read", "writ", "client", "klient", "user",
        "thread",
    ]) || is(&["ms", "us", "s", "iops", "mb", "gb"])
        || has(&["延迟"]);
    // `transactions/s` and `ops/s` end in what seconds are called too.
    if other && (!names_tps(&lower) || begins(&["lat", "read", "writ"])) {
        return Role::Other;
    }
    if begins(&["share", "anteil", "podíl", "podil", "доля"]) || has(&["of total", "占比"]) {
        return Role::Share;
    }
    if lower == "%"
        || begins(&["ratio", "relativ", "poměr", "pomer", "verhältnis", "отношени", "speedup"])
        || has(&["比例"])
    {
        return Role::Ratio;
    }
    if begins(&[
        "mean",
        "average",
        "avg",
        "průměr",
        "prumer",
        "mittel",
        "durchschnitt",
        "moyenne",
        "средн",
    ]) || has(&["平均", "∅", "ø"])
    {
        return Role::Mean;
    }
    if is(&["sd", "stddev", "stdev", "std"])
        || begins(&["deviation", "abweichung", "odchylka", "отклонени"])
        || has(&["±", "标准差"])
    {
        return Role::Spread;
    }
    repeat(&words).map_or(if names_tps(&lower) { Role::Tps } else { Role::Other }, Role::Repeat)
}

/// `run 3`, `#3`, `tps 3`: the number of a repeat.
fn repeat(words: &[&str]) -> Option<u32> {
    const NAMES: &[&str] = &[
        "run",
        "r",
        "test",
        "trial",
        "repeat",
        "tps",
        "lauf",
        "versuch",
        "pokus",
        "měření",
        "прогон",
        "第",
    ];
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
    const WORDS: &[&str] = &["tps", "ktps", "qps", "kqps", "tpm", "nopm", "tpmc", "throughput"];
    const PER_SECOND: &[&str] = &[
        "transactions per second",
        "transactions/s",
        "transactions / s",
        "transaction/s",
        "trans/s",
        "txn/s",
        "txns/s",
        "tx/s",
        "xact/s",
        "queries per second",
        "queries/s",
        "ops/s",
        "operations/s",
        "operations per second",
        "commits/s",
        "commits per second",
        "requests/s",
        "req/s",
        "transaktionen pro sekunde",
        "транзакций в секунду",
        "транзакций/с",
        "transakcí za sekundu",
        "每秒事务",
        "吞吐",
    ];
    // A disk's throughput is of bytes.
    const BYTES: &[&str] =
        &["mb/s", "gb/s", "mib/s", "gib/s", "kb/s", "kib/s", "mbps", "bandwidth"];
    let lower = text.to_lowercase();
    let words = || lower.split(|c: char| !c.is_alphanumeric());
    !BYTES.iter().any(|unit| lower.contains(unit))
        && (words().any(|word| WORDS.contains(&word))
            || PER_SECOND.iter().any(|words| lower.contains(words)))
}

/// Whether a column is called a time that a load or a query took, of one measurement and no
/// percentile.
pub(super) fn names_time(name: &str) -> bool {
    const TIMES: &[&str] = &[
        "latency",
        "runtime",
        "run time",
        "elapsed",
        "execution time",
        "query time",
        "response time",
        "duration (",
        "время",
        "длительность",
        "laufzeit",
        "耗时",
        "延迟",
    ];
    const OTHERWISE: &[&str] = &[
        "p50",
        "p90",
        "p95",
        "p99",
        "percentile",
        "max",
        "min",
        "stddev",
        "avg",
        "average",
        "mean",
        "median",
        "diff",
        "delta",
        "change",
        "impact",
        "overhead",
        "средн",
        "connection",
    ];
    let lower = name.to_lowercase();
    TIMES.iter().any(|word| lower.contains(word))
        && !OTHERWISE.iter().any(|word| lower.contains(word))
}
