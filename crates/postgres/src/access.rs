//! Who may connect to a managed server from other hosts, and how: over TLS, with a password, from
//! addresses that were named.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::IpAddr;

use pgdyno_model::target::Secret;
use rcgen::{CertificateParams, KeyPair};

use super::error::ClusterError;

/// The superuser of every cluster that pgdyno creates.
pub const SUPERUSER: &str = "postgres";

/// A key and its certificate, made for one cluster. Both are PEM.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Certificate {
    pub(super) certificate: String,
    pub(super) key: Secret,
}

impl Certificate {
    /// Makes a certificate for the server at `address`.
    ///
    /// Clients need no copy of it: SCRAM binds the password to it, so that another server's is
    /// noticed (`channel_binding=require`).
    pub(super) fn new(address: IpAddr) -> Result<Self, ClusterError> {
        let made = KeyPair::generate().and_then(|key| {
            let params = CertificateParams::new(vec![address.to_string()])?;
            Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
        });
        let (certificate, key) = made.map_err(ClusterError::Certificate)?;
        Ok(Self { certificate, key: Secret::new(key) })
    }
}

/// Returns the `pg_hba.conf` that lets in pgdyno by the socket, and `addresses` by TLS.
pub(super) fn host_based_access(addresses: &BTreeSet<IpAddr>) -> String {
    let mut text = String::from("# Written by pgdyno.\nlocal all all trust\n");
    for address in addresses {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let _ = writeln!(text, "hostssl all {SUPERUSER} {address}/{bits} scram-sha-256");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_no_networks_are_let_in() {
        let addresses = ["10.0.0.7", "fd00::7"].map(|text| text.parse().unwrap()).into();
        assert_eq!(
            host_based_access(&addresses),
            "# Written by pgdyno.\nlocal all all trust\n\
             hostssl all postgres 10.0.0.7/32 scram-sha-256\n\
             hostssl all postgres fd00::7/128 scram-sha-256\n"
        );
    }
}
