//! Reads a crate: parses the files that its roots reach and builds the tree of modules.

use std::path::{Path, PathBuf};

use syn::Item;

use super::attributes::{attributes_of, is_test_only, path_attribute};
use super::module::{Binding, FileId, Module, ModuleId, Scope, is_private};
use crate::error::Error;

/// A crate's sources, parsed.
pub(crate) struct CrateSource {
    /// The name as in `use`: `pgdyno_model`.
    pub(crate) library: String,
    /// Source files, relative to the crate's folder.
    pub(crate) files: Vec<PathBuf>,
    /// All modules but those of test builds; parents before their children.
    pub(crate) modules: Vec<Module>,
    /// The root module of the library, if the crate has one.
    pub(super) library_root: Option<ModuleId>,
}

impl CrateSource {
    /// Reads the crate in `folder`: all that `src/lib.rs`, `src/main.rs` and `src/bin/*.rs` reach.
    ///
    /// # Errors
    /// A file cannot be read, is not Rust, or declares a module that has no file.
    pub(crate) fn read(folder: &Path) -> Result<Self, Error> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().replace('-', "_");
        let mut source = Self {
            library: format!("pgdyno_{name}"),
            files: Vec::new(),
            modules: Vec::new(),
            library_root: None,
        };
        let mut roots = vec![folder.join("src/lib.rs"), folder.join("src/main.rs")];
        if let Ok(programs) = std::fs::read_dir(folder.join("src/bin")) {
            roots.extend(programs.flatten().map(|entry| entry.path()));
        }
        for root in roots.iter().filter(|root| root.is_file()) {
            let below = root.parent().unwrap_or(folder);
            let module = source.add_file(folder, root, below, None)?;
            if root.ends_with("src/lib.rs") {
                source.library_root = Some(module);
            }
        }
        Ok(source)
    }

    /// Parses `file`; its child modules have their files in the folder `below`.
    fn add_file(
        &mut self,
        folder: &Path,
        file: &Path,
        below: &Path,
        parent: Option<ModuleId>,
    ) -> Result<ModuleId, Error> {
        let items = parse(file)?.1.items;
        self.files.push(file.strip_prefix(folder).unwrap_or(file).to_owned());
        let place = Place { folder, file, below, inline: false };
        self.add_module(self.files.len() - 1, items, parent, &place)
    }

    fn add_module(
        &mut self,
        file: FileId,
        items: Vec<Item>,
        parent: Option<ModuleId>,
        place: &Place<'_>,
    ) -> Result<ModuleId, Error> {
        let id = self.modules.len();
        let items: Vec<Item> =
            items.into_iter().filter(|item| !is_test_only(attributes_of(item))).collect();
        let scope = Scope::new(&items);
        let declared: Vec<syn::ItemMod> = items
            .iter()
            .filter_map(|item| if let Item::Mod(item) = item { Some(item.clone()) } else { None })
            .collect();
        self.modules.push(Module { file, parent, items, scope });
        for declaration in declared {
            let name = declaration.ident.to_string();
            let module = match declaration.content {
                Some((_, items)) => {
                    let below = place.below.join(&name);
                    let place = Place { below: &below, inline: true, ..*place };
                    self.add_module(file, items, Some(id), &place)?
                }
                None => {
                    let (file, below) = place.find(&name, path_attribute(&declaration.attrs))?;
                    self.add_file(place.folder, &file, &below, Some(id))?
                }
            };
            let is_private = is_private(&declaration.vis);
            self.modules[id].scope.bind(name, Binding::Module { module, is_private });
        }
        Ok(id)
    }
}

/// Parses a file, and returns its text too.
///
/// # Errors
/// It cannot be read, or is not Rust.
pub(crate) fn parse(file: &Path) -> Result<(String, syn::File), Error> {
    let text = std::fs::read_to_string(file)
        .map_err(|source| Error::Read { path: file.to_owned(), source })?;
    let syntax = syn::parse_file(&text).map_err(|source| Error::Source {
        path: file.to_owned(),
        line: source.span().start().line,
        source,
    })?;
    Ok((text, syntax))
}

/// Where a module stands, and so where the files of its children are looked for.
#[derive(Clone, Copy)]
struct Place<'a> {
    folder: &'a Path,
    file: &'a Path,
    below: &'a Path,
    inline: bool,
}

impl Place<'_> {
    /// Returns the file of the child `name`, and the folder of that child's own children.
    fn find(&self, name: &str, by_attribute: Option<String>) -> Result<(PathBuf, PathBuf), Error> {
        if let Some(path) = by_attribute {
            let beside = self.file.parent().unwrap_or(self.folder);
            let file = if self.inline { self.below.join(path) } else { beside.join(path) };
            let below = file.parent().unwrap_or(self.folder).to_owned();
            return Ok((file, below));
        }
        let below = self.below.join(name);
        [below.with_extension("rs"), below.join("mod.rs")]
            .into_iter()
            .find(|file| file.is_file())
            .map(|file| (file, below))
            .ok_or_else(|| Error::NoModule {
                module: name.to_owned(),
                declared_in: self.file.to_owned(),
            })
    }
}
