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

/// Returns the library's own description of `target`, with the search path `path`, or else with the
/// path of the target's settings.
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
    // Of several values the last counts.
    let options: Vec<String> =
        of_target.chain(path.map(|path| setting("search_path", path))).collect();
    if !options.is_empty() {
        config.options(options.join(" "));
    }
    config
}
