//! Connections as libpq makes them: TLS in every mode, proofs of identity, several hosts.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use crate::quickstart::quickstart_on;
use crate::tls_server::der::{der, inside, pem_of, values};
use crate::tls_server::{Authority, GO_ON, Secured, encrypted, load, mode, refused};
use pgdyno_connect::conninfo::{ConnectOptions, Environment, resolve_in};
use pgdyno_connect::{CONNECT_TIMEOUT, ConnectError, connect};
use pgdyno_engine::run_load;
use pgdyno_lab::run;
use pgdyno_model::Advice;
use pgdyno_model::experiment::{Length, Protocol};
use pgdyno_model::progress::Silent;
use pgdyno_model::record::SessionEnd;
use pgdyno_model::target::{
    Address, ChannelBinding, RootCert, Secret, SessionAttrs, SslMode, Target, Tls,
};
use pgdyno_store::Store;
use pgdyno_test_support::Session;
use pgdyno_test_support::load::{
    TPCB, TPCB_TABLES, assert_aborted, assert_counts, spec, unwatched,
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};

#[test]
fn every_mode_does_what_libpq_says_of_it() {
    let mut server = Secured::start(true);
    let root = server.root();
    let with_root = |mode| Tls { mode, root: root.clone(), ..Tls::default() };
    for (mode, expected) in SslMode::ALL.into_iter().zip([false, false, true, true, true, true]) {
        assert_eq!(
            encrypted(&server.target("scram", "localhost", with_root(mode))),
            expected,
            "{mode}"
        );
    }
    assert!(
        encrypted(&server.target("scram", "localhost", mode(SslMode::Require))),
        "any certificate will do"
    );

    // What pg_hba.conf demands is found by the modes that may choose.
    assert!(encrypted(&server.target("tlsonly", "localhost", mode(SslMode::Allow))));
    assert!(!encrypted(&server.target("plainonly", "localhost", mode(SslMode::Prefer))));
    for (user, fixed) in [("tlsonly", SslMode::Disable), ("plainonly", SslMode::Require)] {
        let error = refused(&server.target(user, "localhost", mode(fixed)));
        assert_eq!(error.sqlstate(), Some("28000"), "{user}: {error}");
    }
    let mut wrong = server.target("scram", "localhost", mode(SslMode::Prefer));
    wrong.password = Some(Secret::new("wrong".into()));
    assert_eq!(refused(&wrong).sqlstate(), Some("28P01"));

    // A Unix socket is never encrypted, whatever is asked.
    let strict = Tls { mode: SslMode::VerifyFull, ..Tls::default() };
    assert!(!encrypted(&Target { tls: strict, ..server.cluster.control_target("postgres") }));

    // The older version of TLS, too, tied to SCRAM.
    server.set(&[("ssl", "on"), ("ssl_max_protocol_version", "TLSv1.2")]);
    let bound = Tls { channel_binding: ChannelBinding::Require, ..with_root(SslMode::VerifyFull) };
    assert!(encrypted(&server.target("scram", "localhost", bound)));

    server.set(&[("ssl", "off")]);
    for mode in [SslMode::Disable, SslMode::Allow, SslMode::Prefer] {
        assert!(!encrypted(&server.target("scram", "localhost", with_root(mode))), "{mode}");
    }
    for mode in [SslMode::Require, SslMode::VerifyCa, SslMode::VerifyFull] {
        let error = refused(&server.target("scram", "localhost", with_root(mode)));
        assert!(
            matches!(error, ConnectError::NoTls { .. }) && error.help().is_some(),
            "{mode}: {error}"
        );
        assert!(error.to_string().contains(mode.name()), "{error}");
    }
}

#[test]
fn a_server_that_cannot_be_trusted_is_refused() {
    let server = Secured::start(true);
    let other = Authority::new("another root");
    let wrong = Some(RootCert::File(server.file("wrong.crt", &other.pem)));
    for mode in [SslMode::Require, SslMode::VerifyCa, SslMode::VerifyFull] {
        let tls = Tls { mode, root: wrong.clone(), ..Tls::default() };
        let error = refused(&server.target("scram", "localhost", tls));
        assert!(error.to_string().contains("not signed by a root certificate"), "{mode}: {error}");
        assert!(error.help().is_some());
    }
    // One that only prefers TLS does without.
    let tls = Tls { mode: SslMode::Prefer, root: wrong, ..Tls::default() };
    assert!(!encrypted(&server.target("scram", "localhost", tls)));

    // The certificate is made out to localhost: another name counts for verify-full only.
    for host in ["127.0.0.1", "db.example"] {
        let tls = |mode| Tls { mode, root: server.root(), ..Tls::default() };
        assert!(encrypted(&server.target("scram", host, tls(SslMode::VerifyCa))));
        let error = refused(&server.target("scram", host, tls(SslMode::VerifyFull)));
        assert!(error.to_string().contains("is for another host"), "{error}");
    }

    // Whom the system trusts has not signed it either.
    let tls = Tls { mode: SslMode::VerifyFull, root: Some(RootCert::System), ..Tls::default() };
    assert!(matches!(refused(&server.target("scram", "localhost", tls)), ConnectError::Tls { .. }));

    let error = refused(&server.target("scram", "localhost", mode(SslMode::VerifyCa)));
    assert!(error.to_string().contains("no root certificate") && error.help().is_some(), "{error}");
    let missing = Some(RootCert::File(server.home.path().join("missing.crt")));
    let tls = Tls { mode: SslMode::VerifyCa, root: missing, ..Tls::default() };
    let error = refused(&server.target("scram", "localhost", tls));
    assert!(error.to_string().contains("missing.crt"), "{error}");
    let empty = Some(RootCert::File(server.file("empty.crt", "nothing\n")));
    let tls = Tls { mode: SslMode::VerifyCa, root: empty, ..Tls::default() };
    let error = refused(&server.target("scram", "localhost", tls));
    assert!(error.to_string().contains("empty.crt"), "{error}");
}

#[test]
fn a_self_signed_certificate_can_be_its_own_root() {
    let mut server = Secured::start(false);
    // As PostgreSQL's manual makes it: an authority's, with nothing but a common name.
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "localhost");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    server.certify(&pem, &key.serialize_pem(), &pem);
    server.set(&[("ssl", "on")]);
    let root = Some(RootCert::File(server.file("own.crt", &pem)));
    let tls = |mode| Tls { mode, root: root.clone(), ..Tls::default() };
    assert!(encrypted(&server.target("scram", "localhost", tls(SslMode::VerifyFull))));
    assert!(encrypted(&server.target("scram", "db.example", tls(SslMode::VerifyCa))));
    refused(&server.target("scram", "db.example", tls(SslMode::VerifyFull)));

    // Trusted or not, its time must not be over.
    params.not_before = rcgen::date_time_ymd(2001, 1, 1);
    params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    let pem = params.self_signed(&key).unwrap().pem();
    server.certify(&pem, &key.serialize_pem(), &pem);
    server.set(&[]);
    server.set(&[("ssl", "on")]);
    let root = Some(RootCert::File(server.file("old.crt", &pem)));
    let tls = Tls { mode: SslMode::VerifyCa, root, ..Tls::default() };
    let error = refused(&server.target("scram", "localhost", tls));
    assert!(error.to_string().contains("not valid"), "{error}");
}

#[test]
fn a_certificate_of_version_1_serves_as_openssl_makes_it() {
    let mut server = Secured::start(false);
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "localhost");
    let key = KeyPair::generate().unwrap();
    let third = params.self_signed(&key).unwrap();
    let outer = values(inside(third.der()));
    // Neither a version nor extensions.
    let fields: Vec<&[u8]> = values(inside(outer[0]))
        .into_iter()
        .filter(|field| ![0xa0, 0xa3].contains(&field[0]))
        .collect();
    assert_eq!(fields.len(), 6);
    let signed = der(0x30, &fields.concat());
    let signature = [&[0], &*rcgen::SigningKey::sign(&key, &signed).unwrap()].concat();
    let whole = der(0x30, &[&*signed, outer[1], &der(0x03, &signature)].concat());
    let pem = pem_of(&whole);
    server.certify(&pem, &key.serialize_pem(), &pem);
    server.set(&[("ssl", "on")]);

    let bound = Tls { channel_binding: ChannelBinding::Require, ..mode(SslMode::Require) };
    assert!(encrypted(&server.target("scram", "localhost", bound)));
    let root = Some(RootCert::File(server.file("own.crt", &pem)));
    let tls = |mode| Tls { mode, root: root.clone(), ..Tls::default() };
    assert!(encrypted(&server.target("scram", "localhost", tls(SslMode::VerifyFull))));
    let error = refused(&server.target("scram", "db.example", tls(SslMode::VerifyFull)));
    assert!(matches!(error, ConnectError::Tls { .. }), "{error}");
    let other = Some(RootCert::File(server.file("other.crt", &server.authority.pem)));
    refused(&server.target("scram", "localhost", Tls { root: other, ..mode(SslMode::VerifyCa) }));
}

#[test]
fn a_client_certificate_proves_who_we_are() {
    let server = Secured::start(true);
    let (cert, key) = server.authority.sign("certified", &[]);
    let (cert, key) = (server.file("client.crt", &cert), server.file("client.key", &key));
    let tls = |cert: Option<&Path>, key: Option<&Path>| Tls {
        mode: SslMode::VerifyFull,
        root: server.root(),
        cert: cert.map(Path::to_owned),
        key: key.map(Path::to_owned),
        ..Tls::default()
    };
    let target = |tls| Target { password: None, ..server.target("certified", "localhost", tls) };
    assert!(encrypted(&target(tls(Some(&cert), Some(&key)))));
    assert_eq!(refused(&target(tls(None, None))).sqlstate(), Some("28000"));
    let error = refused(&target(tls(Some(&cert), None)));
    assert!(error.to_string().contains("no private key"), "{error}");

    // One that the server has no reason to trust.
    let (other, others_key) = Authority::new("another root").sign("certified", &[]);
    let (other, others_key) =
        (server.file("other.crt", &other), server.file("other.key", &others_key));
    refused(&target(tls(Some(&other), Some(&others_key))));
    refused(&target(tls(Some(&cert), Some(&others_key))));

    let open = server.file("open.key", &fs::read_to_string(&key).unwrap());
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    let error = refused(&target(tls(Some(&cert), Some(&open))));
    assert!(
        error.to_string().contains("0644") && error.help().unwrap().contains("chmod"),
        "{error}"
    );
}

#[test]
fn scram_is_tied_to_the_connection_where_that_is_required() {
    let server = Secured::start(true);
    let bound = |mode, channel_binding| Tls { mode, channel_binding, ..Tls::default() };
    for binding in [ChannelBinding::Disable, ChannelBinding::Prefer, ChannelBinding::Require] {
        assert!(encrypted(&server.target("scram", "localhost", bound(SslMode::Require, binding))));
    }
    let required = |mode| bound(mode, ChannelBinding::Require);
    for (user, mode) in
        [("scram", SslMode::Disable), ("md5user", SslMode::Require), ("open", SslMode::Require)]
    {
        let error = refused(&server.target(user, "localhost", required(mode)));
        assert!(error.to_string().contains("channel binding is required"), "{user}: {error}");
    }
    // Certificates that are signed by another hash are bound by that.
    for algorithm in [&rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ECDSA_P256_SHA256] {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let cert =
            CertificateParams::new(vec!["localhost".into()]).unwrap().self_signed(&key).unwrap();
        server.certify(&cert.pem(), &key.serialize_pem(), &server.authority.pem);
        server.sql("SELECT pg_reload_conf()");
        let target = server.target("scram", "localhost", required(SslMode::Require));
        // Until the server has reread it, the old one is bound, which is as good.
        assert!(encrypted(&target));
    }
}

#[test]
fn a_whole_load_runs_over_tls_and_every_transaction_is_counted() {
    let server = Secured::start(true);
    let tls = Tls { mode: SslMode::VerifyFull, root: server.root(), ..Tls::default() };
    let target = server.target("postgres", "localhost", tls);
    let mut session = Session::new(&target);
    session.ask(TPCB_TABLES);
    let mut before = 0;
    for protocol in [Protocol::Simple, Protocol::Extended, Protocol::Prepared] {
        for threads in [1, 2] {
            let mut spec = spec(target.clone(), TPCB);
            spec.protocol = protocol;
            spec.clients = NonZeroU32::new(5).unwrap();
            spec.threads = NonZeroU32::new(threads).unwrap();
            spec.length = Length::Transactions(60);
            let m = run_load(&spec, &unwatched(&GO_ON)).unwrap();
            assert_counts(&m, (300, 0, 0));
            let rows = session.count("SELECT count(*) FROM history");
            assert_eq!(rows - before, 300, "{protocol:?}, {threads} threads");
            before = rows;
        }
    }
    let sums = "SELECT (SELECT sum(abalance) FROM accounts) = (SELECT sum(delta) FROM history)";
    assert_eq!(session.ask(sums).as_deref(), Some("t"));

    // Results and statements of many records, larger than any buffer on the way.
    session.ask("CREATE TABLE texts (t text)");
    let text = "0123456789abcdef".repeat(100_000);
    let script = format!(
        "SELECT repeat('x', 3000000), generate_series(1, 3);\n\
         INSERT INTO texts VALUES ('{text}');\n"
    );
    for protocol in [Protocol::Simple, Protocol::Prepared] {
        let mut spec = spec(target.clone(), &script);
        spec.protocol = protocol;
        spec.clients = NonZeroU32::new(3).unwrap();
        spec.length = Length::Transactions(4);
        let m = run_load(&spec, &unwatched(&GO_ON)).unwrap();
        assert_eq!((m.transactions, m.failed), (12, 0), "{:?}", m.counters.abort_reasons);
    }
    let whole =
        format!("SELECT count(*) FROM texts WHERE t = repeat('0123456789abcdef', {})", 100_000);
    assert_eq!(session.count(&whole), 24);
}

#[test]
fn an_experiment_runs_on_a_given_server_that_takes_nothing_but_tls() {
    let server = Secured::start(true);
    server.sql("ALTER ROLE tlsonly SUPERUSER");
    let Some(RootCert::File(root)) = server.root() else { panic!("a file") };
    let (port, root) = (server.port(), root.display().to_string());
    let dsn = format!(
        "postgresql://tlsonly:correct%20horse@localhost:{port}/postgres\
         ?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert={root}&channel_binding=require"
    );
    let resolved = quickstart_on(&dsn, &["factors.clients=[2]"]);
    let store = server.home.path().join("store.sqlite3");
    let outcome = run::run(&resolved, &store, &Silent, &GO_ON).unwrap();
    assert_eq!((outcome.end, outcome.failed), (SessionEnd::Completed, 0));
    let trials = Store::open_existing(&store).unwrap().trials(&outcome.run).unwrap();
    for trial in &trials {
        let count = trial.server_count.as_ref().unwrap();
        assert!(trial.measurement.as_ref().unwrap().transactions > 0);
        assert_eq!(count.rows, count.rows_expected);
    }
    assert!(!trials.is_empty());
    let bytes = fs::read(&store).unwrap();
    assert!(!bytes.windows(5).any(|w| w == b"horse"), "the store must not hold the password");
}

#[test]
fn a_server_that_goes_away_is_noticed_over_tls() {
    let server = Secured::start(true);
    let target = server.target("postgres", "localhost", mode(SslMode::Require));
    let script = "SELECT pg_terminate_backend(pg_backend_pid());";
    let m = run_load(&spec(target, script), &unwatched(&GO_ON)).unwrap();
    assert_eq!(m.counters.failures.get("08006"), Some(&1), "{m:?}");
    assert_aborted(&m, "57P01");
}

#[test]
fn of_several_hosts_the_first_that_serves_is_taken() {
    let server = Secured::start(true);
    // A port that nobody listens on.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let select = |dsn: &str| {
        let options =
            ConnectOptions { dsn_or_dbname: Some(dsn.into()), ..ConnectOptions::default() };
        let environment = Environment { user: Some("me".into()), ..Environment::default() };
        resolve_in(&options, &environment).unwrap().connect().map(|(_, target)| target)
    };
    let both = format!("127.0.0.1:{closed},127.0.0.1:{}", server.port());
    let dsn = format!("postgresql://scram:correct%20horse@{both}/postgres?sslmode=require");
    let target = select(&dsn).unwrap();
    assert_eq!(target.address.to_string(), format!("127.0.0.1:{}", server.port()));
    assert!(encrypted(&target));

    for (attrs, serves) in [
        ("read-write", true),
        ("primary", true),
        ("prefer-standby", true),
        ("read-only", false),
        ("standby", false),
    ] {
        let found = select(&format!("{dsn}&target_session_attrs={attrs}"));
        assert_eq!(found.is_ok(), serves, "{attrs}: {found:?}");
        if let Err(error) = found {
            let words = error.to_string();
            assert!(
                words.contains(attrs) && words.contains("a primary that takes writes"),
                "{words}"
            );
        }
    }
    // The load's own connections ask, too.
    let asked = Target { session_attrs: SessionAttrs::ReadOnly, ..target.clone() };
    let error = refused(&asked);
    assert!(matches!(error, ConnectError::NotWanted { .. }), "{error}");
    server.sql("ALTER ROLE scram SET default_transaction_read_only = on");
    assert!(encrypted(&asked));
    let error = refused(&Target { session_attrs: SessionAttrs::ReadWrite, ..target });
    assert!(error.to_string().contains("read-only"), "{error}");

    // One that refuses the user is the last that is asked.
    let wrong =
        format!("postgresql://scram:wrong@127.0.0.1:{},127.0.0.1:{closed}/postgres", server.port());
    let error = select(&wrong).unwrap_err();
    assert_eq!(error.sqlstate(), Some("28P01"), "{error}");
    assert!(!format!("{error:?}").contains("horse"));
}

#[test]
fn one_that_does_not_answer_is_given_up_in_time() {
    // It takes connections and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address =
        Address::Tcp { host: "127.0.0.1".into(), port: silent.local_addr().unwrap().port() };
    for mode in [SslMode::Disable, SslMode::Require] {
        let target = Target {
            connect_timeout: Some(Duration::from_millis(300)),
            tls: Tls { mode, ..Tls::default() },
            ..Target::new(address.clone(), "me", "postgres")
        };
        let error = load(&target).unwrap_err();
        assert!(matches!(error, ConnectError::Timeout { .. }), "{error}");
    }
}

/// Starts a server that takes a connection for each of `answers`, and sends the answer after the
/// first message on the connection.
fn scripted(answers: Vec<Vec<u8>>) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address =
        Address::Tcp { host: "127.0.0.1".into(), port: listener.local_addr().unwrap().port() };
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((mut socket, _)) = listener.accept() else { return };
            let mut heard = [0; 1024];
            if socket.read(&mut heard).unwrap_or(0) > 0 {
                let _ = socket.write_all(&answer);
            }
            // The other side is to hang up.
            while socket.read(&mut heard).unwrap_or(0) > 0 {}
        }
    });
    address
}

#[test]
fn servers_of_other_kinds_are_taken() {
    // An older minor version, unknown parameters, no key.
    let mut greeting = Vec::new();
    for (tag, body) in [
        (b'v', b"\0\x03\0\0\0\0\0\x01_pq_.x\0".as_slice()),
        (b'R', b"\0\0\0\0"),
        (b'S', b"moon\0green\0"),
        (b'N', b"SNOTICE\0Mhello\0\0"),
        (b'Z', b"I"),
    ] {
        greeting.push(tag);
        greeting.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
        greeting.extend(body);
    }
    let plain = Target::new(scripted(vec![greeting.clone()]), "me", "postgres");
    let connection = connect(&plain, CONNECT_TIMEOUT).unwrap();
    assert_eq!(connection.key, None);

    // One that knows nothing of TLS and says so with an error.
    let error = b"E\0\0\0\x08Mno\0\0".to_vec();
    let address = scripted(vec![error.clone(), greeting]);
    let prefer = Target { tls: mode(SslMode::Prefer), ..Target::new(address, "me", "postgres") };
    assert!(!load(&prefer).unwrap());
    let require = Target {
        tls: mode(SslMode::Require),
        ..Target::new(scripted(vec![error]), "me", "postgres")
    };
    assert!(matches!(load(&require).unwrap_err(), ConnectError::Unexpected { tag: b'E', .. }));
}

#[test]
fn nothing_that_came_in_clear_is_taken_for_encrypted() {
    // Somebody between us and the server answers for it right behind its `S`.
    let injected = [b"S".as_slice(), b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"].concat();
    let target = Target {
        tls: mode(SslMode::Require),
        ..Target::new(scripted(vec![injected]), "me", "postgres")
    };
    let error = load(&target).unwrap_err();
    assert!(matches!(error, ConnectError::Tls { .. }), "{error}");
    let target = Target {
        tls: mode(SslMode::Require),
        ..Target::new(scripted(vec![b"X".to_vec()]), "me", "postgres")
    };
    assert!(matches!(load(&target).unwrap_err(), ConnectError::Unexpected { tag: b'X', .. }));
}
