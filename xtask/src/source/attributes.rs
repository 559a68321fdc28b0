//! Attributes of items: which of them leave an item to test builds.

use syn::punctuated::Punctuated;
use syn::{Attribute, Item, Meta, Token};

/// Returns whether `attributes` leave what they stand on to test builds.
pub(crate) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.parse_args::<Meta>().is_ok_and(|condition| needs_test(&condition))
    })
}

/// Returns whether a `cfg` condition can only hold in a test build.
fn needs_test(condition: &Meta) -> bool {
    let Meta::List(list) = condition else {
        return condition.path().is_ident("test");
    };
    let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
    let mut parts = parts.unwrap_or_default().into_iter();
    if list.path.is_ident("all") {
        parts.any(|part| needs_test(&part))
    } else if list.path.is_ident("any") {
        parts.len() > 0 && parts.all(|part| needs_test(&part))
    } else {
        false
    }
}

/// Returns the value of `#[path = "…"]`, if there is one.
pub(super) fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    let named = attributes.iter().find(|attribute| attribute.path().is_ident("path"))?;
    let value = &named.meta.require_name_value().ok()?.value;
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) = value else {
        return None;
    };
    Some(path.value())
}

/// Returns the attributes of an item of any kind.
pub(crate) fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
