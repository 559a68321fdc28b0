//! Logins: a function selects a user, inserts a row and updates the user's session.
//!
//! The tables are those of `workloads/user-login`. Two tables say how often a user logged in:
//! `login_count` of the session, and the rows of `user_login_rec`. Recovery must leave each user
//! and each session once: duplicate keys are seen by a scan of the table against its unique key.

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
            indexed: "userid",
            constant: "engname = 'user.' || userid AND cnname = '某人' \
                AND email = userid || '@example.com' \
                AND occupation = 'DBA' AND birthday = '1970-01-01' AND signname = repeat(' ', 54) \
                AND qq = 276732431 AND mod_time IS NULL \
                AND crt_time = timestamp '2013-04-11' + (userid - 1) * interval '1 ms'",
        },
        LoadedTable {
            table: "user_session",
            key: "userid",
            indexed: "userid",
            // Of two logins at a time, the one that began first may be the last to change the row.
            constant: "login_count >= 0 AND logouttime IS NULL AND online_interval = '0' \
                AND CASE WHEN login_count = 0 THEN logintime IS NULL ELSE (userid, logintime) IN \
                (SELECT aid, begun::timestamp(0) FROM pgdyno_token) END",
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
            // A row that no transaction can have written counts against the user's logins, so that
            // it is missed whether it was changed or is one too many.
            sql: "SELECT userid::int8, CASE WHEN \
                (userid, login_time) IN (SELECT aid, begun FROM pgdyno_token) \
                AND (ip IS NULL OR ip <<= '127.0.0.0/8' OR ip = '::1') THEN 1 ELSE -1 END::int8 \
                FROM user_login_rec",
            is_unique: false,
        },
    ],
    conditions: &[],
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

fn take_back(effect: &Effect) -> Option<String> {
    Some(format!(
        "DELETE FROM user_login_rec WHERE userid = {user} \
         AND login_time NOT IN (SELECT begun FROM pgdyno_token WHERE aid = {user}); \
         UPDATE user_session SET login_count = login_count - {delta}, logintime = \
         (SELECT max(login_time) FROM user_login_rec WHERE userid = {user}) WHERE userid = {user}",
        user = effect.account,
        delta = effect.delta,
    ))
}
