//! Servers with their passwords on the way to a worker. They travel on its standard input alone.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use pgdyno_model::target::{
    Address, ChannelBinding, LoadBalanceHosts, RequireAuth, RootCert, Secret, Servers,
    SessionAttrs, SslMode, Target, Tls,
};
use serde::{Deserialize, Serialize};

/// [`Servers`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ServersData {
    targets: Vec<OneTarget>,
    #[serde(with = "LoadBalanceHostsData")]
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
    #[serde(with = "AddressData")]
    address: Address,
    host_address: Option<IpAddr>,
    user: String,
    #[serde(with = "secret")]
    password: Option<Secret>,
    database: String,
    settings: Vec<(String, String)>,
    #[serde(with = "TlsData")]
    tls: Tls,
    #[serde(with = "name")]
    session_attrs: SessionAttrs,
    #[serde(with = "require_auth")]
    require_auth: RequireAuth,
    connect_timeout: Option<Duration>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Address")]
enum AddressData {
    Unix { directory: PathBuf, port: u16 },
    Tcp { host: String, port: u16 },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Tls")]
struct TlsData {
    #[serde(with = "name")]
    mode: SslMode,
    #[serde(with = "root")]
    root: Option<RootCert>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    #[serde(with = "ChannelBindingData")]
    channel_binding: ChannelBinding,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ChannelBinding")]
enum ChannelBindingData {
    Disable,
    Prefer,
    Require,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "LoadBalanceHosts")]
enum LoadBalanceHostsData {
    Disable,
    Random,
}

/// Values that have a name in conninfo strings.
mod name {
    use std::str::FromStr;

    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<T, S>(value: &T, to: S) -> Result<S::Ok, S::Error>
    where
        T: Copy + Into<&'static str>,
        S: Serializer,
    {
        to.serialize_str((*value).into())
    }

    pub(super) fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
    where
        T: FromStr,
        D: Deserializer<'de>,
    {
        let text = String::deserialize(from)?;
        text.parse().map_err(|_| D::Error::custom(format!("unknown name `{text}`")))
    }
}

mod require_auth {
    use pgdyno_model::target::RequireAuth;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(list: &RequireAuth, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(list.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<RequireAuth, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
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

/// Root certificates: those of a file, or for an empty path those of the system.
mod root {
    use std::path::PathBuf;

    use pgdyno_model::target::RootCert;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(
        root: &Option<RootCert>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let path = root.as_ref().map(|root| match root {
            RootCert::File(path) => path.clone(),
            RootCert::System => PathBuf::new(),
        });
        path.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<RootCert>, D::Error> {
        let path = Option::<PathBuf>::deserialize(from)?;
        Ok(path.map(|path| match path.as_os_str().is_empty() {
            true => RootCert::System,
            false => RootCert::File(path),
        }))
    }
}

#[cfg(test)]
mod tests {
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
