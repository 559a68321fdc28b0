//! A module and the names in it.

use std::collections::HashMap;

use syn::{Item, UseTree, Visibility};

use super::attributes::{attributes_of, is_test_only};

/// A module's place in [`super::CrateSource::modules`].
pub(crate) type ModuleId = usize;
/// A file's place in [`super::CrateSource::files`].
pub(crate) type FileId = usize;

/// A module: a file's own, or an inline one.
pub(crate) struct Module {
    pub(crate) file: FileId,
    pub(crate) parent: Option<ModuleId>,
    /// Items of the module, without those of test builds.
    pub(crate) items: Vec<Item>,
    pub(super) scope: Scope,
}

/// The names that a module or a block defines and imports.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub(super) names: HashMap<String, Vec<Binding>>,
    pub(super) globs: Vec<Import>,
    /// The variants of each `enum`, for `use Enum::*`.
    pub(super) variants: HashMap<String, Vec<String>>,
}

/// Item, module or import that a name is bound to.
#[derive(Clone, Debug)]
pub(super) enum Binding {
    /// An item that is defined here.
    Item { is_private: bool },
    /// A module that is declared here.
    Module { module: ModuleId, is_private: bool },
    /// A name from elsewhere.
    Import(Import),
}

/// One path of a `use` declaration.
#[derive(Clone, Debug)]
pub(super) struct Import {
    pub(super) path: Vec<String>,
    pub(super) is_private: bool,
}

/// One leaf of a `use` tree.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) path: Vec<String>,
    /// The name that it brings into scope: none for `as _` and for `*`.
    pub(super) name: Option<String>,
    pub(super) is_glob: bool,
    pub(super) line: usize,
}

impl Scope {
    /// Collects the names that `items` bring in, except modules.
    pub(super) fn new<'a>(items: impl IntoIterator<Item = &'a Item>) -> Self {
        let mut scope = Self::default();
        for item in items {
            if !is_test_only(attributes_of(item)) {
                scope.add(item);
            }
        }
        scope
    }

    fn add(&mut self, item: &Item) {
        let (name, visibility) = match item {
            Item::Use(item) => {
                for leaf in leaves(item) {
                    self.import(leaf, is_private(&item.vis));
                }
                return;
            }
            Item::Macro(item) => {
                if let Some(name) = &item.ident {
                    self.bind(name.to_string(), Binding::Item { is_private: false });
                }
                return;
            }
            Item::Enum(item) => {
                let variants = item.variants.iter().map(|v| v.ident.to_string()).collect();
                self.variants.insert(item.ident.to_string(), variants);
                (&item.ident, &item.vis)
            }
            Item::Const(item) => (&item.ident, &item.vis),
            Item::Fn(item) => (&item.sig.ident, &item.vis),
            Item::Static(item) => (&item.ident, &item.vis),
            Item::Struct(item) => (&item.ident, &item.vis),
            Item::Trait(item) => (&item.ident, &item.vis),
            Item::TraitAlias(item) => (&item.ident, &item.vis),
            Item::Type(item) => (&item.ident, &item.vis),
            Item::Union(item) => (&item.ident, &item.vis),
            _ => return,
        };
        self.bind(name.to_string(), Binding::Item { is_private: is_private(visibility) });
    }

    pub(super) fn bind(&mut self, name: String, binding: Binding) {
        self.names.entry(name).or_default().push(binding);
    }

    fn import(&mut self, leaf: Leaf, is_private: bool) {
        let import = Import { path: leaf.path, is_private };
        match leaf.name {
            Some(name) => self.bind(name, Binding::Import(import)),
            None if leaf.is_glob => self.globs.push(import),
            None => {}
        }
    }
}

/// Returns whether only the module itself and those below it see an item.
pub(super) fn is_private(visibility: &Visibility) -> bool {
    match visibility {
        Visibility::Inherited => true,
        Visibility::Restricted(restricted) => restricted.path.is_ident("self"),
        Visibility::Public(_) => false,
    }
}

/// Returns the leaves of a `use` declaration. A path into another crate (`::name`) has none.
pub(super) fn leaves(item: &syn::ItemUse) -> Vec<Leaf> {
    let mut found = Vec::new();
    if item.leading_colon.is_none() {
        add_leaves(&item.tree, &mut Vec::new(), &mut found);
    }
    found
}

fn add_leaves(tree: &UseTree, path: &mut Vec<String>, found: &mut Vec<Leaf>) {
    let leaf = |ident: &syn::Ident, name: Option<String>, path: &[String]| {
        let mut path = path.to_vec();
        if ident != "self" || path.is_empty() {
            path.push(ident.to_string());
        }
        let name = name.or_else(|| path.last().cloned()).filter(|name| name != "_");
        Leaf { path, name, is_glob: false, line: ident.span().start().line }
    };
    match tree {
        UseTree::Path(inner) => {
            path.push(inner.ident.to_string());
            add_leaves(&inner.tree, path, found);
            path.pop();
        }
        UseTree::Group(group) => {
            for inner in &group.items {
                add_leaves(inner, path, found);
            }
        }
        UseTree::Name(name) => found.push(leaf(&name.ident, None, path)),
        UseTree::Rename(renamed) => {
            found.push(leaf(&renamed.ident, Some(renamed.rename.to_string()), path));
        }
        UseTree::Glob(glob) => found.push(Leaf {
            path: path.clone(),
            name: None,
            is_glob: true,
            line: glob.star_token.spans[0].start().line,
        }),
    }
}
