//! Tables of the docs that tests measure.

/// The path of the file `name` of docs.
pub fn path(name: &str) -> String {
    format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Puts `text` into the file `name` of docs, between the marks of `part`, where that is asked for:
/// where `PGDYNO_TRUTH_WRITE` is set.
pub fn write(name: &str, part: &str, text: &str) {
    if std::env::var_os("PGDYNO_TRUTH_WRITE").is_none() {
        return;
    }
    let path = path(name);
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- {part}: begin -->\n"), format!("<!-- {part}: end -->"));
    let (from, to) = (page.find(&begin).unwrap() + begin.len(), page.find(&end).unwrap());
    std::fs::write(path, format!("{}{text}{}", &page[..from], &page[to..])).unwrap();
}

/// Today, as the docs have it.
pub fn date() -> String {
    let date = std::process::Command::new("date").arg("+%Y-%m-%d").output().unwrap();
    String::from_utf8(date.stdout).unwrap().trim().to_owned()
}
