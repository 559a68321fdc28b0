//! How the client library is told to connect.

use std::time::Duration;

use pgdyno_model::target::{Address, ChannelBinding, Target};
use tokio_postgres::{Config, config};

/// How long connecting may take, to the first `ReadyForQuery`, unless the target says.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The name that control sessions give themselves.
pub(super) const APPLICATION: &str = "pgdyno control";

/// The path of control sessions: PostgreSQL's own names, then the session's own temporary tables.
/// Nobody else can create objects in either.
///
/// Whoever owns a database decides what an unqualified name means in it. `ALTER DATABASE … SET
/// search_path` and a function or an operator of the owner's are enough to run code with the rights
/// of whoever connects.
pub const SEARCH_PATH: &str = "pg_catalog, pg_temp";

/// Limits that a role or a database sets for its applications, and that PostgreSQL has had since
/// 9.6. pgdyno's own statements have bounds of their own.
const LIMITS: [&str; 3] =
    ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"];

/// Returns the library's own description of `target`, with the search path `path` and without the
/// role's limits of time, or else with the path and limits of the target's settings.
pub(super) fn config(target: &Target, path: Option<&str>) -> Config {
    let mut config = Config::new();
    config
        .user(&target.user)
        .dbname(&target.database)
        .application_name(APPLICATION)
        .connect_timeout(target.connect_timeout.unwrap_or(CONNECT_TIMEOUT))
        .channel_binding(match target.tls.channel_binding {
            ChannelBinding::Disable => config::ChannelBinding::Disable,
            ChannelBinding::Prefer => config::ChannelBinding::Prefer,
            ChannelBinding::Require => config::ChannelBinding::Require,
        });
    match &target.address {
        Address::Unix { directory, port } => config.host_path(directory).port(*port),
        Address::Tcp { host, port } => config.host(host).port(*port),
    };
    if let Some(ip) = target.host_address {
        config.hostaddr(ip);
    }
    if let Some(password) = &target.password {
        config.password(password.reveal());
    }
    let setting = |name: &str, value: &str| {
        format!("-c {name}={}", value.replace('\\', "\\\\").replace(' ', "\\ "))
    };
    let settings = target.settings.iter().filter(|(name, _)| name != "application_name");
    let of_target = settings.map(|(name, value)| match name.as_str() {
        "options" => value.clone(),
        _ => setting(name, value),
    });
    let limits = LIMITS.map(|name| setting(name, "0"));
    let of_path = path.map(|path| [setting("search_path", path)].into_iter().chain(limits));
    // Of several values the last counts.
    let options: Vec<String> = of_target.chain(of_path.into_iter().flatten()).collect();
    if !options.is_empty() {
        config.options(options.join(" "));
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_time_bind_the_users_sessions_and_not_pgdynos_own() {
        let address = Address::Unix { directory: "/run".into(), port: 5432 };
        let mut target = Target::new(address, "postgres", "postgres");
        target.settings = vec![("statement_timeout".into(), "5s".into())];
        let users = config(&target, None);
        assert_eq!(users.get_options(), Some("-c statement_timeout=5s"));
        let own = config(&target, Some(SEARCH_PATH));
        let (_, last) = own.get_options().unwrap().split_once("statement_timeout=5s ").unwrap();
        assert!(last.contains("-c statement_timeout=0") && last.contains("-c lock_timeout=0"));
    }
}
