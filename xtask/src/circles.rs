//! Circles of files inside a crate: files that use one another's items, directly or through others.
//!
//! See [`crate::source::uses`] for what counts as a use.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use crate::source::CrateSource;
use crate::source::uses::{Use, uses};

/// Files of one crate each of which reaches every other one by uses.
#[derive(Debug)]
pub(crate) struct Circle {
    pub(crate) files: Vec<PathBuf>,
    /// One use for each pair of files of which the first uses the second.
    pub(crate) edges: Vec<(PathBuf, PathBuf, Use)>,
}

/// Finds the circles in a crate, the largest first.
pub(crate) fn circles(source: &CrateSource) -> Vec<Circle> {
    let uses = uses(source);
    let reached: Vec<BTreeSet<usize>> = (0..source.files.len())
        .map(|from| {
            let mut reached = BTreeSet::new();
            let mut open = vec![from];
            while let Some(file) = open.pop() {
                let next = uses.keys().filter(|(user, _)| *user == file).map(|(_, used)| *used);
                open.extend(next.filter(|used| reached.insert(*used)));
            }
            reached
        })
        .collect();
    let groups: BTreeSet<Vec<usize>> = (0..source.files.len())
        .filter(|file| reached[*file].contains(file))
        .map(|file| {
            reached[file].iter().copied().filter(|other| reached[*other].contains(&file)).collect()
        })
        .collect();
    let path = |file: usize| source.files[file].clone();
    let mut circles: Vec<Circle> = groups
        .into_iter()
        .map(|group| Circle {
            edges: uses
                .iter()
                .filter(|((from, to), _)| group.contains(from) && group.contains(to))
                .map(|((from, to), first)| (path(*from), path(*to), first.clone()))
                .collect(),
            files: group.into_iter().map(path).collect(),
        })
        .collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.files.len()));
    circles
}

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "circle of {} files", self.files.len())?;
        for (from, to, first) in &self.edges {
            writeln!(
                f,
                "  {}:{} uses `{}` of {}",
                from.display(),
                first.line,
                first.path,
                to.display()
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Writes a crate of `files` (path below `src`, text) and returns its circles as lists of
    /// files.
    fn planted(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = folder.path().join("src").join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let source = CrateSource::read(folder.path()).unwrap();
        let name = |path: &PathBuf| path.strip_prefix("src").unwrap().display().to_string();
        let mut found: Vec<Vec<String>> =
            circles(&source).iter().map(|circle| circle.files.iter().map(name).collect()).collect();
        found.iter_mut().for_each(|files| files.sort());
        found
    }

    const A_AND_B: &[&[&str]] = &[&["a.rs", "b.rs"]];

    #[test]
    fn files_that_use_one_another_are_a_circle() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            ("b.rs", "pub struct B; pub fn make() -> Option<crate::a::A> { None }"),
        ];
        assert_eq!(planted(&files), A_AND_B);
    }

    #[test]
    fn files_of_which_one_uses_the_other_are_none() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::A;"),
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            ("b.rs", "pub struct B;"),
        ];
        assert!(planted(&files).is_empty());
    }

    #[test]
    fn a_longer_circle_is_one_with_all_its_files() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "pub fn a() { super::b::b(); super::d::d() }"),
            ("b.rs", "pub fn b() { super::c::c() }"),
            ("c.rs", "pub fn c() { super::a::a() }"),
            ("d.rs", "pub fn d() {}"),
        ];
        assert_eq!(planted(&files), [["a.rs", "b.rs", "c.rs"]]);
    }

    #[test]
    fn re_exports_are_followed_to_the_file_that_defines() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use b::*;"),
            ("a.rs", "pub use inner::Renamed; mod inner; use crate::B; pub struct A(B);"),
            ("a/inner.rs", "pub struct Inner; pub use Inner as Renamed;"),
            ("b.rs", "pub struct B; fn f(_: crate::a::Renamed) {}"),
        ];
        // b uses a/inner, which uses nothing; a re-exports, which is no use.
        assert!(planted(&files).is_empty());
        let mut files = files;
        files[2].1 = "pub struct Inner; pub use Inner as Renamed; fn g(_: crate::B) {}";
        assert_eq!(planted(&files), [["a/inner.rs", "b.rs"]]);
    }

    #[test]
    fn an_item_with_its_modules_name_is_followed_through_its_re_export() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::a; pub use looped::*; mod looped;"),
            ("a.rs", "pub fn a() { crate::b::b() }"),
            ("b.rs", "pub fn b() { crate::a() }"),
            ("looped.rs", "pub use crate::*;"),
        ];
        assert_eq!(planted(&files), A_AND_B);
    }

    #[test]
    fn a_path_goes_on_through_the_module_where_a_function_has_its_name() {
        let files = [
            ("lib.rs", "mod load; mod run; pub use run::load;"),
            ("load.rs", "pub struct Load;"),
            ("run.rs", "use crate::load::Load; pub fn load(_: Load) {}"),
        ];
        assert!(planted(&files).is_empty());
        let mut files = files;
        files[1].1 = "pub struct Load; fn f() { crate::load(Load) }";
        assert_eq!(planted(&files), [["load.rs", "run.rs"]]);
    }

    #[test]
    fn a_glob_import_counts_for_the_names_that_are_used() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub mod child; pub struct A; fn f() { child::g() }"),
            ("a/child.rs", "use super::*; pub fn g() {}"),
            ("b.rs", ""),
        ];
        assert!(planted(&files).is_empty());
        let mut files = files;
        files[2].1 = "use super::*; pub fn g() { let _ = A; }";
        assert_eq!(planted(&files), [["a.rs", "a/child.rs"]]);
    }

    #[test]
    fn a_glob_of_an_enum_brings_its_variants() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub enum E { One, Two } fn f() { crate::b::g() }"),
            ("b.rs", "use crate::a::E::*; pub fn g() -> bool { matches!(x(), Some(One)) }"),
        ];
        assert_eq!(planted(&files), A_AND_B);
    }

    #[test]
    fn declarations_alone_are_no_uses() {
        let files = [
            ("lib.rs", "mod a; pub use a::A; pub struct Root;"),
            ("a.rs", "use crate::Root; pub struct A(Root);"),
        ];
        assert!(planted(&files).is_empty());
    }

    #[test]
    fn tests_do_not_count() {
        let files = [
            ("lib.rs", "mod a; mod b; #[cfg(test)] mod tests;"),
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            (
                "b.rs",
                "pub struct B; #[cfg(test)] use crate::a::A; #[cfg(all(test, unix))] fn f(_: A) {}
                 impl B { #[cfg(test)] fn g() -> crate::a::A { todo!() } }
                 #[cfg(test)] mod tests { use crate::a::A; }",
            ),
            ("tests.rs", "use crate::a::A;"),
        ];
        assert!(planted(&files).is_empty());
    }

    #[test]
    fn code_that_tests_lack_does_count() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            ("b.rs", "pub struct B; #[cfg(not(test))] fn f(_: crate::a::A) {}"),
        ];
        assert_eq!(planted(&files), A_AND_B);
    }

    #[test]
    fn arguments_of_macros_count() {
        for use_of_a in [
            "format!(\"{}\", crate::a::name())",
            "assert!(crate::a::IS_A, \"{x}\", x = 1)",
            "matches!(x, crate::a::A { .. } if true)",
            "vec![crate::a::A; 3]",
            "my! { some words => crate::a::A }",
        ] {
            let b = format!("pub struct B; fn f() {{ {use_of_a}; }}");
            let files = [
                ("lib.rs", "mod a; mod b;"),
                (
                    "a.rs",
                    "pub struct A; pub const IS_A: bool = true; pub fn name() -> crate::b::B {}",
                ),
                ("b.rs", &b),
            ];
            assert_eq!(planted(&files), A_AND_B, "{use_of_a}");
        }
    }

    #[test]
    fn a_macro_of_another_file_counts() {
        let files = [
            ("lib.rs", "#[macro_use] mod a; mod b;"),
            ("a.rs", "macro_rules! line { () => { $crate::b::B } } pub(crate) use line;"),
            ("b.rs", "pub struct B; fn f() { crate::a::line!() }"),
        ];
        assert_eq!(planted(&files), A_AND_B);
    }

    #[test]
    fn functions_that_attributes_name_count() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub fn parse() -> crate::b::B {}"),
            ("b.rs", "use crate::a; pub struct B { #[arg(long, value_parser = a::parse)] x: u8 }"),
        ];
        assert_eq!(planted(&files), A_AND_B);
        let mut files = files;
        files[2].1 = "pub struct B { #[serde(default, with = \"crate::a\")] x: u8 }";
        assert_eq!(planted(&files), A_AND_B);
    }

    #[test]
    fn variables_and_fields_are_not_taken_for_items() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub fn total() {} use crate::b::B; struct A(B);"),
            (
                "b.rs",
                "pub struct B { total: u8 } pub use crate::a::*;
                 fn f(b: B) { let total = 1; assert!(b.total == total && total > 0); }
                 fn g() -> B { json!({ total: 1 }) }",
            ),
        ];
        assert!(planted(&files).is_empty());
        let mut files = files;
        files[2].1 = "pub struct B; pub use crate::a::*; fn f() { let total = total(); }";
        assert_eq!(planted(&files), A_AND_B);
    }

    #[test]
    fn names_that_a_block_imports_are_resolved_there() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            ("b.rs", "pub struct B; fn f() { use super::c as other; other::make(); }"),
            ("c.rs", "pub use crate::a::A as make;"),
        ];
        assert_eq!(planted(&files), A_AND_B);
    }

    #[test]
    fn traits_and_implementations_count_by_their_names() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub trait Named { fn name(&self); } use crate::b::B; fn f(_: B) {}"),
            ("b.rs", "pub struct B; impl crate::a::Named for B { fn name(&self) {} }"),
        ];
        assert_eq!(planted(&files), A_AND_B);
    }

    #[test]
    fn a_message_names_the_place_of_each_use() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(folder.path().join("src")).unwrap();
            std::fs::write(folder.path().join("src").join(name), text).unwrap();
        };
        write("lib.rs", "mod a;\nmod b;\n");
        write("a.rs", "\nuse crate::b::B;\npub struct A(B);\n");
        write("b.rs", "pub struct B;\n\npub fn f(_: super::a::A) {}\n");
        let source = CrateSource::read(folder.path()).unwrap();
        let found = circles(&source);
        let edges: Vec<(&Path, usize, &str)> = found[0]
            .edges
            .iter()
            .map(|(from, _, first)| (from.as_path(), first.line, first.path.as_str()))
            .collect();
        assert_eq!(
            edges,
            [(Path::new("src/a.rs"), 2, "crate::b::B"), (Path::new("src/b.rs"), 3, "super::a::A"),]
        );
    }

    #[test]
    fn no_crate_has_a_circle() {
        let mut found = Vec::new();
        for folder in crate::crate_folders().unwrap() {
            for circle in circles(&CrateSource::read(&folder).unwrap()) {
                found.push(format!("{}: {circle}", folder.display()));
            }
        }
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}
