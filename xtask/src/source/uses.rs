//! Lists the uses that a crate's files make of one another's items.
//!
//! A use is a path in code, in a macro's arguments, in an attribute, or in a private `use`
//! declaration, that leads to an item which another file defines. `mod` declarations and re-exports
//! are no uses, nor is anything of test builds. Methods and fields have no path: a call of a method
//! counts only where its type or trait is named.

use std::collections::{BTreeMap, HashSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item, Meta, Token};

use super::attributes::{attributes_of, is_test_only};
use super::module::{FileId, ModuleId, Scope, is_private, leaves};
use super::read::CrateSource;
use super::resolve::Target;

/// Where one file uses an item of another: the first place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    pub(crate) line: usize,
    pub(crate) path: String,
}

/// For each pair of files of which the first uses the second, the first such use.
pub(crate) type Uses = BTreeMap<(FileId, FileId), Use>;

/// Lists the uses between the files of `source`.
pub(crate) fn uses(source: &CrateSource) -> Uses {
    let mut uses = Uses::new();
    for (id, module) in source.modules.iter().enumerate() {
        let mut finder = Finder {
            source,
            module: id,
            blocks: Vec::new(),
            locals: HashSet::new(),
            uses: &mut uses,
        };
        for item in &module.items {
            finder.visit_item(item);
        }
    }
    uses
}

struct Finder<'a> {
    source: &'a CrateSource,
    module: ModuleId,
    /// The scopes of the blocks around, the innermost last.
    blocks: Vec<Scope>,
    /// Names of the variables of the function around: a lone name that is one of them is no path.
    locals: HashSet<String>,
    uses: &'a mut Uses,
}

impl Finder<'_> {
    fn file(&self) -> FileId {
        self.source.modules[self.module].file
    }

    fn add(&mut self, file: FileId, line: usize, path: &[String]) {
        if file == self.file() {
            return;
        }
        let found = Use { line, path: path.join("::") };
        let first = self.uses.entry((self.file(), file)).or_insert_with(|| found.clone());
        if found < *first {
            *first = found;
        }
    }

    fn add_path(&mut self, path: &[String], line: usize) {
        for target in self.source.resolve(self.module, &self.blocks, path) {
            if let Target::Item(file) = target {
                self.add(file, line, path);
            }
        }
    }

    fn add_macro(&mut self, path: &[String], line: usize) {
        if let [name] = path
            && let Some(file) = self.source.resolve_macro(self.module, name)
        {
            self.add(file, line, path);
        } else {
            self.add_path(path, line);
        }
    }

    /// Finds paths among a macro's arguments: as expressions if they are such, else as tokens.
    fn add_tokens(&mut self, tokens: &TokenStream) {
        let arguments = Punctuated::<Expr, Token![,]>::parse_terminated;
        if let Ok(arguments) = syn::parse::Parser::parse2(arguments, tokens.clone()) {
            for argument in &arguments {
                self.visit_expr(argument);
            }
        } else {
            self.scan(tokens);
        }
    }

    /// Finds names and paths in a stream of tokens that is no list of expressions.
    fn scan(&mut self, tokens: &TokenStream) {
        let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
        let punct = |at: usize| match tokens.get(at) {
            Some(TokenTree::Punct(punct)) => Some(punct.as_char()),
            _ => None,
        };
        let mut at = 0;
        while at < tokens.len() {
            if let TokenTree::Group(group) = &tokens[at] {
                self.scan(&group.stream());
            }
            let TokenTree::Ident(first) = &tokens[at] else {
                at += 1;
                continue;
            };
            let before = at.checked_sub(1).and_then(punct);
            let is_range = before == Some('.') && at >= 2 && punct(at - 2) == Some('.');
            let mut path = vec![first.to_string()];
            while punct(at + 1) == Some(':')
                && punct(at + 2) == Some(':')
                && let Some(TokenTree::Ident(next)) = tokens.get(at + 3)
            {
                path.push(next.to_string());
                at += 3;
            }
            at += 1;
            let is_field = path.len() == 1 && punct(at) == Some(':') && punct(at + 1) != Some(':');
            let is_call = matches!(tokens.get(at), Some(TokenTree::Group(_)));
            let is_variable = path.len() == 1 && self.locals.contains(&path[0]) && !is_call;
            let is_macro_variable = before == Some('$') && path[0] != "crate";
            let is_member = before == Some('.') && !is_range;
            if is_field || is_variable || is_member || is_macro_variable || before == Some('\'') {
                continue;
            }
            let line = first.span().start().line;
            if punct(at) == Some('!') && punct(at + 1) != Some('=') {
                self.add_macro(&path, line);
            } else {
                self.add_path(&path, line);
            }
        }
    }

    fn add_meta(&mut self, meta: &Meta) {
        match meta {
            Meta::Path(_) => {}
            Meta::NameValue(named) => match &named.value {
                // As in `#[serde(with = "path")]`, which uses the functions of a module, too.
                Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => {
                    let Ok(path) = text.parse_with(syn::Path::parse_mod_style) else {
                        return;
                    };
                    let path = names(&path);
                    let line = text.span().start().line;
                    for target in self.source.resolve(self.module, &self.blocks, &path) {
                        match target {
                            Target::Item(file) => self.add(file, line, &path),
                            Target::Module(module) => {
                                self.add(self.source.modules[module].file, line, &path);
                            }
                        }
                    }
                }
                value => self.visit_expr(value),
            },
            Meta::List(list) if list.path.is_ident("derive") || list.path.is_ident("cfg") => {}
            Meta::List(list) => {
                let inner = Punctuated::<Meta, Token![,]>::parse_terminated;
                match list.parse_args_with(inner) {
                    Ok(inner) => inner.iter().for_each(|meta| self.add_meta(meta)),
                    Err(_) => self.add_tokens(&list.tokens),
                }
            }
        }
    }

    /// Visits a function with the names of its variables known.
    fn within_function(&mut self, block: Option<&syn::Block>, visit: impl FnOnce(&mut Self)) {
        let before = self.locals.clone();
        if let Some(block) = block {
            Variables(&mut self.locals).visit_block(block);
        }
        visit(self);
        self.locals = before;
    }
}

/// Collects the names that patterns bind.
struct Variables<'a>(&'a mut HashSet<String>);

impl<'ast> Visit<'ast> for Variables<'_> {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        let name = pattern.ident.to_string();
        if name.starts_with(char::is_lowercase) {
            self.0.insert(name);
        }
        visit::visit_pat_ident(self, pattern);
    }
}

fn names(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test_only(attributes_of(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if is_private(&item.vis) {
            for leaf in leaves(item) {
                if !leaf.is_glob {
                    self.add_path(&leaf.path, leaf.line);
                }
            }
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.within_function(Some(&item.block), |finder| visit::visit_item_fn(finder, item));
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes = match item {
            syn::ImplItem::Const(item) => &item.attrs,
            syn::ImplItem::Fn(item) => &item.attrs,
            syn::ImplItem::Type(item) => &item.attrs,
            _ => &Vec::new(),
        };
        if !is_test_only(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.within_function(Some(&item.block), |finder| visit::visit_impl_item_fn(finder, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if !is_test_only(&item.attrs) {
            let block = item.default.as_ref();
            self.within_function(block, |finder| visit::visit_trait_item_fn(finder, item));
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !is_test_only(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        if !is_test_only(&field.attrs) {
            visit::visit_field_value(self, field);
        }
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        if !is_test_only(&variant.attrs) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if !is_test_only(&arm.attrs) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !is_test_only(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_expr_block(&mut self, block: &'ast syn::ExprBlock) {
        if !is_test_only(&block.attrs) {
            visit::visit_expr_block(self, block);
        }
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        let items = block.stmts.iter().filter_map(|statement| match statement {
            syn::Stmt::Item(item) => Some(item),
            _ => None,
        });
        self.blocks.push(Scope::new(items));
        visit::visit_block(self, block);
        self.blocks.pop();
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        // `let total = total(x)`: the function, though a variable has its name.
        if let Expr::Path(function) = &*call.func
            && let [name] = names(&function.path).as_slice()
            && self.locals.contains(name)
        {
            self.add_path(std::slice::from_ref(name), call.func.span().start().line);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        // A constant or a variant looks like a variable here.
        let name = pattern.ident.to_string();
        if name.starts_with(char::is_uppercase) {
            self.add_path(&[name], pattern.ident.span().start().line);
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let all = names(path);
        let is_variable = all.len() == 1 && self.locals.contains(&all[0]);
        if path.leading_colon.is_none() && !is_variable {
            self.add_path(&all, path.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.add_macro(&names(&call.path), call.path.span().start().line);
        self.add_tokens(&call.tokens);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if !attribute.path().is_ident("doc") {
            self.add_meta(&attribute.meta);
        }
    }
}
