//! What one Rust file says, as far as the checks of modules need it: the modules it declares, the names it imports and
//! defines, and every path it uses. syn reads the file; paths inside the tokens of a macro call and inside attributes
//! (`#[serde(with = "crate::x")]`) are read from the tokens. Code that exists only for tests is left out, apart from the
//! modules it declares.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use std::collections::HashSet;
use std::sync::Arc;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, Meta, UseTree};

/// A file, or a module written inside one.
#[derive(Debug, Default)]
pub struct Scope {
    /// `mod` declarations, of tests as well.
    pub modules: Vec<Declared>,
    /// One entry for each name that a `use` brings in.
    pub imports: Vec<Import>,
    /// Names of what is defined here, modules apart.
    pub items: HashSet<String>,
    /// Paths in types, expressions, patterns, attributes and macro calls; `use` declarations are in `imports`.
    pub paths: Vec<Used>,
}

/// A `mod` declaration.
#[derive(Debug)]
pub struct Declared {
    pub name: String,
    /// What `#[path = "…"]` says.
    pub path: Option<String>,
    /// Whether it is compiled for tests only.
    pub is_test: bool,
    /// The content, when it is written in the same file.
    pub inline: Option<Arc<Scope>>,
}

/// One name of a `use` declaration.
#[derive(Debug)]
pub struct Import {
    /// The imported path. Its first segment is empty when it starts with `::`.
    pub path: Vec<String>,
    /// The name it gets; `None` for a glob.
    pub name: Option<String>,
    pub line: usize,
}

/// A path as it is written. Its first segment is empty when it starts with `::`.
#[derive(Debug)]
pub struct Used {
    pub path: Vec<String>,
    pub line: usize,
}

/// Reads one file.
pub fn read(content: &str) -> syn::Result<Scope> {
    let file = syn::parse_file(content)?;
    let mut reader = Reader::default();
    reader.visit_file(&file);
    Ok(reader.scope)
}

#[derive(Default)]
struct Reader {
    scope: Scope,
}

impl Reader {
    fn module(&mut self, module: &syn::ItemMod) {
        let inline = module.content.as_ref().map(|(_, items)| {
            let mut reader = Self::default();
            items.iter().for_each(|item| reader.visit_item(item));
            Arc::new(reader.scope)
        });
        let path = module.attrs.iter().find_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("path") => text_of(&pair.value),
            _ => None,
        });
        let is_test = is_test_only(&module.attrs);
        self.scope.modules.push(Declared { name: name_of(&module.ident), path, is_test, inline });
    }

    fn imports(&mut self, tree: &UseTree, before: &[String]) {
        let joined = |name: String| [before, &[name]].concat();
        let mut add = |path: Vec<String>, name: Option<String>, span: Span| {
            self.scope.imports.push(Import { path, name, line: span.start().line });
        };
        match tree {
            UseTree::Path(part) => self.imports(&part.tree, &joined(name_of(&part.ident))),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.imports(tree, before)),
            UseTree::Glob(glob) => add(before.to_vec(), None, glob.star_token.spans[0]),
            UseTree::Name(name) if name.ident == "self" => add(before.to_vec(), before.last().cloned(), name.ident.span()),
            UseTree::Name(name) => add(joined(name_of(&name.ident)), Some(name_of(&name.ident)), name.ident.span()),
            UseTree::Rename(as_name) if as_name.ident == "self" => {
                add(before.to_vec(), Some(name_of(&as_name.rename)), as_name.ident.span());
            }
            UseTree::Rename(as_name) => add(joined(name_of(&as_name.ident)), Some(name_of(&as_name.rename)), as_name.ident.span()),
        }
    }

    fn used(&mut self, path: Vec<String>, span: Span) {
        self.scope.paths.push(Used { path, line: span.start().line });
    }

    /// Paths in tokens that nothing has parsed. In an attribute a text may hold one.
    fn tokens(&mut self, tokens: TokenStream, in_attribute: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is = |index: usize, wanted: char| matches!(tokens.get(index), Some(TokenTree::Punct(punct)) if punct.as_char() == wanted);
        let is_separator = |index: usize| is(index, ':') && is(index + 1, ':');
        let mut index = 0;
        while index < tokens.len() {
            match &tokens[index] {
                TokenTree::Group(group) => self.tokens(group.stream(), in_attribute),
                TokenTree::Literal(literal) if in_attribute => {
                    let parsed = syn::parse_str::<syn::LitStr>(&literal.to_string()).ok().and_then(|text| text.parse::<syn::Path>().ok());
                    if let Some(path) = parsed.filter(|path| path.segments.len() > 1) {
                        self.used(segments(&path), literal.span());
                    }
                }
                TokenTree::Ident(first) => {
                    let mut path = vec![name_of(first)];
                    let is_member = index > 0 && is(index - 1, '.');
                    if index > 1 && is_separator(index - 2) {
                        path.insert(0, String::new());
                    }
                    while is_separator(index + 1)
                        && let Some(TokenTree::Ident(next)) = tokens.get(index + 3)
                    {
                        path.push(name_of(next));
                        index += 3;
                    }
                    let is_called =
                        matches!(tokens.get(index + 1), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis);
                    if !is_member && (path.len() > 1 || is_called || is_type_like(&path)) {
                        self.used(path, first.span());
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            index += 1;
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        if let Item::Mod(module) = item {
            return self.module(module);
        }
        if is_test_only(attributes(item)) {
            return;
        }
        if let Some(name) = defined(item) {
            self.scope.items.insert(name);
        }
        visit::visit_item(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let before = if item.leading_colon.is_some() { vec![String::new()] } else { Vec::new() };
        self.imports(&item.tree, &before);
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        let name = item.rename.as_ref().map_or(&item.ident, |(_, name)| name);
        let path = vec![String::new(), name_of(&item.ident)];
        self.scope.imports.push(Import { path, name: Some(name_of(name)), line: item.ident.span().start().line });
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes: &[Attribute] = match item {
            syn::ImplItem::Const(item) => &item.attrs,
            syn::ImplItem::Fn(item) => &item.attrs,
            syn::ImplItem::Type(item) => &item.attrs,
            syn::ImplItem::Macro(item) => &item.attrs,
            _ => &[],
        };
        if !is_test_only(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !is_test_only(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !is_test_only(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let syn::Expr::Path(function) = &*call.func
            && let Some(name) = function.path.get_ident()
        {
            self.used(vec![name_of(name)], name.span());
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let written = segments(path);
        // A single small name may be a variable; where it is called, `visit_expr_call` has it.
        if let Some(first) = path.segments.first()
            && (written.len() > 1 || is_type_like(&written))
        {
            self.used(written, first.ident.span());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone(), false);
        self.visit_path(&call.path);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta
            && !list.path.is_ident("cfg")
        {
            self.tokens(list.tokens.clone(), true);
        }
        // The path of an attribute is a macro's or the compiler's name: `#[crate::x]` is not written here.
    }
}

/// Whether the attributes leave the code out of every build that is not for tests.
fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) => list.path.is_ident("cfg") && list.parse_args::<Meta>().is_ok_and(|predicate| needs_test(&predicate)),
        Meta::NameValue(_) => false,
    })
}

/// Whether a `cfg` predicate cannot hold without `test`.
fn needs_test(predicate: &Meta) -> bool {
    let parts = |list: &syn::MetaList| {
        list.parse_args_with(syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated).map(Vec::from_iter).unwrap_or_default()
    };
    match predicate {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => parts(list).iter().any(needs_test),
        Meta::List(list) if list.path.is_ident("any") => parts(list).iter().all(needs_test),
        _ => false,
    }
}

fn attributes(item: &Item) -> &[Attribute] {
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

/// The name that an item gives to what it defines.
fn defined(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name_of(name))
}

fn segments(path: &syn::Path) -> Vec<String> {
    let start = path.leading_colon.map(|_| String::new());
    start.into_iter().chain(path.segments.iter().map(|segment| name_of(&segment.ident))).collect()
}

fn is_type_like(path: &[String]) -> bool {
    path.last().is_some_and(|name| name.starts_with(char::is_uppercase))
}

/// A name without the `r#` that lets it be a keyword.
fn name_of(name: &proc_macro2::Ident) -> String {
    let name = name.to_string();
    name.strip_prefix("r#").map(str::to_owned).unwrap_or(name)
}

fn text_of(value: &syn::Expr) -> Option<String> {
    match value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}
