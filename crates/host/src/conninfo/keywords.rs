//! libpq's connection keywords, and what is made of each here.

/// A connection keyword.
pub(crate) struct Keyword {
    /// Its name.
    pub(crate) name: &'static str,
    /// The environment variable that says the same.
    pub(crate) variable: Option<&'static str>,
    /// What is made of it.
    pub(crate) use_: Use,
}

/// What is made of a keyword.
pub(crate) enum Use {
    /// It is followed.
    Followed,
    /// It changes nothing that pgdyno does.
    Harmless,
    /// Only these values are possible.
    Only(&'static [&'static str]),
    /// Any value would have to be followed, and none is.
    Never,
}

const fn known(name: &'static str, variable: Option<&'static str>, use_: Use) -> Keyword {
    Keyword { name, variable, use_ }
}

/// All of them, up to PostgreSQL 18.
pub(crate) const KEYWORDS: &[Keyword] = &[
    known("application_name", Some("PGAPPNAME"), Use::Followed),
    known("channel_binding", Some("PGCHANNELBINDING"), Use::Followed),
    known(
        "client_encoding",
        Some("PGCLIENTENCODING"),
        Use::Only(&["auto", "utf8", "utf-8", "unicode"]),
    ),
    known("connect_timeout", Some("PGCONNECT_TIMEOUT"), Use::Followed),
    known("dbname", Some("PGDATABASE"), Use::Followed),
    known("fallback_application_name", None, Use::Followed),
    known("gssdelegation", Some("PGGSSDELEGATION"), Use::Only(&["0"])),
    known("gssencmode", Some("PGGSSENCMODE"), Use::Only(&["disable", "prefer"])),
    known("gsslib", Some("PGGSSLIB"), Use::Harmless),
    known("host", Some("PGHOST"), Use::Followed),
    known("hostaddr", Some("PGHOSTADDR"), Use::Followed),
    known("keepalives", None, Use::Harmless),
    known("keepalives_count", None, Use::Harmless),
    known("keepalives_idle", None, Use::Harmless),
    known("keepalives_interval", None, Use::Harmless),
    known("krbsrvname", Some("PGKRBSRVNAME"), Use::Harmless),
    known("load_balance_hosts", Some("PGLOADBALANCEHOSTS"), Use::Followed),
    known(
        "max_protocol_version",
        Some("PGMAXPROTOCOLVERSION"),
        Use::Only(&["3.0", "3.2", "latest"]),
    ),
    known("min_protocol_version", Some("PGMINPROTOCOLVERSION"), Use::Only(&["3.0"])),
    known("options", Some("PGOPTIONS"), Use::Followed),
    known("passfile", Some("PGPASSFILE"), Use::Followed),
    known("password", Some("PGPASSWORD"), Use::Followed),
    known("port", Some("PGPORT"), Use::Followed),
    known("replication", None, Use::Only(&["false", "off", "no", "0"])),
    known("require_auth", Some("PGREQUIREAUTH"), Use::Followed),
    known("requirepeer", Some("PGREQUIREPEER"), Use::Never),
    known("requiressl", Some("PGREQUIRESSL"), Use::Followed),
    known("service", Some("PGSERVICE"), Use::Followed),
    known("servicefile", Some("PGSERVICEFILE"), Use::Followed),
    known("ssl_max_protocol_version", Some("PGSSLMAXPROTOCOLVERSION"), Use::Only(&["TLSv1.3"])),
    known(
        "ssl_min_protocol_version",
        Some("PGSSLMINPROTOCOLVERSION"),
        Use::Only(&["TLSv1", "TLSv1.1", "TLSv1.2"]),
    ),
    known("sslcert", Some("PGSSLCERT"), Use::Followed),
    known("sslcertmode", Some("PGSSLCERTMODE"), Use::Only(&["allow", "disable"])),
    known("sslcompression", Some("PGSSLCOMPRESSION"), Use::Harmless),
    known("sslcrl", Some("PGSSLCRL"), Use::Never),
    known("sslcrldir", Some("PGSSLCRLDIR"), Use::Never),
    known("sslkey", Some("PGSSLKEY"), Use::Followed),
    known("sslmode", Some("PGSSLMODE"), Use::Followed),
    known("sslnegotiation", Some("PGSSLNEGOTIATION"), Use::Only(&["postgres"])),
    known("sslpassword", None, Use::Never),
    known("sslrootcert", Some("PGSSLROOTCERT"), Use::Followed),
    known("sslsni", Some("PGSSLSNI"), Use::Only(&["1"])),
    known("target_session_attrs", Some("PGTARGETSESSIONATTRS"), Use::Followed),
    known("tcp_user_timeout", None, Use::Harmless),
    known("user", Some("PGUSER"), Use::Followed),
];

/// The keyword called `name`.
pub(crate) fn find(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|known| known.name == name)
}

/// The keyword most like `name`, if one is.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let alike = KEYWORDS.iter().map(|known| (known.name, strsim::jaro_winkler(known.name, name)));
    alike
        .filter(|(_, score)| *score > 0.85)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(name, _)| name)
}
