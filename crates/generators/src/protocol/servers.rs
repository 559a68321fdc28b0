//! Servers with their passwords on the way to a worker. They travel on its standard input alone.

use std::net::IpAddr;
use std::time::Duration;

use pgdyno_model::target::{
    Address, LoadBalanceHosts, RequireAuth, Secret, Servers, SessionAttrs, Target, Tls,
};
use serde::{Deserialize, Serialize};

/// [`Servers`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ServersData {
    targets: Vec<OneTarget>,
    load_balance_hosts: LoadBalanceHosts,
}

impl ServersData {
    pub(super) fn new(servers: &Servers) -> Self {
        Self {
            targets: servers.targets.iter().cloned().map(OneTarget).collect(),
            load_balance_hosts: servers.load_balance_hosts,
        }
    }

    pub(super) fn read(&self) -> Servers {
        Servers {
            targets: self.targets.iter().map(|target| target.0.clone()).collect(),
            load_balance_hosts: self.load_balance_hosts,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct OneTarget(#[serde(with = "TargetData")] Target);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Target")]
struct TargetData {
    address: Address,
    host_address: Option<IpAddr>,
    user: String,
    #[serde(with = "secret")]
    password: Option<Secret>,
    database: String,
    settings: Vec<(String, String)>,
    tls: Tls,
    session_attrs: SessionAttrs,
    require_auth: RequireAuth,
    connect_timeout: Option<Duration>,
}

mod secret {
    use pgdyno_model::target::Secret;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(
        password: &Option<Secret>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        password.as_ref().map(Secret::reveal).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Secret>, D::Error> {
        Ok(Option::<String>::deserialize(from)?.map(Secret::new))
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_model::target::{RootCert, SslMode};

    use super::*;

    #[test]
    fn servers_arrive_whole_and_are_printed_without_passwords() {
        let address = Address::Tcp { host: "db.example".into(), port: 5433 };
        let mut target = Target::new(address, "ann", "bench");
        target.password = Some(Secret::new("hunter2".into()));
        target.settings = vec![("search_path".into(), "a, b".into())];
        target.tls = Tls {
            mode: SslMode::VerifyFull,
            root: Some(RootCert::System),
            key: Some("/k".into()),
            ..Tls::default()
        };
        target.session_attrs = SessionAttrs::PreferStandby;
        target.require_auth = "!md5".parse().unwrap();
        target.connect_timeout = Some(Duration::from_secs(3));
        let other = Target::new(Address::Unix { directory: "/s".into(), port: 1 }, "b", "c");
        let servers =
            Servers { targets: vec![target, other], load_balance_hosts: LoadBalanceHosts::Random };
        let sent = ServersData::new(&servers);
        assert!(!format!("{sent:?}").contains("hunter2"));
        let text = serde_json::to_string(&sent).unwrap();
        let read: ServersData = serde_json::from_str(&text).unwrap();
        assert_eq!(read.read(), servers);
    }
}
