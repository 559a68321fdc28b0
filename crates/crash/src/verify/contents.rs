//! The contents of the database, after recovery and again after the second start.

use pgdyno_durability::{Amounts, Contents, Unseen};

use super::session::{Terms, VerifySession};
use super::{conditions, rows, structure};

/// Why something is not looked at.
pub(super) fn later() -> Unseen {
    Unseen::NotApplicable("looked at after a second start, and in some states only".into())
}

/// Reads what takes little time: the tokens, the amounts, quick conditions, and every row by a
/// scan.
pub(super) fn quick(session: &mut VerifySession<'_>, terms: &Terms<'_>) -> Contents {
    let amounts = terms.load.amounts.iter().map(|amount| Amounts {
        holder: amount.holder,
        key: amount.key,
        by_key: session
            .ask(&format!("reading {}", amount.table), |client| rows::amounts(client, amount)),
    });
    let amounts = amounts.collect();
    Contents {
        amounts,
        rows: session.ask("reading the tokens", rows::tokens),
        index: session.ask("reading the tokens by their index", rows::tokens_by_key),
        numbers: session.ask("reading the sequence", rows::numbers),
        conditions: conditions::quick(session, terms),
        by_scan: rows::count(session, terms, rows::Access::Scan),
        by_key: Err(later()),
        btrees: Err(later()),
        heaps: Err(later()),
        pointers: Err(later()),
        visibility: Err(later()),
    }
}

/// Reads the other conditions, and what the server's own checks say of tables and indexes,
/// after `contents`.
pub(super) fn with_structure(
    contents: Contents,
    session: &mut VerifySession<'_>,
    terms: &Terms<'_>,
) -> Contents {
    Contents {
        conditions: conditions::whole(contents.conditions, session, terms),
        btrees: structure::btrees(session),
        heaps: structure::heaps(session),
        pointers: structure::pointers(session),
        ..contents
    }
}

/// Reads everything.
pub(super) fn whole(session: &mut VerifySession<'_>, terms: &Terms<'_>) -> Contents {
    let quick = quick(session, terms);
    let by_key = rows::count(session, terms, rows::Access::Key);
    let contents = with_structure(quick, session, terms);
    Contents { by_key, visibility: structure::visibility(session), ..contents }
}
