//! Reads pages as a browser would.

use std::io::Read as _;

use base64::Engine as _;
use pgdyno_report::Page;
use serde_json::Value;

/// Text of the data element `id` of a page.
pub(crate) fn element<'a>(html: &'a str, id: &str) -> Option<&'a str> {
    let tag = format!("id=\"{id}\">");
    let start = html.find(&tag)? + tag.len();
    Some(&html[start..start + html[start..].find("</script>")?])
}

/// The document of a page.
pub(crate) fn document(page: &Page) -> Value {
    let html = page.to_html();
    serde_json::from_str(element(&html, "pgdyno-data").unwrap()).unwrap()
}

/// The detail of trial `index` of a page.
pub(crate) fn detail(html: &str, index: usize) -> Option<Value> {
    let text = element(html, &format!("pgdyno-trial-{index}"))?;
    let bytes = base64::prelude::BASE64_STANDARD.decode(text).unwrap();
    let mut json = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut json).unwrap();
    Some(serde_json::from_str(&json).unwrap())
}
