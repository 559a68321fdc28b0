//! Renders the findings of `pgdyno doctor` as a page.

use pgdyno_lab::doctor::{Doctor, Severity};
use pgdyno_model::Advice;
use pgdyno_report::fingerprint::{self, Row};
use pgdyno_report::text::{plain, wrap};

use crate::parts::{self, Part};

/// Where the text of rows and advice begins.
const INDENT: usize = 13;

/// Renders the findings, section by section, in at most `width` columns.
///
/// A word longer than a line stays whole. Commands are not broken, so that they can be copied.
pub(super) fn render(doctor: &Doctor, verbose: bool, width: usize) -> String {
    let mut page = Page { lines: Vec::new(), width };
    page.head("Host");
    page.rows(fingerprint::host(&doctor.host).iter().filter(|row| verbose || !row.detail));
    page.head("Privileges");
    let who = if doctor.root { "root" } else { "not root" };
    page.text(&match &doctor.account {
        Ok(account) if account.is_ours() => format!("{who}; a server runs as the same user"),
        Ok(account) => format!("{who}; a server runs as {}", account.name),
        Err(why) => format!("{who}; no server can be run: {why}"),
    });
    if !doctor.root {
        page.text("only root makes filesystems, sets devices and cuts their power");
    }
    postgresql(doctor, &mut page);
    directory(doctor, verbose, &mut page);
    advice(doctor, verbose, &mut page);
    if !doctor.missing.is_empty() {
        page.head("Missing");
        for missing in &doctor.missing {
            page.text(&missing.what);
            page.text(&format!("  without it: {}", missing.why));
            for (place, command) in &missing.how {
                page.line(&format!("    {place}: {command}"));
            }
        }
    }
    let lacking: Vec<Part> = parts::missing_parts().collect();
    if !lacking.is_empty() {
        page.head("This build");
        for Part { name, feature, .. } in &lacking {
            page.text(&format!("lacks {name}: build pgdyno with `--features {feature}`"));
        }
    }
    page.lines.join("\n")
}

struct Page {
    lines: Vec<String>,
    width: usize,
}

impl Page {
    fn head(&mut self, title: &str) {
        if !self.lines.is_empty() {
            self.lines.push(String::new());
        }
        self.text_at(0, title);
    }

    /// A line that is not broken: commands are copied.
    fn line(&mut self, text: &str) {
        self.lines.push(plain(text));
    }

    fn text(&mut self, text: &str) {
        // Text that begins with blanks goes that far in.
        let blanks = text.len() - text.trim_start().len();
        self.text_at(2 + blanks, text);
    }

    fn text_at(&mut self, indent: usize, text: &str) {
        let blank = " ".repeat(indent);
        let lines = wrap(text, self.width.saturating_sub(indent), "");
        self.lines.extend(lines.iter().map(|line| format!("{blank}{line}")));
    }

    /// `text` beside its name.
    fn beside(&mut self, name: &str, text: &str) {
        let first = self.lines.len();
        self.text_at(INDENT, text);
        let name = plain(name);
        // A long name has a line of its own.
        if name.chars().count() + 3 > INDENT {
            self.lines.insert(first, format!("  {name}"));
        } else {
            let text = self.lines[first].trim_start().to_owned();
            self.lines[first] = format!("  {name:<w$}{text}", w = INDENT - 2);
        }
    }

    fn rows<'a>(&mut self, rows: impl Iterator<Item = &'a Row>) {
        for row in rows {
            self.beside(&row.name, &row.text);
        }
    }
}

fn postgresql(doctor: &Doctor, page: &mut Page) {
    page.head("PostgreSQL");
    for install in &doctor.found {
        page.beside(&install.version, &format!("found in {}", install.bindir.display()));
    }
    for install in &doctor.cached {
        page.beside(&install.version, &format!("fetched before: {}", install.bindir.display()));
    }
    if doctor.found.is_empty() && doctor.cached.is_empty() {
        page.text("none here");
    }
    let fetchable: Vec<&str> = doctor.fetchable.iter().map(|(_, version)| *version).collect();
    page.text(&match fetchable.as_slice() {
        [] => "no build can be fetched for this machine".to_owned(),
        all => format!(
            "can be fetched from Maven Central (small builds without lz4, zstd, io_uring): {}",
            all.join(", ")
        ),
    });
}

fn directory(doctor: &Doctor, verbose: bool, page: &mut Page) {
    let report = &doctor.directory;
    let note = if report.exists { "" } else { " (made when it is needed)" };
    page.head(&format!("Directory {}{note}", report.path.display()));
    match &report.storage {
        // Its name is in the head.
        Ok(facts) => {
            let rows = fingerprint::storage(facts);
            let shown = |row: &&Row| row.name != "Directory" && (verbose || !row.detail);
            page.rows(rows.iter().filter(shown));
        }
        Err(why) => page.text(&why.to_string()),
    }
    match &report.problem {
        Some(problem) => {
            page.text(&format!("no cluster can be made here: {problem}"));
            if let Some(help) = problem.help() {
                page.text(&format!("help: {help}"));
            }
        }
        None => page.text("a cluster can be made here"),
    }
}

fn advice(doctor: &Doctor, verbose: bool, page: &mut Page) {
    let advised = &doctor.advised;
    let counted = |severity: Severity| {
        let count = advised.advice.iter().filter(|a| a.severity == severity).count();
        let plural = if count == 1 { "" } else { "s" };
        (count > 0).then(|| format!("{count} {}{plural}", severity.name()))
    };
    let counts: Vec<String> = [Severity::Danger, Severity::Warning, Severity::Note]
        .into_iter()
        .filter_map(counted)
        .collect();
    page.head(&if counts.is_empty() {
        "Advice: none".to_owned()
    } else {
        format!("Advice: {}", counts.join(", "))
    });
    for advice in &advised.advice {
        page.beside(advice.severity.name(), &advice.found);
        for remedy in &advice.remedy {
            page.line(&format!("{:INDENT$}Do: {remedy}", ""));
        }
        page.text_at(INDENT, &format!("Source: {}", advice.source));
    }
    let more = if verbose { "" } else { " (`--verbose` tells which)" };
    page.text(&format!(
        "{} checked and fine, {} not visible from here{more}",
        advised.fine.len(),
        advised.unseen.len()
    ));
    if verbose {
        for fine in &advised.fine {
            page.beside("fine", fine);
        }
        for unseen in &advised.unseen {
            page.beside("unseen", &format!("{}: {}", unseen.rule, unseen.why));
        }
    }
}
