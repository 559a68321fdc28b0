//! The tables' rows against each other, and against what was loaded.

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_model::crash::CheckOutcome;

use super::case::{Case, complaints, outcome_of, with};
use crate::found::{Amounts, Observed, TableRows, tokens};

/// The primary key leads to the very rows that the table holds.
pub(super) fn index(case: &Case<'_>) -> CheckOutcome {
    with(&case.contents.rows, |rows| {
        with(&case.contents.index, |indexed| {
            let (heap, index) = (tokens(rows), indexed.iter().copied().collect::<BTreeSet<_>>());
            let mut differ: Vec<String> = heap
                .difference(&index)
                .map(|t| format!("{t} is in the table, not in the index"))
                .collect();
            differ.extend(
                index.difference(&heap).map(|t| format!("{t} is in the index, not in the table")),
            );
            if differ.is_empty() && rows.len() != indexed.len() {
                let (rows, indexed) = (rows.len(), indexed.len());
                differ.push(format!("{rows} rows in the table, {indexed} by the index"));
            }
            complaints(&differ)
        })
    })
}

/// Each row that transactions add to holds exactly what the tokens that are there say: a
/// transaction of which a part is missing shows here.
pub(super) fn whole(case: &Case<'_>) -> CheckOutcome {
    with(&case.contents.rows, |rows| {
        let mut differ = Vec::new();
        for Amounts { holder, key, by_key } in &case.contents.amounts {
            let amounts = match by_key {
                Ok(amounts) => amounts,
                Err(unseen) => return outcome_of(unseen),
            };
            let mut expected: BTreeMap<i64, i64> = BTreeMap::new();
            for row in rows {
                *expected.entry(key.key(&row.effect)).or_default() += row.effect.delta;
            }
            expected.retain(|_, sum| *sum != 0);
            let all: BTreeSet<&i64> = expected.keys().chain(amounts.keys()).collect();
            differ.extend(all.into_iter().filter_map(|id| {
                let (is, should) =
                    (amounts.get(id).copied().unwrap_or(0), expected.get(id).copied().unwrap_or(0));
                (is != should).then(|| {
                    format!(
                        "{holder} {id} holds {is}, and the transactions that are there \
                         come to {should}"
                    )
                })
            }));
        }
        complaints(&differ)
    })
}

/// TPC-B's rule: every kind of row and the transactions' own amounts have one sum; and it lies
/// between the ledger's with none and with all of the transactions in doubt only if these are there
/// whole, which [`whole`] tells.
pub(super) fn sums(case: &Case<'_>) -> CheckOutcome {
    with(&case.contents.rows, |rows| {
        let there = rows.iter().map(|r| r.effect.delta).sum::<i64>();
        let mut sums = Vec::new();
        for Amounts { holder, by_key, .. } in &case.contents.amounts {
            match by_key {
                Ok(amounts) => sums.push((holder, amounts.values().sum::<i64>())),
                Err(unseen) => return outcome_of(unseen),
            }
        }
        if sums.iter().all(|(_, sum)| *sum == there) {
            return CheckOutcome::Passed;
        }
        let sums: Vec<String> =
            sums.iter().map(|(holder, sum)| format!("each {holder} together {sum}")).collect();
        CheckOutcome::Failed(format!(
            "{}, and the transactions that are there come to {there}",
            sums.join(", ")
        ))
    })
}

/// Every row of the data set is there once, as it was loaded but for its amount. A row whose amount
/// is 0 is in no sum: only to count the rows shows that it is gone.
pub(super) fn once(observed: &Observed<Vec<TableRows>>) -> CheckOutcome {
    with(observed, |tables| match tables.as_slice() {
        [] => CheckOutcome::CouldNotRun("no table was counted".into()),
        tables => complaints(&tables.iter().flat_map(differences).collect::<Vec<_>>()),
    })
}

/// In what the rows of a table are not the ones that were loaded. As many different keys as rows,
/// as many rows as were loaded, none below 1 and none above the last: that is each key once.
fn differences(found: &TableRows) -> Vec<String> {
    let TableRows { table, loaded, rows, keys, changed, .. } = found;
    let mut differ = Vec::new();
    if rows != loaded {
        differ.push(format!("{table} holds {rows} rows of {loaded}"));
    }
    if keys != rows {
        let duplicates = if keys < rows { "duplicate keys: " } else { "" };
        differ.push(format!("{table} has {duplicates}{keys} different ones in {rows} rows"));
    }
    let range = |lowest: Option<i64>, highest: Option<i64>| match (lowest, highest) {
        (Some(lowest), Some(highest)) => format!("{lowest} to {highest}"),
        _ => "none".to_owned(),
    };
    let (is, should) = (
        range(found.lowest, found.highest),
        range(Some(1), Some(i64::try_from(*loaded).unwrap_or(i64::MAX))),
    );
    if is != should {
        differ.push(format!("{table} has the keys {is}, and was loaded with {should}"));
    }
    if *changed > 0 {
        differ.push(format!(
            "{table} has {changed} rows whose constant columns are not as they were loaded"
        ));
    }
    if !differ.is_empty() {
        differ.extend(found.examples.iter().map(|example| format!("{table}: {example}")));
    }
    differ
}
