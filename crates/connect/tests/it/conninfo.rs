//! libpq's way to a connection, without one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pgdyno_connect::conninfo::{ConnectOptions, ConninfoError, Environment, Resolved, resolve_in};
use pgdyno_model::Advice;
use pgdyno_model::target::{
    Address, AuthMethod, ChannelBinding, RootCert, Secret, SessionAttrs, SslMode, Target,
};

/// A home directory with files in it, and variables.
struct World {
    home: tempfile::TempDir,
    environment: Environment,
}

impl World {
    fn new(variables: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment {
            variables: variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
            home: Some(home.path().to_owned()),
            user: Some("me".into()),
            socket_directories: vec![home.path().join("sockets"), home.path().join("tmp")],
            system_directory: home.path().join("etc"),
        };
        Self { home, environment }
    }

    fn file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn set(&mut self, name: &str, value: &Path) {
        self.environment.variables.insert(name.into(), value.display().to_string());
    }

    fn resolve(&self, dsn: &str) -> Result<Resolved, ConninfoError> {
        let dsn_or_dbname = Some(dsn.to_owned());
        resolve_in(
            &ConnectOptions { dsn_or_dbname, ..ConnectOptions::default() },
            &self.environment,
        )
    }

    fn first(&self, dsn: &str) -> Target {
        self.resolve(dsn).unwrap_or_else(|e| panic!("{dsn}: {e}")).servers.targets.remove(0)
    }

    fn addresses(&self, dsn: &str) -> Vec<String> {
        let resolved = self.resolve(dsn).unwrap_or_else(|e| panic!("{dsn}: {e}"));
        resolved.servers.targets.iter().map(|target| target.address.to_string()).collect()
    }
}

fn password(target: &Target) -> Option<&str> {
    target.password.as_ref().map(Secret::reveal)
}

#[test]
fn uris_are_read_as_libpq_reads_them() {
    let world = World::new(&[]);
    for (uri, address, user, database) in [
        ("postgresql://", "localhost:5432", "me", "me"),
        ("postgres://h", "h:5432", "me", "me"),
        ("postgresql://h:6432", "h:6432", "me", "me"),
        ("postgresql://h:/d", "h:5432", "me", "d"),
        ("postgresql://u@h/d", "h:5432", "u", "d"),
        ("postgresql:///d?host=h&port=1", "h:1", "me", "d"),
        ("postgresql://h/d?user=other&connect_timeout=10", "h:5432", "other", "d"),
        ("postgresql://[2001:db8::1234]/d", "[2001:db8::1234]:5432", "me", "d"),
        ("postgresql://[::1]:6432/d", "[::1]:6432", "me", "d"),
        ("postgresql://%2Fvar%2Frun%2Fx/d", "/var/run/x/.s.PGSQL.5432", "me", "d"),
        ("postgresql:///d?host=/var/run/x&port=7", "/var/run/x/.s.PGSQL.7", "me", "d"),
        ("postgresql://us%C3%A9r:p%40ss@h/d%20b", "h:5432", "usér", "d b"),
        ("postgresql://u:p@h/a/b", "h:5432", "u", "a/b"),
    ] {
        let target = world.first(uri);
        assert_eq!(target.address.to_string(), address, "{uri}");
        assert_eq!((target.user.as_str(), target.database.as_str()), (user, database), "{uri}");
    }
    assert_eq!(password(&world.first("postgresql://u:p%40s%3As@h/d")), Some("p@s:s"));
    assert_eq!(password(&world.first("postgresql://u:a:b@h/d")), Some("a:b"));
    assert_eq!(world.first("postgresql://h/d?ssl=true").tls.mode, SslMode::Require);
    assert_eq!(world.addresses("postgresql://a:1,b,[::1]:3/d"), ["a:1", "b:5432", "[::1]:3"]);
    for wrong in [
        "postgresql://h:x/d",
        "postgresql://h:0/d",
        "postgresql://h:65536/d",
        "postgresql://[::1/d",
        "postgresql://[]/d",
        "postgresql://[::1]x/d",
        "postgresql://h/d%",
        "postgresql://h/d%0g",
        "postgresql://h/d%00",
        "postgresql://h/d%ff",
        "postgresql://h/d?x",
        "postgresql://h/d?x=y",
    ] {
        assert!(world.resolve(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn keywords_are_read_as_libpq_reads_them() {
    let world = World::new(&[]);
    let target =
        world.first(r"host = h port= 6432  user='a b' dbname=it\'s password='x\'y\\z' options=''");
    assert_eq!(target.address.to_string(), "h:6432");
    assert_eq!((target.user.as_str(), target.database.as_str()), ("a b", "it's"));
    assert_eq!(password(&target), Some(r"x'y\z"));
    assert_eq!(target.settings, []);
    assert_eq!(world.first("plain").database, "plain");
    assert_eq!(world.first("").database, "me");
    for wrong in [
        "host",
        "host h=",
        "=h",
        "host=h port",
        "host='h",
        r"host=h\",
        "hots=h",
        "host=h sslmode=on",
    ] {
        let error = world.resolve(&format!("dbname=d {wrong}")).unwrap_err();
        assert!(!error.to_string().is_empty(), "{wrong}");
    }
    assert_eq!(world.resolve("hots=h").unwrap_err().help().as_deref(), Some("perhaps `host`?"));
}

#[test]
fn several_hosts_have_one_port_or_as_many() {
    let world = World::new(&[]);
    assert_eq!(world.addresses("host=a,b,/c port=1"), ["a:1", "b:1", "/c/.s.PGSQL.1"]);
    assert_eq!(world.addresses("host=a,b port=1,2"), ["a:1", "b:2"]);
    assert_eq!(world.addresses("host=a, port=1,"), ["a:1", "localhost:5432"]);
    let error = world.resolve("host=a,b,c port=1,2").unwrap_err();
    assert!(
        matches!(error, ConninfoError::Count { keyword: "port", count: 2, hosts: 3 }),
        "{error}"
    );
    assert!(world.resolve("host=a,b hostaddr=127.0.0.1").is_err());

    let target = world.first("host=db.example hostaddr=127.0.0.1");
    assert_eq!(target.address.to_string(), "db.example:5432");
    assert_eq!(target.host_address, Some("127.0.0.1".parse().unwrap()));
    let target = world.first("hostaddr=::1");
    assert_eq!(target.address.to_string(), "[::1]:5432");
    assert!(world.resolve("hostaddr=localhost").is_err());
}

#[test]
fn what_is_not_said_comes_from_the_environment_and_then_from_defaults() {
    let mut world = World::new(&[
        ("PGHOST", "envhost"),
        ("PGPORT", "6000"),
        ("PGUSER", "envuser"),
        ("PGDATABASE", "envdb"),
        ("PGPASSWORD", "envpass"),
        ("PGAPPNAME", "envapp"),
        ("PGOPTIONS", "-c work_mem=1MB"),
        ("PGCONNECT_TIMEOUT", "7"),
        ("PGTARGETSESSIONATTRS", "read-only"),
        ("PGSSLMODE", "require"),
        ("PGCHANNELBINDING", "require"),
        ("PGTZ", "UTC"),
    ]);
    let target = world.first("");
    assert_eq!(target.address.to_string(), "envhost:6000");
    assert_eq!((target.user.as_str(), target.database.as_str()), ("envuser", "envdb"));
    assert_eq!(password(&target), Some("envpass"));
    assert_eq!(target.connect_timeout, Some(Duration::from_secs(7)));
    assert_eq!(target.session_attrs, SessionAttrs::ReadOnly);
    assert_eq!(
        (target.tls.mode, target.tls.channel_binding),
        (SslMode::Require, ChannelBinding::Require)
    );
    let settings =
        [("application_name", "envapp"), ("options", "-c work_mem=1MB"), ("timezone", "UTC")];
    assert_eq!(target.settings, settings.map(|(n, v)| (n.to_owned(), v.to_owned())));

    // Options outweigh the environment; a connection string outweighs both.
    let options = ConnectOptions {
        dsn_or_dbname: Some("host=dsnhost".into()),
        host: Some("opthost".into()),
        port: Some("6001".into()),
        user: Some("optuser".into()),
        password: Some(Secret::new("optpass".into())),
        fallback_application_name: Some("pgbench".into()),
    };
    let target = resolve_in(&options, &world.environment).unwrap().servers.targets.remove(0);
    assert_eq!(target.address.to_string(), "dsnhost:6001");
    assert_eq!((target.user.as_str(), target.database.as_str()), ("optuser", "envdb"));
    assert_eq!(password(&target), Some("optpass"));
    assert!(target.settings.contains(&("application_name".into(), "envapp".into())));

    world.environment.variables.clear();
    let target = resolve_in(&options, &world.environment).unwrap().servers.targets.remove(0);
    assert!(target.settings.contains(&("application_name".into(), "pgbench".into())));
    assert_eq!(target.database, "optuser");
    assert_eq!((target.tls.mode, target.session_attrs), (SslMode::Prefer, SessionAttrs::Any));

    // The first directory with a socket in it, else localhost.
    assert_eq!(world.addresses(""), ["localhost:5432"]);
    world.file("tmp/.s.PGSQL.5432", "", 0o777);
    let expected = Address::Unix { directory: world.home.path().join("tmp"), port: 5432 };
    assert_eq!(world.first("").address, expected);
    assert_eq!(world.addresses("port=5433"), ["localhost:5433"]);
    world.environment.user = None;
    assert!(matches!(world.resolve(""), Err(ConninfoError::NoUser)));
}

#[test]
fn a_service_says_what_nobody_else_does() {
    let mut world = World::new(&[]);
    let text = "# comment\n[other]\nhost=other\n\n[mine]\nhost=servicehost\nport=7000\n# and\n\
                user=serviceuser\n\
                dbname=first\ndbname=second\n[mine]\nhost=never\n";
    world.file(".pg_service.conf", text, 0o644);
    world.file("etc/pg_service.conf", "[system]\nhost=systemhost\n[mine]\nhost=never\n", 0o644);
    world.environment.variables.insert("PGUSER".into(), "envuser".into());
    let target = world.first("service=mine port=7001");
    assert_eq!(target.address.to_string(), "servicehost:7001");
    assert_eq!((target.user.as_str(), target.database.as_str()), ("serviceuser", "first"));
    assert_eq!(world.addresses("service=system"), ["systemhost:5432"]);
    world.environment.variables.insert("PGSERVICE".into(), "mine".into());
    assert_eq!(world.addresses(""), ["servicehost:7000"]);

    let error = world.resolve("service=unknown").unwrap_err();
    assert!(
        error.to_string().contains("`unknown`") && error.to_string().contains(".pg_service.conf"),
        "{error}"
    );
    for (text, words) in [
        ("[mine]\nhost", "line 2"),
        ("[mine]\n\nhots=x", "line 3"),
        ("[mine]\nservice=other", "another"),
    ] {
        let path = world.file("services", text, 0o644);
        world.set("PGSERVICEFILE", &path);
        let error = world.resolve("service=mine").unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    let missing = world.home.path().join("missing");
    world.set("PGSERVICEFILE", &missing);
    assert!(matches!(world.resolve("service=mine"), Err(ConninfoError::ServiceFile { .. })));
    let elsewhere = world.home.path().join("elsewhere");
    world.file("elsewhere/pg_service.conf", "[there]\nhost=therehost\n", 0o644);
    world.set("PGSYSCONFDIR", &elsewhere);
    world.environment.variables.remove("PGSERVICEFILE");
    assert_eq!(world.addresses("service=there"), ["therehost:5432"]);
}

#[test]
fn passwords_are_looked_up_in_a_file_that_only_we_can_read() {
    let mut world = World::new(&[]);
    let text = "# h:5432:d:u:comment\nh:5432:d:u:first\nh:5432:d:u:second\nh:*:*:u2:any\n\
                a\\:b:5432:*:*:es\\\\ca\\:ped\nlocalhost:5432:*:u:here\n*:*:empty:*:\nbroken\n";
    let path = world.file(".pgpass", text, 0o600);
    let found = |dsn: &str| password(&world.first(dsn)).map(str::to_owned);
    assert_eq!(found("host=h user=u dbname=d").as_deref(), Some("first"));
    assert_eq!(found("host=h user=u dbname=d port=1"), None);
    assert_eq!(found("host=h user=u2 dbname=x port=1").as_deref(), Some("any"));
    assert_eq!(found("host=a:b user=x").as_deref(), Some(r"es\ca:ped"));
    assert_eq!(found("user=u dbname=d").as_deref(), Some("here"));
    let sockets = world.home.path().join("sockets").display().to_string();
    assert_eq!(found(&format!("host={sockets} user=u")).as_deref(), Some("here"));
    assert_eq!(found("host=/elsewhere user=u"), None);
    assert_eq!(found("host=x user=u dbname=empty"), None);
    assert_eq!(found("host=h user=u dbname=d password=said").as_deref(), Some("said"));
    // Each host has its own.
    let both = world.resolve("host=h,localhost user=u dbname=d").unwrap().servers.targets;
    assert_eq!(both.iter().map(password).collect::<Vec<_>>(), [Some("first"), Some("here")]);
    assert_eq!(world.resolve("host=h").unwrap().notes, [""; 0]);

    for mode in [0o640, 0o604, 0o660] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let resolved = world.resolve("host=h user=u dbname=d").unwrap();
        assert_eq!(password(&resolved.servers.targets[0]), None, "{mode:o}");
        assert!(
            resolved.notes[0].contains(".pgpass") && resolved.notes[0].contains("0600"),
            "{resolved:?}"
        );
    }
    let other = world.file("other", "*:*:*:*:fromother", 0o600);
    world.set("PGPASSFILE", &other);
    assert_eq!(password(&world.first("host=h")), Some("fromother"));
}

#[test]
fn certificates_are_found_where_libpq_looks() {
    let world = World::new(&[]);
    let tls = |dsn: &str| world.first(dsn).tls;
    assert_eq!(tls("host=h").root, None);
    let root = world.file(".postgresql/root.crt", "", 0o644);
    let cert = world.file(".postgresql/postgresql.crt", "", 0o644);
    let key = world.file(".postgresql/postgresql.key", "", 0o600);
    let found = tls("host=h sslmode=verify-ca");
    assert_eq!((found.mode, found.root), (SslMode::VerifyCa, Some(RootCert::File(root))));
    assert_eq!((found.cert, found.key), (Some(cert), Some(key)));
    assert_eq!(tls("host=h sslcertmode=disable").cert, None);
    let other = world.file("other.crt", "", 0o644);
    let found =
        tls(&format!("host=h sslrootcert='{0}' sslcert='{0}' sslkey='{0}'", other.display()));
    assert_eq!(found.root, Some(RootCert::File(other.clone())));
    assert_eq!((found.cert, found.key), (Some(other.clone()), Some(other)));

    let resolved = world.resolve("host=h sslrootcert=/nowhere/root.crt").unwrap();
    assert_eq!(resolved.servers.targets[0].tls.root, None);
    assert!(resolved.notes[0].contains("/nowhere/root.crt"), "{resolved:?}");

    let found = tls("host=h sslrootcert=system");
    assert_eq!((found.mode, found.root), (SslMode::VerifyFull, Some(RootCert::System)));
    assert!(world.resolve("host=h sslrootcert=system sslmode=require").is_err());
    assert_eq!(tls("host=h requiressl=1").mode, SslMode::Require);
    for mode in SslMode::ALL {
        assert_eq!(tls(&format!("host=h sslmode={mode}")).mode, mode);
    }
}

#[test]
fn what_cannot_be_done_is_refused_and_not_passed_over() {
    let world = World::new(&[]);
    for (said, word) in [
        ("sslnegotiation=direct", "sslnegotiation"),
        ("sslcrl=/x", "sslcrl"),
        ("require_auth=none,!md5", "require_auth"),
        ("require_auth=scram", "require_auth"),
        ("gssencmode=require", "gssencmode"),
        ("load_balance_hosts=round-robin", "load_balance_hosts"),
        ("client_encoding=LATIN1", "client_encoding"),
        ("ssl_min_protocol_version=TLSv1.3", "ssl_min_protocol_version"),
        ("host=@abstract", "host"),
        ("target_session_attrs=best", "target_session_attrs"),
        ("channel_binding=maybe", "channel_binding"),
        ("connect_timeout=soon", "connect_timeout"),
    ] {
        let error = world.resolve(said).unwrap_err();
        assert!(error.to_string().contains(word), "{said}: {error}");
    }
    for harmless in [
        "keepalives=0",
        "gssencmode=disable",
        "sslsni=1",
        "client_encoding=auto",
        "sslnegotiation=postgres",
    ] {
        world.first(&format!("host=h {harmless}"));
    }
}

#[test]
fn require_auth_is_followed_from_the_string_and_from_the_environment() {
    let required = |world: &World, said: &str| world.first(said).require_auth;
    let world = World::new(&[("PGREQUIREAUTH", "!password")]);
    let from_environment = required(&world, "host=h");
    assert!(
        !from_environment.accepts(AuthMethod::Password)
            && from_environment.accepts(AuthMethod::None)
    );
    let said = required(&world, "host=h require_auth=password,md5");
    assert!(said.names(AuthMethod::Password) && !said.accepts(AuthMethod::ScramSha256));
}

#[test]
fn no_password_is_shown_by_anything() {
    let world = World::new(&[("PGPASSWORD", "hunter2")]);
    let options = ConnectOptions {
        dsn_or_dbname: Some("postgresql://u:hunter2@h/d".into()),
        password: Some(Secret::new("hunter2".into())),
        ..ConnectOptions::default()
    };
    let resolved = resolve_in(&options, &world.environment).unwrap();
    let shown = format!("{options:?} {:?} {resolved:?}", world.environment);
    assert!(!shown.contains("hunter2"), "{shown}");
    for wrong in [
        "postgresql://u:hunter2:@h:hunter2/d",
        "postgresql://u:hunter2/x@h/d",
        "postgresql://u:x@hunter2@h/d",
        "host=h password=x hunter2",
        "host=h password=x hunter2=y",
        "host=h password='hunter2",
        "host=h hostaddr=hunter2",
        "host=h sslmode=hunter2",
        "host=h connect_timeout=hunter2",
        "host=h require_auth=hunter2",
    ] {
        let error = world.resolve(wrong).unwrap_err();
        let shown = format!("{error} {error:?} {:?}", error.help());
        assert!(!shown.contains("hunter2"), "{wrong}: {shown}");
    }
    // What was said by an option of its own can be quoted.
    let options = ConnectOptions { port: Some("abc".into()), ..ConnectOptions::default() };
    let error = resolve_in(&options, &world.environment).unwrap_err();
    assert!(error.to_string().contains("`abc`") && error.to_string().contains("port"), "{error}");
}
