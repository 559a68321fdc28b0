//! Logins: a function selects a user, inserts a row and updates the user's session.
//!
//! Its tables are those of `workloads/user-login`. Two tables say how often a user logged in:
//! `login_count` of the session, and the rows of `user_login_rec`. Recovery must leave each user and
//! each session once: duplicate keys are seen by a scan of the table against its unique key.

use pgdyno_durability::EffectKey;
use pgdyno_model::ledger::Effect;

use super::crash_load::{Amount, CrashLoad, LoadedTable};

pub(super) static LOAD: CrashLoad = CrashLoad {
    data_set: "user-login",
    script: include_str!("user_login.sql"),
    reset: "TRUNCATE user_login_rec; \
        UPDATE user_session SET login_count = 0, logintime = NULL WHERE login_count <> 0",
    loaded: &[
        LoadedTable {
            table: "user_info",
            key: "userid",
            rows_per_scale: 100_000,
            constant: "engname = 'user.' || userid AND email = userid || '@example.com' AND occupation = 'DBA' \
                AND birthday = '1970-01-01' AND octet_length(signname) = 54 AND qq = 276732431 \
                AND mod_time IS NULL",
        },
        LoadedTable {
            table: "user_session",
            key: "userid",
            rows_per_scale: 100_000,
            constant: "login_count >= 0 AND (login_count = 0 OR logintime IS NOT NULL) \
                AND logouttime IS NULL AND online_interval = '0'",
        },
    ],
    amounts: &[
        Amount {
            holder: "session of user",
            key: EffectKey::Account,
            table: "user_session",
            sql: "SELECT userid::int8, login_count FROM user_session WHERE login_count <> 0",
            is_unique: true,
        },
        Amount {
            holder: "list of logins of user",
            key: EffectKey::Account,
            table: "user_login_rec",
            sql: "SELECT userid::int8, 1::int8 FROM user_login_rec",
            is_unique: false,
        },
    ],
    rewritten: &[
        ("user_info", "qq", "userid = 1"),
        ("user_session", "login_count", "userid = 1"),
        ("user_login_rec", "ip", "userid = (SELECT min(userid) FROM user_login_rec)"),
    ],
    changed_first: "user_login_rec",
    changed_most: "user_session",
    vacuum: &["VACUUM user_info, user_session, user_login_rec, pgdyno_token"],
    create_index: &["CREATE INDEX pgdyno_aim ON user_session (login_count, userid)"],
    take_back,
};

fn take_back(effect: &Effect) -> String {
    format!(
        "UPDATE user_session SET login_count = login_count - {delta} WHERE userid = {user}; \
         DELETE FROM user_login_rec WHERE ctid = \
         (SELECT ctid FROM user_login_rec WHERE userid = {user} LIMIT 1)",
        user = effect.account,
        delta = effect.delta,
    )
}
