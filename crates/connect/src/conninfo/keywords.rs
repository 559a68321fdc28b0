//! libpq's connection keywords, and how far pgdyno supports each.

use pgdyno_text::nearest::probable;

/// A connection keyword.
pub(super) struct Keyword {
    /// Name in connection strings.
    pub(super) name: &'static str,
    /// Environment variable that sets the keyword.
    pub(super) variable: Option<&'static str>,
    /// Degree of support.
    pub(super) support: Support,
}

/// Degree to which pgdyno supports a keyword.
pub(super) enum Support {
    /// As libpq does.
    Full,
    /// Ignored, since it changes nothing that pgdyno does.
    Ignored,
    /// With these values only.
    Only(&'static [&'static str]),
    /// With no value.
    Never,
}

const fn known(name: &'static str, variable: Option<&'static str>, support: Support) -> Keyword {
    Keyword { name, variable, support }
}

/// All keywords up to PostgreSQL 18.
pub(super) const KEYWORDS: &[Keyword] = &[
    known("application_name", Some("PGAPPNAME"), Support::Full),
    known("channel_binding", Some("PGCHANNELBINDING"), Support::Full),
    known(
        "client_encoding",
        Some("PGCLIENTENCODING"),
        Support::Only(&["auto", "utf8", "utf-8", "unicode"]),
    ),
    known("connect_timeout", Some("PGCONNECT_TIMEOUT"), Support::Full),
    known("dbname", Some("PGDATABASE"), Support::Full),
    known("fallback_application_name", None, Support::Full),
    known("gssdelegation", Some("PGGSSDELEGATION"), Support::Only(&["0"])),
    known("gssencmode", Some("PGGSSENCMODE"), Support::Only(&["disable", "prefer"])),
    known("gsslib", Some("PGGSSLIB"), Support::Ignored),
    known("host", Some("PGHOST"), Support::Full),
    known("hostaddr", Some("PGHOSTADDR"), Support::Full),
    known("keepalives", None, Support::Ignored),
    known("keepalives_count", None, Support::Ignored),
    known("keepalives_idle", None, Support::Ignored),
    known("keepalives_interval", None, Support::Ignored),
    known("krbsrvname", Some("PGKRBSRVNAME"), Support::Ignored),
    known("load_balance_hosts", Some("PGLOADBALANCEHOSTS"), Support::Full),
    known(
        "max_protocol_version",
        Some("PGMAXPROTOCOLVERSION"),
        Support::Only(&["3.0", "3.2", "latest"]),
    ),
    known("min_protocol_version", Some("PGMINPROTOCOLVERSION"), Support::Only(&["3.0"])),
    known("options", Some("PGOPTIONS"), Support::Full),
    known("passfile", Some("PGPASSFILE"), Support::Full),
    known("password", Some("PGPASSWORD"), Support::Full),
    known("port", Some("PGPORT"), Support::Full),
    known("replication", None, Support::Only(&["false", "off", "no", "0"])),
    known("require_auth", Some("PGREQUIREAUTH"), Support::Full),
    known("requirepeer", Some("PGREQUIREPEER"), Support::Never),
    known("requiressl", Some("PGREQUIRESSL"), Support::Full),
    known("service", Some("PGSERVICE"), Support::Full),
    known("servicefile", Some("PGSERVICEFILE"), Support::Full),
    known("ssl_max_protocol_version", Some("PGSSLMAXPROTOCOLVERSION"), Support::Only(&["TLSv1.3"])),
    known(
        "ssl_min_protocol_version",
        Some("PGSSLMINPROTOCOLVERSION"),
        Support::Only(&["TLSv1", "TLSv1.1", "TLSv1.2"]),
    ),
    known("sslcert", Some("PGSSLCERT"), Support::Full),
    known("sslcertmode", Some("PGSSLCERTMODE"), Support::Only(&["allow", "disable"])),
    known("sslcompression", Some("PGSSLCOMPRESSION"), Support::Ignored),
    known("sslcrl", Some("PGSSLCRL"), Support::Never),
    known("sslcrldir", Some("PGSSLCRLDIR"), Support::Never),
    known("sslkey", Some("PGSSLKEY"), Support::Full),
    known("sslmode", Some("PGSSLMODE"), Support::Full),
    known("sslnegotiation", Some("PGSSLNEGOTIATION"), Support::Only(&["postgres"])),
    known("sslpassword", None, Support::Never),
    known("sslrootcert", Some("PGSSLROOTCERT"), Support::Full),
    known("sslsni", Some("PGSSLSNI"), Support::Only(&["1"])),
    known("target_session_attrs", Some("PGTARGETSESSIONATTRS"), Support::Full),
    known("tcp_user_timeout", None, Support::Ignored),
    known("user", Some("PGUSER"), Support::Full),
];

/// Returns the keyword called `name`.
pub(super) fn find(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|known| known.name == name)
}

/// Returns the keyword that `name` was probably meant to be.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let known: Vec<&'static str> = KEYWORDS.iter().map(|known| known.name).collect();
    probable(name, &known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_docs_list_every_option_that_is_refused_or_ignored() {
        let docs = include_str!("../../../../docs/pgbench.md");
        let ignored = docs.split("These change nothing").nth(1).unwrap();
        let ignored = ignored.split(". A file").next().unwrap();
        for Keyword { name, support, .. } in KEYWORDS {
            let row = match support {
                Support::Full => continue,
                Support::Ignored => {
                    assert!(ignored.contains(&format!("`{name}`")), "{name}");
                    continue;
                }
                Support::Never => format!("| `{name}` | |"),
                Support::Only(values) => format!("| `{name}` | `{}` |", values.join("`, `")),
            };
            assert!(docs.contains(&row), "{row}");
        }
    }
}
