//! Conditions that hold whenever no transaction is under way: the load's own, then those that its
//! workload names.
//!
//! The planner is free in how it reads: whether index and table agree is for other oracles.

use pgdyno_durability::{Observed, Unseen};

use super::session::{PLAIN, Terms, VerifySession, unseen};

/// Asks for the load's conditions that take little time. Returns a complaint about each that is
/// broken.
pub(super) fn quick(session: &mut VerifySession<'_>, terms: &Terms<'_>) -> Observed<Vec<String>> {
    if terms.load.conditions.is_empty() && terms.workload.consistency.is_empty() {
        return Err(Unseen::NotApplicable("the workload has no conditions".into()));
    }
    complaints(session, Vec::new(), of_load(terms, true))
}

/// Asks for all other conditions, after the [`quick`] ones.
pub(super) fn whole(
    quick: Observed<Vec<String>>,
    session: &mut VerifySession<'_>,
    terms: &Terms<'_>,
) -> Observed<Vec<String>> {
    let of_workload = terms.workload.consistency.iter();
    let of_workload = of_workload.map(|c| (c.condition.as_str(), c.broken.as_str()));
    complaints(session, quick?, of_load(terms, false).chain(of_workload))
}

/// Returns the conditions of the load, those that are quick or the others, in words and as SQL.
fn of_load<'t>(terms: &'t Terms<'_>, is_quick: bool) -> impl Iterator<Item = (&'t str, &'t str)> {
    let asked = terms.load.conditions.iter().filter(move |c| c.is_quick == is_quick);
    asked.map(|c| (c.condition, c.broken))
}

/// Asks for `conditions`, each in words and as SQL. Returns `complaints` and one about each that is
/// broken.
fn complaints<'c>(
    session: &mut VerifySession<'_>,
    mut complaints: Vec<String>,
    conditions: impl Iterator<Item = (&'c str, &'c str)>,
) -> Observed<Vec<String>> {
    for (condition, broken) in conditions {
        let broken = session.ask(&format!("checking `{condition}`"), |client| {
            client.batch_execute(PLAIN).map_err(|e| unseen(&e))?;
            let row = client.query_one(broken, &[]).map_err(|e| unseen(&e))?;
            Ok(row.get::<_, i64>(0))
        });
        match broken {
            Ok(0) => {}
            Ok(1) => complaints.push(format!("1 row breaks `{condition}`")),
            Ok(rows) => complaints.push(format!("{rows} rows break `{condition}`")),
            Err(Unseen::Damaged(what)) => complaints.push(format!("`{condition}`: {what}")),
            // What was found before is a finding, whatever keeps the rest from being looked at.
            Err(other) if complaints.is_empty() => return Err(other),
            Err(_) => break,
        }
    }
    Ok(complaints)
}
