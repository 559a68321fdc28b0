//! Starts a server with TLS and a role for every kind of authentication, for tests of connections.

pub mod der;

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use pgdyno_connect::control::{self, ControlError};
use pgdyno_connect::{CONNECT_TIMEOUT, ConnectError, Connection, Stream, connect};
use pgdyno_model::target::{Address, RootCert, Secret, SslMode, Target, Tls};
use pgdyno_postgres::Cluster;
use pgdyno_test_support::{PASSWORD, create_cluster, install};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};

pub static GO_ON: AtomicBool = AtomicBool::new(false);

/// A certificate authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Returns a certificate for `names` and its key, both in PEM.
    pub fn sign(&self, common_name: &str, names: &[&str]) -> (String, String) {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

/// A server on 127.0.0.1 whose certificate names `localhost`, with a role for every kind of
/// authentication.
pub struct Secured {
    pub cluster: Cluster,
    pub authority: Authority,
    pub home: pgdyno_test_support::Scratch,
}

impl Secured {
    pub fn start(ssl: bool) -> Self {
        let (cluster, home) = create_cluster(install(None));
        let mut this = Self { cluster, authority: Authority::new("a root"), home };
        let (cert, key) = this.authority.sign("localhost", &["localhost"]);
        this.certify(&cert, &key, &this.authority.pem);
        let hba = "local all all trust\n\
                   host all open 127.0.0.1/32 trust\n\
                   host all md5user 127.0.0.1/32 md5\n\
                   hostssl all certified 127.0.0.1/32 cert\n\
                   hostssl all tlsonly 127.0.0.1/32 scram-sha-256\n\
                   hostnossl all plainonly 127.0.0.1/32 scram-sha-256\n\
                   host all postgres,scram 127.0.0.1/32 scram-sha-256\n";
        fs::write(this.cluster.data().join("pg_hba.conf"), hba).unwrap();
        this.set(&[("ssl", if ssl { "on" } else { "off" }), ("ssl_ca_file", "root.crt")]);
        this.sql(&format!(
            "ALTER ROLE postgres PASSWORD '{PASSWORD}'; CREATE ROLE open LOGIN;
             CREATE ROLE certified LOGIN; CREATE ROLE tlsonly LOGIN PASSWORD '{PASSWORD}';
             CREATE ROLE plainonly LOGIN PASSWORD '{PASSWORD}';
             CREATE ROLE scram LOGIN PASSWORD '{PASSWORD}';
             SET password_encryption = 'md5'; CREATE ROLE md5user LOGIN PASSWORD '{PASSWORD}';"
        ));
        this
    }

    pub fn set(&mut self, settings: &[(&str, &str)]) {
        let settings: BTreeMap<String, String> = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        self.cluster.apply(&settings, &GO_ON).unwrap();
    }

    pub fn sql(&self, sql: &str) {
        self.cluster.control("postgres").unwrap().batch_execute(sql).unwrap();
    }

    /// Gives the server a certificate, its key, and the root that client certificates must come
    /// from.
    pub fn certify(&self, cert: &str, key: &str, root: &str) {
        let data = self.cluster.data();
        let owner = fs::metadata(&data).unwrap();
        for (name, text) in [("server.crt", cert), ("server.key", key), ("root.crt", root)] {
            let path = data.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    pub fn root(&self) -> Option<RootCert> {
        Some(RootCert::File(self.file("client-root.crt", &self.authority.pem)))
    }

    pub fn port(&self) -> u16 {
        match self.cluster.target("postgres").address {
            Address::Tcp { port, .. } => port,
            Address::Unix { .. } => panic!("asked for TCP"),
        }
    }

    /// Returns the target of `user` at the name `host`, which leads to 127.0.0.1 without this
    /// machine's resolver.
    pub fn target(&self, user: &str, host: &str, tls: Tls) -> Target {
        let address = Address::Tcp { host: host.into(), port: self.port() };
        Target {
            host_address: Some(Ipv4Addr::LOCALHOST.into()),
            password: Some(Secret::new(PASSWORD.into())),
            tls,
            ..Target::new(address, user, "postgres")
        }
    }
}

pub fn mode(mode: SslMode) -> Tls {
    Tls { mode, ..Tls::default() }
}

pub fn load(target: &Target) -> Result<bool, ConnectError> {
    let Connection { stream, .. } = connect(target, CONNECT_TIMEOUT)?;
    Ok(matches!(stream, Stream::Tls(_)))
}

pub fn control(target: &Target) -> Result<bool, ControlError> {
    let mut client = control::connect_to_schema(target, "public")?;
    let asked = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    Ok(client.query_one(asked, &[]).unwrap().get(0))
}

/// Returns whether the load's connection is encrypted. Asserts that the control connection agrees.
pub fn encrypted(target: &Target) -> bool {
    let seen = load(target).unwrap_or_else(|e| panic!("{:?}: {e}", target.tls));
    assert_eq!(
        control(target).unwrap_or_else(|e| panic!("{:?}: {e}", target.tls)),
        seen,
        "{:?}",
        target.tls
    );
    seen
}

/// Returns why the load cannot connect. Asserts that there is no control connection either.
pub fn refused(target: &Target) -> ConnectError {
    assert!(control(target).is_err(), "{target:?}");
    load(target).expect_err("must be refused")
}
