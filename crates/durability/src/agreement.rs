//! Counts of rows against acknowledgements, for loads without a fault.

use pgdyno_model::record::ServerCount;

/// Result of comparing rows with acknowledgements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// The rows agree with the acknowledgements.
    Agrees,
    /// The rows disagree, as the text explains.
    Disagrees(String),
    /// There is nothing to compare, for this reason.
    Unknown(String),
}

/// Compares the rows that a load added with the transactions that were acknowledged.
///
/// `in_doubt` transactions were sent and neither acknowledged nor refused (their connections
/// broke): each may or may not have left its rows.
pub fn agreement(count: &ServerCount, rows_per_transaction: u32, in_doubt: u32) -> Agreement {
    let (Some(found), Some(expected)) = (count.rows, count.rows_expected) else {
        return Agreement::Unknown("the workload names no rows to count".into());
    };
    let most = expected + i64::from(in_doubt) * i64::from(rows_per_transaction);
    if found < expected {
        Agreement::Disagrees(format!(
            "the server holds {found} of the {expected} rows that it acknowledged: {} are missing",
            expected - found
        ))
    } else if found > most {
        Agreement::Disagrees(format!(
            "the server holds {found} rows where {expected} were acknowledged and {} more were in \
             doubt: {} nobody can account for",
            most - expected,
            found - most
        ))
    } else {
        Agreement::Agrees
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(rows: i64, expected: i64) -> ServerCount {
        ServerCount { xact_commit: expected, rows: Some(rows), rows_expected: Some(expected) }
    }

    #[test]
    fn one_lost_one_too_many_and_one_in_doubt_are_told_apart() {
        assert_eq!(agreement(&count(10, 10), 1, 0), Agreement::Agrees);
        assert_eq!(agreement(&count(11, 10), 1, 1), Agreement::Agrees);
        let lacking = agreement(&count(9, 10), 1, 1);
        assert!(matches!(lacking, Agreement::Disagrees(w) if w.contains("1 are missing")));
        assert!(matches!(agreement(&count(12, 10), 1, 1), Agreement::Disagrees(_)));
    }

    #[test]
    fn nothing_counted_is_unknown_and_never_agreement() {
        let none = ServerCount { xact_commit: 5, rows: None, rows_expected: None };
        assert!(matches!(agreement(&none, 1, 0), Agreement::Unknown(_)));
    }
}
