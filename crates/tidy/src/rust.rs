//! Rules for Rust sources, read as the compiler reads them.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::{Offences, Repository};

/// A function is a screen.
const FUNCTION: usize = 70;
/// A test tells a story from its beginning to its end.
const TEST: usize = 120;

/// Where `unsafe` may stand: everything that talks to the kernel beyond what safe crates offer.
const UNSAFE_PLACE: &str = "crates/linux/src/sys/";

/// A source, parsed.
struct Source<'a> {
    path: &'a str,
    syntax: syn::File,
}

/// The tokens of each Rust source; what is not even made of tokens is an offence.
fn tokens<'a>(repository: &'a Repository, offences: &mut Offences) -> Vec<(&'a str, TokenStream)> {
    let mut sources = Vec::new();
    for (path, text) in repository.texts(".rs") {
        match text.parse() {
            Ok(tokens) => sources.push((path, tokens)),
            Err(error) => offences.add(format!("{path}: cannot be read: {error}")),
        }
    }
    sources
}

/// The Rust sources of a repository; what cannot be parsed is an offence.
fn sources<'a>(repository: &'a Repository, offences: &mut Offences) -> Vec<Source<'a>> {
    let mut sources = Vec::new();
    for (path, text) in repository.texts(".rs") {
        match syn::parse_file(text) {
            Ok(syntax) => sources.push(Source { path, syntax }),
            Err(error) => offences.add(format!("{path}: cannot be parsed: {error}")),
        }
    }
    sources
}

fn first_line(span: Span) -> usize {
    span.start().line
}

fn lines(span: Span) -> usize {
    span.end().line + 1 - span.start().line
}

/// A file that holds nothing but tests, benchmarks or fuzz targets.
fn is_test_file(path: &str) -> bool {
    let in_directory =
        |name: &str| path.starts_with(&format!("{name}/")) || path.contains(&format!("/{name}/"));
    ["tests", "benches", "fuzz"]
        .iter()
        .any(|name| in_directory(name))
        || path.ends_with("/tests.rs")
}

fn has_attribute(attributes: &[syn::Attribute], wanted: &str) -> bool {
    attributes
        .iter()
        .any(|attribute| attribute.path().is_ident(wanted))
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let list = attribute.meta.require_list();
        attribute.path().is_ident("cfg") && list.is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

/// No function is longer than a screen.
#[must_use]
pub fn function_length(repository: &Repository) -> Offences {
    let mut offences = Offences::new(
        "Split the function where it changes what it is about (70 lines, tests 120), or give it an \
         exception with a reason in crates/tidy/tests/rust.rs.",
    );
    for source in sources(repository, &mut offences) {
        for Function {
            name,
            span,
            is_test,
            ..
        } in functions(&source)
        {
            let (path, length) = (source.path, lines(span));
            if length > if is_test { TEST } else { FUNCTION } {
                offences.add(format!(
                    "{path}::{name}: line {}, {length} lines",
                    first_line(span)
                ));
            }
        }
    }
    offences
}

/// Names say what a thing is: no getters named so, no modules for what has no place.
#[must_use]
pub fn names(repository: &Repository) -> Offences {
    const NO_PLACE: [&str; 8] = [
        "util",
        "utils",
        "utility",
        "utilities",
        "helper",
        "helpers",
        "manager",
        "managers",
    ];
    let mut offences = Offences::new(
        "Name a function after what it gives (`len`, not `get_len`) and a module after what is in \
         it (not utils, helpers or manager).",
    );
    for source in sources(repository, &mut offences) {
        let path = source.path;
        for Function { name, span, .. } in functions(&source) {
            if name.starts_with("get_") {
                offences.add(format!("{path}:{}: fn {name}", first_line(span)));
            }
        }
        let parts = path.trim_end_matches(".rs").split('/');
        if let Some(part) = parts.into_iter().find(|part| NO_PLACE.contains(part)) {
            offences.add(format!("{path}: {part} is no name for a module"));
        }
        let mut modules = Modules::default();
        modules.visit_file(&source.syntax);
        for (name, line) in modules.inline {
            if NO_PLACE.contains(&name.as_str()) {
                offences.add(format!("{path}:{line}: mod {name}"));
            }
        }
    }
    offences
}

/// `unsafe` stays where it is looked after.
#[must_use]
pub fn unsafe_code(repository: &Repository) -> Offences {
    let mut offences = Offences::new(
        "Put what needs `unsafe` behind a safe function in crates/linux/src/sys, or do without; \
         what cannot be written without it (an allocator) gets an exception with a reason in \
         crates/tidy/tests/rust.rs.",
    );
    for (path, tokens) in tokens(repository, &mut offences) {
        if path.starts_with(UNSAFE_PLACE) {
            continue;
        }
        each_token(&tokens, &mut |tokens, at| {
            if is_ident(&tokens[at], "unsafe") {
                offences.add(format!(
                    "{path}: unsafe in line {}",
                    first_line(tokens[at].span())
                ));
            }
        });
    }
    offences
}

/// No test is switched off, no code is a promise.
#[must_use]
pub fn switched_off(repository: &Repository) -> Offences {
    const PROMISES: [&str; 2] = ["todo", "unimplemented"];
    let mut offences = Offences::new(
        "Mend or remove the test that is ignored; write the code or return an error in place of \
         todo! and unimplemented!.",
    );
    for (path, tokens) in tokens(repository, &mut offences) {
        each_token(&tokens, &mut |tokens, at| {
            let line = first_line(tokens[at].span());
            let next = tokens.get(at + 1);
            for promise in PROMISES {
                if is_ident(&tokens[at], promise) && next.is_some_and(|next| is_punct(next, '!')) {
                    offences.add(format!("{path}:{line}: {promise}!"));
                }
            }
            if is_punct(&tokens[at], '#') && next.is_some_and(is_ignoring) {
                offences.add(format!("{path}:{line}: an ignored test"));
            }
        });
    }
    offences
}

/// Every mechanism and every figure says first what it models and where that is published.
#[must_use]
pub fn headers(repository: &Repository) -> Offences {
    const PUBLISHED: [&str; 6] = ["RFC", "section", "figure", "table", "page", "paper"];
    let mut offences = Offences::new(
        "Start the module with a //! header: what it models, from which paper or RFC section, what \
         it needs to see, what breaks it, what it leaves out.",
    );
    let is_ours = |path: &str| {
        path.starts_with("crates/gateway/src/mechanisms/") || path.starts_with("crates/papers/src/")
    };
    for (path, text) in repository.texts(".rs").filter(|(path, _)| is_ours(path)) {
        if is_test_file(path) {
            continue;
        }
        let header: Vec<&str> = text
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .collect();
        let header = header.join("\n").to_lowercase();
        if header.is_empty() {
            offences.add(format!("{path}: has no header"));
        } else if is_published(path)
            && !PUBLISHED
                .iter()
                .any(|word| header.contains(&word.to_lowercase()))
        {
            offences.add(format!(
                "{path}: its header does not say where it is published"
            ));
        }
    }
    offences
}

/// Whether the module is a mechanism itself (`mechanisms/KIND/NAME`), not a part of one or a list.
fn is_published(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("crates/gateway/src/mechanisms/") else {
        return false;
    };
    match rest.split('/').collect::<Vec<_>>()[..] {
        [_, file] => file != "mod.rs",
        [_, _, file] => file == "mod.rs",
        _ => false,
    }
}

/// A function with a body.
struct Function {
    name: String,
    span: Span,
    is_test: bool,
}

fn functions(source: &Source<'_>) -> Vec<Function> {
    let mut functions = Functions {
        found: Vec::new(),
        in_tests: is_test_file(source.path),
    };
    functions.visit_file(&source.syntax);
    functions.found
}

struct Functions {
    found: Vec<Function>,
    in_tests: bool,
}

impl Functions {
    fn add(&mut self, attributes: &[syn::Attribute], name: &syn::Ident, span: Span) {
        let is_test = self.in_tests || has_attribute(attributes, "test");
        self.found.push(Function {
            name: name.to_string(),
            span,
            is_test,
        });
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let outside = self.in_tests;
        self.in_tests |= is_for_tests(&module.attrs);
        visit::visit_item_mod(self, module);
        self.in_tests = outside;
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        // From the signature: what is said above it makes no function longer.
        let span = joined(function.sig.span(), function.block.span());
        self.add(&function.attrs, &function.sig.ident, span);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        let span = joined(function.sig.span(), function.block.span());
        self.add(&function.attrs, &function.sig.ident, span);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        let body = function
            .default
            .as_ref()
            .map_or_else(|| function.sig.span(), Spanned::span);
        self.add(
            &function.attrs,
            &function.sig.ident,
            joined(function.sig.span(), body),
        );
        visit::visit_trait_item_fn(self, function);
    }
}

fn joined(first: Span, last: Span) -> Span {
    first
        .join(last)
        .expect("both spans come from the same file")
}

/// The modules written inside a file, with their lines.
#[derive(Default)]
struct Modules {
    inline: Vec<(String, usize)>,
}

impl<'ast> Visit<'ast> for Modules {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        // A module in a file of its own is found by the file's name.
        if module.content.is_some() {
            self.inline
                .push((module.ident.to_string(), first_line(module.span())));
        }
        visit::visit_item_mod(self, module);
    }
}

/// Calls `look` with every token, also inside macros and attributes, and its neighbours.
fn each_token(stream: &TokenStream, look: &mut impl FnMut(&[TokenTree], usize)) {
    let tokens: Vec<TokenTree> = stream.clone().into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        look(&tokens, at);
        if let TokenTree::Group(group) = token {
            each_token(&group.stream(), look);
        }
    }
}

fn is_ident(token: &TokenTree, wanted: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == wanted)
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

/// What the reason of an ignored test begins with that is none, but a role that the program plays
/// when a test starts it as a child process.
const CHILD_ROLE: &str = "\"not a test: ";

/// Whether `token` is the inside of an attribute that switches a test off, `[ignore]` or
/// `[cfg_attr(…, ignore)]`.
fn is_ignoring(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else {
        return false;
    };
    if group.delimiter() != Delimiter::Bracket {
        return false;
    }
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    match tokens.first() {
        Some(first) if is_ident(first, "ignore") => {
            let reason = tokens.get(2).map(ToString::to_string);
            !reason.is_some_and(|reason| reason.starts_with(CHILD_ROLE))
        }
        Some(first) if is_ident(first, "cfg_attr") => {
            let mut found = false;
            each_token(&group.stream(), &mut |tokens, at| {
                found |= is_ident(&tokens[at], "ignore");
            });
            found
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(rule: fn(&Repository) -> Offences, path: &str, text: &str) -> Vec<String> {
        rule(&Repository::of(&[(path, text)])).list().to_vec()
    }

    #[test]
    fn long_functions_are_found_wherever_they_are() {
        let body = "();\n".repeat(69);
        let text = format!(
            "fn a() {{\n{body}}}\n/// Doc\n#[inline]\nfn b() {{}}\nimpl X {{ fn c() {{\n{body}}} }}\n\
             trait Y {{ fn d() {{\n{body}}} fn e(); }}\nfn f() {{ fn g() {{\n{body}}} }}\n\
             #[cfg(test)]\nmod tests {{ fn h() {{\n{body}}} }}\n"
        );
        let found = on(function_length, "a.rs", &text);
        assert_eq!(
            found,
            [
                "a.rs::a: line 1, 71 lines",
                "a.rs::c: line 75, 71 lines",
                "a.rs::d: line 146, 71 lines",
                "a.rs::f: line 217, 71 lines",
                "a.rs::g: line 217, 71 lines",
            ]
        );
    }

    #[test]
    fn names_that_say_nothing_are_found() {
        let text = "fn get_len() {}\nfn forget_it() {}\nmod x { mod helpers { fn get_x() {} } }\n";
        assert_eq!(
            on(names, "crates/a/src/utils.rs", text),
            [
                "crates/a/src/utils.rs:1: fn get_len",
                "crates/a/src/utils.rs:3: fn get_x",
                "crates/a/src/utils.rs: utils is no name for a module",
                "crates/a/src/utils.rs:3: mod helpers",
            ]
        );
    }

    #[test]
    fn unsafe_is_found_as_a_word_of_the_language_only() {
        let text = "#![forbid(unsafe_code)]\n// unsafe\nfn f() { \"unsafe\"; g!(unsafe { h() }) }\n\
                    #[unsafe(no_mangle)]\nfn i() {}\n";
        let found = on(unsafe_code, "crates/gateway/src/a.rs", text);
        assert_eq!(
            found,
            [
                "crates/gateway/src/a.rs: unsafe in line 3",
                "crates/gateway/src/a.rs: unsafe in line 4"
            ]
        );
        assert_eq!(
            on(unsafe_code, "crates/linux/src/sys/tun.rs", text).len(),
            0
        );
    }

    #[test]
    fn tests_that_are_off_and_promises_are_found() {
        let text = "#[test]\n#[ignore = \"slow\"]\nfn a() {}\n\
                    #[cfg_attr(miri, ignore)]\nfn b() { todo!() }\n\
                    proptest! { #[ignore] fn c() { unimplemented!(\"later\") } }\n\
                    fn d() { ignore(); let todo = [ignore]; } // todo!()\n\
                    #[test]\n#[ignore = \"not a test: the server\"]\nfn e() {}\n";
        assert_eq!(
            on(switched_off, "a.rs", text),
            [
                "a.rs:2: an ignored test",
                "a.rs:4: an ignored test",
                "a.rs:5: todo!",
                "a.rs:6: an ignored test",
                "a.rs:6: unimplemented!",
            ]
        );
    }

    #[test]
    fn modules_without_a_header_or_a_source_are_found() {
        let repository = Repository::of(&[
            (
                "crates/gateway/src/mechanisms/path/hold.rs",
                "//! Holds packets.\n",
            ),
            (
                "crates/gateway/src/mechanisms/path/smart_link.rs",
                "//! Paper 004, section 4.\n",
            ),
            (
                "crates/gateway/src/mechanisms/path/hold/queue.rs",
                "//! The queue.\n",
            ),
            (
                "crates/gateway/src/mechanisms/path/mod.rs",
                "//! Path mechanisms.\n",
            ),
            (
                "crates/gateway/src/mechanisms/path/hold/tests.rs",
                "use super::*;\n",
            ),
            (
                "crates/papers/src/scott_mapp/figure_5.rs",
                "use x;\n//! Late.\n",
            ),
            ("crates/gateway/src/flow.rs", ""),
        ]);
        assert_eq!(
            headers(&repository).list(),
            [
                "crates/gateway/src/mechanisms/path/hold.rs: its header does not say where it is \
                 published",
                "crates/papers/src/scott_mapp/figure_5.rs: has no header",
            ]
        );
    }

    #[test]
    fn what_cannot_be_parsed_is_an_offence() {
        assert_eq!(on(names, "a.rs", "fn (").len(), 1);
    }
}
