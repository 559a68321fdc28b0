//! Counts of the source: lines of code and of tests, long files, long functions, circles.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::circles::circles;
use crate::error::Error;
use crate::source::{CrateSource, attributes_of, is_test_only, parse};

/// A file with more lines than this wants to be cut.
const LONG_FILE: usize = 500;
/// A function with more lines than this wants a named part.
const LONG_FUNCTION: usize = 70;

/// The counts of one crate.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    name: String,
    /// Lines with code, without comments, blank lines and tests.
    code: usize,
    /// Lines with code of tests and benches, without comments and blank lines.
    tests: usize,
    /// Each file over [`LONG_FILE`] lines, with its lines.
    long_files: Vec<(PathBuf, usize)>,
    /// Each function over [`LONG_FUNCTION`] lines, with its lines.
    long_functions: Vec<(PathBuf, String, usize)>,
    circles: usize,
    files_in_circles: usize,
}

impl Counts {
    /// Counts the crate in `folder`.
    ///
    /// # Errors
    /// A source file cannot be read or parsed.
    pub(crate) fn of_crate(folder: &Path) -> Result<Self, Error> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut counts = Self { name, ..Self::default() };
        let source = CrateSource::read(folder)?;
        let found = circles(&source);
        counts.circles = found.len();
        counts.files_in_circles = found.iter().map(|circle| circle.files.len()).sum();
        let built: BTreeSet<PathBuf> = source.files.iter().map(|file| folder.join(file)).collect();
        for path in rust_files(folder)? {
            counts.add_file(folder, &path, built.contains(&path))?;
        }
        Ok(counts)
    }

    fn add_file(&mut self, folder: &Path, path: &Path, is_built: bool) -> Result<(), Error> {
        let (text, syntax) = parse(path)?;
        let lines = code_lines(&text);
        let in_tests = if is_built { test_lines(&syntax) } else { lines.clone() };
        self.code += lines.difference(&in_tests).count();
        self.tests += lines.intersection(&in_tests).count();
        let relative = path.strip_prefix(folder).unwrap_or(path);
        let all = text.lines().count();
        if all > LONG_FILE {
            self.long_files.push((relative.to_owned(), all));
        }
        let mut functions = LongFunctions(Vec::new());
        functions.visit_file(&syntax);
        let long = functions.0.into_iter();
        self.long_functions.extend(long.map(|(name, lines)| (relative.to_owned(), name, lines)));
        Ok(())
    }
}

/// Returns the Rust files in `folder` and below, by path.
pub(crate) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(here) = open.pop() {
        let failed = |source| Error::Read { path: here.clone(), source };
        for entry in std::fs::read_dir(&here).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the numbers of the lines that hold code: something beside blanks and comments.
fn code_lines(text: &str) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    // A file that syn parses is one that proc-macro2 can take apart.
    if let Ok(tokens) = text.parse::<TokenStream>() {
        let lines: Vec<&str> = text.lines().collect();
        add_code_lines(tokens, &lines, &mut found);
    }
    found
}

fn add_code_lines(tokens: TokenStream, lines: &[&str], found: &mut BTreeSet<usize>) {
    for token in tokens {
        let start = token.span().start();
        let line = lines.get(start.line - 1).copied().unwrap_or_default();
        let rest: String = line.chars().skip(start.column).take(2).collect();
        // Comments of documentation are tokens, too.
        if rest == "//" || rest == "/*" {
            continue;
        }
        match token {
            TokenTree::Group(group) => {
                found.insert(group.span_open().start().line);
                found.insert(group.span_close().end().line);
                add_code_lines(group.stream(), lines, found);
            }
            token => found.extend(start.line..=token.span().end().line),
        }
    }
}

/// Returns the numbers of the lines of items that only test builds have.
fn test_lines(file: &syn::File) -> BTreeSet<usize> {
    let mut lines = TestLines(BTreeSet::new());
    lines.visit_file(file);
    lines.0
}

struct TestLines(BTreeSet<usize>);

impl TestLines {
    fn add(&mut self, item: &impl Spanned) {
        let span = item.span();
        self.0.extend(span.start().line..=span.end().line);
    }
}

impl<'ast> Visit<'ast> for TestLines {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_test_only(attributes_of(item)) {
            self.add(item);
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if is_test_only(&item.attrs) {
            self.add(item);
        }
    }
}

/// Functions over [`LONG_FUNCTION`] lines, from `fn` to the closing brace.
struct LongFunctions(Vec<(String, usize)>);

impl LongFunctions {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let lines = block.span().end().line + 1 - signature.span().start().line;
        if lines > LONG_FUNCTION {
            self.0.push((signature.ident.to_string(), lines));
        }
    }
}

impl<'ast> Visit<'ast> for LongFunctions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

/// Renders the counts of all crates as a table, then the names of long files and functions.
pub(crate) fn render(all: &[Counts]) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{:<14} {:>8} {:>8} {:>10} {:>13} {:>8} {:>10}",
        "crate", "code", "tests", "files>500", "functions>70", "circles", "files in"
    );
    let mut row = |name: &str, sums: [usize; 6]| {
        let [code, tests, files, functions, circles, in_circles] = sums;
        let _ = writeln!(
            out,
            "{name:<14} {code:>8} {tests:>8} {files:>10} {functions:>13} {circles:>8} \
             {in_circles:>10}"
        );
    };
    let mut total = [0; 6];
    for counts in all {
        let sums = [
            counts.code,
            counts.tests,
            counts.long_files.len(),
            counts.long_functions.len(),
            counts.circles,
            counts.files_in_circles,
        ];
        row(&counts.name, sums);
        for (total, sum) in total.iter_mut().zip(sums) {
            *total += sum;
        }
    }
    row("all", total);
    for counts in all {
        for (path, lines) in &counts.long_files {
            let _ = writeln!(out, "{}/{}: {lines} lines", counts.name, path.display());
        }
        for (path, function, lines) in &counts.long_functions {
            let path = path.display();
            let _ = writeln!(out, "{}/{path}: fn {function} has {lines} lines", counts.name);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_tests_long_files_and_long_functions_are_counted_apart() {
        let folder = tempfile::tempdir().unwrap();
        for part in ["src", "tests"] {
            std::fs::create_dir(folder.path().join(part)).unwrap();
        }
        let long = format!("fn long() {{\n{}}}\n", "    call();\n".repeat(70));
        let library = format!(
            "//! Documentation.\n\n/// More.\nfn f() {{\n    // Why.\n    \
             g(\"a\n  b\"); /* x */\n}}\n\n{long}\
             #[cfg(test)]\nmod tests;\n#[cfg(test)]\nfn helper() {{\n}}\n"
        );
        std::fs::write(folder.path().join("src/lib.rs"), library).unwrap();
        std::fs::write(folder.path().join("src/tests.rs"), "fn t() {}\n").unwrap();
        std::fs::write(folder.path().join("tests/whole.rs"), "fn t() {}\n\n".repeat(251)).unwrap();
        let counts = Counts::of_crate(folder.path()).unwrap();
        assert_eq!(counts.code, 4 + 72);
        assert_eq!(counts.tests, 5 + 1 + 251);
        assert_eq!(counts.long_files, [(PathBuf::from("tests/whole.rs"), 502)]);
        assert_eq!(counts.long_functions, [(PathBuf::from("src/lib.rs"), "long".to_owned(), 72)]);
    }
}
