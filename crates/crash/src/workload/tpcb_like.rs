//! TPC-B: one amount is added to an account, a teller and a branch.

use pgdyno_durability::EffectKey;
use pgdyno_model::ledger::Effect;

use super::crash_load::{Amount, CrashLoad, LoadedTable};

pub(super) static LOAD: CrashLoad = CrashLoad {
    data_set: "tpcb-like",
    script: include_str!("tpcb_like.sql"),
    reset: "UPDATE pgbench_accounts SET abalance = 0 WHERE abalance <> 0; \
        UPDATE pgbench_tellers SET tbalance = 0 WHERE tbalance <> 0; \
        UPDATE pgbench_branches SET bbalance = 0 WHERE bbalance <> 0",
    // A `filler` that nobody gives a value is null, that of accounts is blank and padded to its 84
    // bytes.
    loaded: &[
        LoadedTable {
            table: "pgbench_accounts",
            key: "aid",
            indexed: "aid",
            constant: "bid = (aid::int8 - 1) / 100000 + 1 AND filler = '' \
                AND octet_length(filler) = 84",
        },
        LoadedTable {
            table: "pgbench_tellers",
            key: "tid",
            indexed: "tid",
            constant: "bid = (tid::int8 - 1) / 10 + 1 AND filler IS NULL",
        },
        LoadedTable {
            table: "pgbench_branches",
            key: "bid",
            indexed: "bid",
            constant: "filler IS NULL",
        },
    ],
    amounts: &[
        Amount {
            holder: "account",
            key: EffectKey::Account,
            table: "pgbench_accounts",
            sql: "SELECT aid::int8, abalance::int8 FROM pgbench_accounts WHERE abalance <> 0",
            is_unique: true,
        },
        Amount {
            holder: "teller",
            key: EffectKey::Teller,
            table: "pgbench_tellers",
            sql: "SELECT tid::int8, tbalance::int8 FROM pgbench_tellers WHERE tbalance <> 0",
            is_unique: true,
        },
        Amount {
            holder: "branch",
            key: EffectKey::Branch,
            table: "pgbench_branches",
            sql: "SELECT bid::int8, bbalance::int8 FROM pgbench_branches WHERE bbalance <> 0",
            is_unique: true,
        },
    ],
    conditions: &[],
    rewritten: &[
        ("pgbench_accounts", "abalance", "aid = 1"),
        ("pgbench_tellers", "tbalance", "tid = 1"),
        ("pgbench_branches", "bbalance", "bid = 1"),
    ],
    changed_first: "pgbench_accounts",
    changed_most: "pgbench_accounts",
    vacuum: &["VACUUM pgbench_accounts, pgbench_tellers, pgbench_branches, pgdyno_token"],
    create_index: &["CREATE INDEX pgdyno_aim ON pgbench_accounts (abalance, aid)"],
    take_back,
};

fn take_back(effect: &Effect) -> Option<String> {
    Some(format!(
        "UPDATE pgbench_accounts SET abalance = abalance - ({delta}) WHERE aid = {}; \
         UPDATE pgbench_tellers SET tbalance = tbalance - ({delta}) WHERE tid = {}; \
         UPDATE pgbench_branches SET bbalance = bbalance - ({delta}) WHERE bid = {}",
        effect.account,
        effect.teller,
        effect.branch,
        delta = effect.delta,
    ))
}
