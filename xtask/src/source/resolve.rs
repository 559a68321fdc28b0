//! Follows a path to the items and modules that it names, through imports, re-exports and globs.

use super::module::{Binding, FileId, Import, ModuleId, Scope};
use super::read::CrateSource;

/// Item or module that a path leads to, within its crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An item that this file defines, or something that belongs to it, such as a variant.
    Item(FileId),
    /// A module.
    Module(ModuleId),
}

/// Imports that are being followed, each with the name it is followed for, so that imports which
/// name each other end.
type Visited = Vec<(*const Import, String)>;

impl CrateSource {
    /// Returns what `path` leads to from `module`, after the names of the blocks around it.
    ///
    /// A name may stand for an item and a module at once; both are returned. A path into another
    /// crate leads nowhere.
    pub(super) fn resolve(
        &self,
        module: ModuleId,
        blocks: &[Scope],
        path: &[String],
    ) -> Vec<Target> {
        let Some(first) = path.first() else {
            return Vec::new();
        };
        for (at, block) in blocks.iter().enumerate().rev() {
            if let Some(bindings) = block.names.get(first) {
                return bindings
                    .iter()
                    .filter_map(|binding| match binding {
                        Binding::Import(import) => Some(&import.path),
                        _ => None,
                    })
                    .flat_map(|import| {
                        let whole: Vec<String> = import.iter().chain(&path[1..]).cloned().collect();
                        self.resolve(module, &blocks[..at], &whole)
                    })
                    .collect();
            }
            for glob in &block.globs {
                let whole: Vec<String> = glob.path.iter().chain(path).cloned().collect();
                let found = self.resolve(module, &blocks[..at], &whole);
                if !found.is_empty() {
                    return found;
                }
            }
        }
        self.resolve_path(module, path, &mut Visited::new())
    }

    fn resolve_path(&self, from: ModuleId, path: &[String], visited: &mut Visited) -> Vec<Target> {
        let mut here = vec![Target::Module(from)];
        for (at, name) in path.iter().enumerate() {
            let mut next = Vec::new();
            for target in here {
                match target {
                    // What belongs to an item stands in the item's file for this purpose.
                    Target::Item(_) => next.push(target),
                    Target::Module(module) => match name.as_str() {
                        "crate" if at == 0 => next.push(Target::Module(self.root_of(module))),
                        "self" => next.push(target),
                        "super" => next.extend(self.modules[module].parent.map(Target::Module)),
                        _ => {
                            let found = self.lookup(module, name, from, visited);
                            if found.is_empty() && at == 0 && *name == self.library {
                                next.extend(self.library_root.map(Target::Module));
                            }
                            next.extend(found);
                        }
                    },
                }
            }
            // A path goes on through the module where a function or macro has the same name.
            let goes_on = at + 1 < path.len();
            if goes_on && next.iter().any(|target| matches!(target, Target::Module(_))) {
                next.retain(|target| matches!(target, Target::Module(_)));
            }
            here = next;
        }
        here.dedup();
        here
    }

    /// Returns what `name` stands for in `module`, as code in the module `seen_from` sees it.
    fn lookup(
        &self,
        module: ModuleId,
        name: &str,
        seen_from: ModuleId,
        visited: &mut Visited,
    ) -> Vec<Target> {
        let scope = &self.modules[module].scope;
        let sees_private = self.is_within(seen_from, module);
        let mut found = Vec::new();
        for binding in scope.names.get(name).into_iter().flatten() {
            match binding {
                Binding::Item { is_private } if sees_private || !is_private => {
                    found.push(Target::Item(self.modules[module].file));
                }
                Binding::Module { module, is_private } if sees_private || !is_private => {
                    found.push(Target::Module(*module));
                }
                Binding::Import(import) if sees_private || !import.is_private => {
                    let key = (std::ptr::from_ref(import), name.to_owned());
                    if !visited.contains(&key) {
                        visited.push(key);
                        found.extend(self.resolve_path(module, &import.path, visited));
                        visited.pop();
                    }
                }
                _ => {}
            }
        }
        if found.is_empty() {
            let globs = scope.globs.iter().filter(|glob| sees_private || !glob.is_private);
            found = globs
                .map(|glob| self.lookup_in_glob(module, glob, name, visited))
                .find(|found| !found.is_empty())
                .unwrap_or_default();
        }
        found
    }

    /// Returns what `name` stands for among the names that `glob`, a `use …::*` of `module`,
    /// brings.
    fn lookup_in_glob(
        &self,
        module: ModuleId,
        glob: &Import,
        name: &str,
        visited: &mut Visited,
    ) -> Vec<Target> {
        let key = (std::ptr::from_ref(glob), name.to_owned());
        if visited.contains(&key) {
            return Vec::new();
        }
        visited.push(key);
        let mut found = Vec::new();
        for target in self.resolve_path(module, &glob.path, visited) {
            match target {
                Target::Module(source) => found.extend(self.lookup(source, name, module, visited)),
                Target::Item(file) => {
                    let is_variant = glob.path.last().is_some_and(|item| {
                        let modules = self.modules.iter().filter(|module| module.file == file);
                        modules
                            .filter_map(|module| module.scope.variants.get(item))
                            .any(|variants| variants.iter().any(|variant| variant == name))
                    });
                    if is_variant {
                        found.push(target);
                    }
                }
            }
        }
        visited.pop();
        found
    }

    fn root_of(&self, mut module: ModuleId) -> ModuleId {
        while let Some(parent) = self.modules[module].parent {
            module = parent;
        }
        module
    }

    fn is_within(&self, mut module: ModuleId, outer: ModuleId) -> bool {
        loop {
            match self.modules[module].parent {
                _ if module == outer => return true,
                Some(parent) => module = parent,
                None => return false,
            }
        }
    }

    /// Returns the file of the `macro_rules` that a lone name means: macros of `module` and of the
    /// modules around it.
    pub(super) fn resolve_macro(&self, mut module: ModuleId, name: &str) -> Option<FileId> {
        loop {
            let is_here = self.modules[module].items.iter().any(|item| {
                let syn::Item::Macro(item) = item else { return false };
                item.ident.as_ref().is_some_and(|ident| ident == name)
            });
            if is_here {
                return Some(self.modules[module].file);
            }
            module = self.modules[module].parent?;
        }
    }
}
