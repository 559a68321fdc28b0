//! The front end that pages are made of, and the places where a page's parts go.
//!
//! `web/dist/index.html` is built from `web/` and committed. It holds each mark once. Its content
//! security policy names the hashes of its script and style, so that nothing but the marks may
//! change.

use super::static_html::escape;
use crate::json;

/// The built front end.
const TEMPLATE: &str = include_str!("../../../../web/dist/index.html");

const TITLE: &str = "<!--pgdyno:title-->";
const VERSION: &str = "<!--pgdyno:version-->";
const STATIC: &str = "<!--pgdyno:static-->";
const DATA: &str = "<!--pgdyno:data-->";

/// Element in place of data when a server gives the page out.
pub(super) const NO_SERVER: &str =
    "<script type=\"application/json\" id=\"pgdyno-server\">{}</script>";

/// Returns the element that replaces [`NO_SERVER`] if a proxy offers the server under the path
/// `base`.
pub(super) fn server_under(base: &str) -> String {
    NO_SERVER.replacen("{}", &format!("{{\"base\":\"{base}\"}}"), 1)
}

/// Parts of a page.
pub(super) struct Parts<'a> {
    /// Title, as text.
    pub(super) title: &'a str,
    /// Answer and table, as HTML.
    pub(super) body: &'a str,
    /// The document, as JSON.
    pub(super) document: &'a str,
    /// Details of trials, with their indices.
    pub(super) details: &'a [(usize, String)],
}

/// Puts the parts into the front end.
pub(super) fn insert(parts: &Parts<'_>) -> String {
    fill(TEMPLATE, parts)
}

/// Returns the front end for a server, and its content security policy for a header.
///
/// An empty element `pgdyno-server` takes the place of data. The policy of a file allows no
/// requests; a server's allows those to itself.
pub(super) fn for_server() -> (String, String) {
    serve(TEMPLATE)
}

fn serve(template: &str) -> (String, String) {
    const META: &str = "<meta http-equiv=\"Content-Security-Policy\" content=\"";
    let policy = template.split_once(META).and_then(|(_, rest)| rest.split_once('"'));
    let policy = policy.map_or("default-src 'none'", |(policy, _)| policy);
    let own = format!("{policy}; connect-src 'self'");
    let html = fill_marks(
        &template.replacen(policy, &own, 1),
        &[
            (TITLE, "pgdyno".to_owned()),
            (VERSION, escape(env!("CARGO_PKG_VERSION"))),
            (STATIC, String::new()),
            (DATA, NO_SERVER.to_owned()),
        ],
    );
    (html, format!("{own}; frame-ancestors 'none'"))
}

fn fill(template: &str, parts: &Parts<'_>) -> String {
    let texts = [
        (TITLE, escape(parts.title)),
        (VERSION, escape(env!("CARGO_PKG_VERSION"))),
        (STATIC, parts.body.to_owned()),
        (DATA, elements(parts)),
    ];
    fill_marks(template, &texts)
}

/// Replaces each mark by its text. A text that holds a mark is not filled again.
fn fill_marks(template: &str, texts: &[(&str, String)]) -> String {
    let mut places: Vec<(usize, &str, &str)> = texts
        .iter()
        .filter_map(|(mark, text)| Some((template.find(mark)?, *mark, text.as_str())))
        .collect();
    places.sort_unstable_by_key(|(at, ..)| *at);
    let mut out = String::with_capacity(
        template.len() + texts.iter().map(|(_, text)| text.len()).sum::<usize>(),
    );
    let mut done = 0;
    for (at, mark, text) in places {
        out.push_str(&template[done..at]);
        out.push_str(text);
        done = at + mark.len();
    }
    out.push_str(&template[done..]);
    out
}

/// Returns the elements that hold the data. Base64 needs no escaping.
fn elements(parts: &Parts<'_>) -> String {
    let mut out = String::from("<script type=\"application/json\" id=\"pgdyno-data\">");
    out.push_str(&json::for_browser(parts.document));
    out.push_str("</script>");
    for (i, text) in parts.details {
        out.push_str(&format!("\n<script type=\"text/plain\" id=\"pgdyno-trial-{i}\">"));
        out.push_str(text);
        out.push_str("</script>");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_end_has_each_mark_once() {
        for mark in [TITLE, VERSION, STATIC, DATA] {
            assert_eq!(TEMPLATE.matches(mark).count(), 1, "{mark}");
        }
        let generator = format!("<meta name=\"generator\" content=\"pgdyno {VERSION}\">");
        let at = TEMPLATE.find(&generator).unwrap();
        assert!(at + generator.len() < 4096, "a report is recognised by its head");
    }

    #[test]
    fn a_server_gives_out_the_front_end_without_data_and_allows_requests_to_itself() {
        let (html, policy) = for_server();
        for mark in [TITLE, VERSION, STATIC, DATA, "id=\"pgdyno-data\""] {
            assert!(!html.contains(mark), "{mark}");
        }
        let in_page = policy.strip_suffix("; frame-ancestors 'none'").unwrap();
        assert!(html.contains(&format!("content=\"{in_page}\"")), "{policy}");
        assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
        assert!(in_page.ends_with("; connect-src 'self'"), "{policy}");
    }

    #[test]
    fn a_part_that_holds_a_mark_is_not_filled_again() {
        let details = [(3, "QUJD".to_owned())];
        let parts = Parts { title: DATA, body: "<p>body</p>", document: "{}", details: &details };
        let page = fill(
            "<title><!--pgdyno:title--></title><!--pgdyno:static-->|<!--pgdyno:data-->",
            &parts,
        );
        assert_eq!(
            page,
            "<title>&lt;!--pgdyno:data--&gt;</title><p>body</p>|\
             <script type=\"application/json\" id=\"pgdyno-data\">{}</script>\n\
             <script type=\"text/plain\" id=\"pgdyno-trial-3\">QUJD</script>"
        );
    }
}
