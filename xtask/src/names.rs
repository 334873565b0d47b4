//! Words that this house does not use: parts of names that mean nothing to a reader who knows the
//! field, and phrases of prose that must be read twice. The lists only get longer.

use proc_macro2::Span;
use syn::visit::{self, Visit};
use syn::{Attribute, Fields, Ident};

use xtask::workspace::Source;

/// Parts of names, each with what to write instead. A part is what lies between underscores, or a
/// hump of a type's name.
const PARTS: [(&[&str], &str); 40] = [
    (&["place", "places", "placed"], "an offset, endpoint, path, index or location"),
    (&["asked"], "a request, or what is requested"),
    (&["wanted"], "what is expected, required or requested"),
    (&["wish", "wishes"], "a request or requirement"),
    (&["seen"], "an observation"),
    (&["found"], "the thing itself, or a search's outcome"),
    (&["known"], "what is resolved, cached or supported"),
    (&["said", "say", "says"], "a message, or what is reported"),
    (&["told", "tell", "tells"], "a message; notify, report or describe"),
    (&["stated"], "what is reported or declared"),
    (&["standing"], "a state or priority"),
    (&["stage", "stages"], "a phase or step"),
    (&["way", "ways"], "a transport, route, method or variant"),
    (&["seat", "seats"], "a worker's or client's context"),
    (&["turn", "turns"], "a client's context, a message or an exchange"),
    (&["seam", "seams"], "an interface"),
    (&["maker", "makers"], "a source of load"),
    (&["desk"], "a runner"),
    (&["book", "books"], "a record"),
    (&["crew"], "a group of workers"),
    (&["deal", "deals", "dealt"], "distribute, or a worker's share"),
    (&["judge", "judges", "judged"], "evaluate"),
    (&["words"], "text, tokens or a message"),
    (&["held"], "kept, sustained, pinned, retained or in force"),
    (&["whom"], "a selector"),
    (&["whereabouts"], "a location"),
    (&["mischief"], "a kind of fault"),
    (&["deceit", "tricked"], "what is faked"),
    (&["doomed"], "what ends it"),
    (&["course"], "progress or a sequence"),
    (&["circumstances"], "conditions"),
    (&["beside"], "alongside, competing or adjacent"),
    (&["beneath"], "what lies below"),
    (&["over"], "what exceeds, ends, elapses or overlays"),
    (&["departure", "departures"], "a deviation or a completion"),
    (&["gap", "gaps"], "an inter-arrival time, interval or pause"),
    (&["surplus", "surpluses"], "trailing bytes"),
    (&["slip", "slips"], "a typo or a hint"),
    (&["station", "stations"], "a queue"),
    (&["witness", "witnesses"], "a cross-check"),
];

/// Names of functions that say nothing alone.
const FUNCTIONS: [(&str, &str); 4] = [
    ("of", "`from_…` for a constructor, else the noun that it returns"),
    ("see", "update or observe"),
    ("put", "insert, write or push"),
    ("at", "get, or the noun that it returns"),
];

/// Endings of type names that say nothing.
const EMPTY_NAMES: [&str; 3] = ["Manager", "Helper", "Impl"];
/// Names of modules that attract everything.
const EMPTY_MODULES: [&str; 5] = ["utils", "util", "common", "helpers", "misc"];

/// Names that keep such a part, and why no other will do.
const KEPT: [(&str, &str); 1] = [("NotFound", "HTTP's status 404, beside its other statuses")];

/// What a derive writes or reads by name: a file, a message, a command line.
const WRITTEN: [&str; 7] =
    ["Serialize", "Deserialize", "JsonSchema", "Args", "Parser", "Subcommand", "ValueEnum"];

/// Phrases of comments, messages and docs.
const PHRASES: [&str; 18] = [
    "departure",
    "departures",
    "stated interval",
    "stated intervals",
    "surplus",
    "witness",
    "slips",
    "whom",
    "whereabouts",
    "mischief",
    "is told as",
    "tells how",
    "so many",
    "the like",
    "stands by",
    "looks on",
    "goes on behind",
    "can go no further",
];

/// Every name that is declared in a file of Rust and has a part that this house does not use.
pub fn dialect(source: &Source) -> Vec<String> {
    let Ok(file) = syn::parse_file(&source.text) else { return Vec::new() };
    let mut names = Declared { source, faults: Vec::new() };
    if let Some(module) = source.path.strip_suffix("/mod.rs").or(source.path.strip_suffix(".rs")) {
        names.check(module.rsplit('/').next().unwrap_or(module), 1);
    }
    names.visit_file(&file);
    names.faults
}

/// Every phrase of prose that must be read twice.
pub fn prose(source: &Source) -> Vec<String> {
    let rust = source.path.ends_with(".rs");
    let mut faults = Vec::new();
    // This file lists them.
    if source.path == file!() {
        return faults;
    }
    for (number, line) in source.text.lines().enumerate() {
        let text = if rust { prose_of_rust(line) } else { prose_of_markdown(line) }.to_lowercase();
        for phrase in PHRASES {
            if text.match_indices(phrase).any(|(start, _)| is_whole(&text, start, phrase.len())) {
                let path = &source.path;
                faults.push(format!("{path}:{}: \"{phrase}\"; write plain English", number + 1));
            }
        }
    }
    faults
}

fn is_whole(text: &str, start: usize, length: usize) -> bool {
    let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    !inside(text[..start].chars().next_back()) && !inside(text[start + length..].chars().next())
}

/// The comment of a line, or its string literals of more than one token: keys have one.
fn prose_of_rust(line: &str) -> String {
    let (code, comment) = line.split_once("//").unwrap_or((line, ""));
    let literals = code.split('"').skip(1).step_by(2).filter(|literal| literal.contains(' '));
    literals.chain([comment]).collect::<Vec<_>>().join(" ")
}

/// A line without what is code in it.
fn prose_of_markdown(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

struct Declared<'a> {
    source: &'a Source,
    faults: Vec<String>,
}

impl Declared<'_> {
    fn check(&mut self, name: &str, line: usize) {
        if KEPT.iter().any(|(kept, _)| *kept == name) {
            return;
        }
        if name.to_lowercase().replace('_', "").contains("thereandback") {
            return self.fault(name, line, "a round trip");
        }
        let instead = parts(name).iter().find_map(|part| {
            PARTS.iter().find(|(old, _)| old.contains(&part.as_str())).map(|(_, text)| *text)
        });
        if let Some(instead) = instead {
            self.fault(name, line, instead);
        }
    }

    fn fault(&mut self, name: &str, line: usize, instead: &str) {
        let path = &self.source.path;
        self.faults.push(format!("{path}:{line}: `{name}` is dialect; name {instead}"));
    }

    fn ident(&mut self, ident: &Ident) {
        self.check(&ident.to_string(), line(ident.span()));
    }

    fn type_name(&mut self, ident: &Ident) {
        let name = ident.to_string();
        match EMPTY_NAMES.iter().any(|empty| name.ends_with(empty)) {
            true => self.fault(&name, line(ident.span()), "its subject"),
            false => self.ident(ident),
        }
    }

    fn function(&mut self, ident: &Ident) {
        let name = ident.to_string();
        match FUNCTIONS.iter().find(|(function, _)| *function == name) {
            Some((_, instead)) => self.fault(&name, line(ident.span()), instead),
            None => self.ident(ident),
        }
    }

    fn fields(&mut self, fields: &Fields, attributes: &[Attribute]) {
        if is_written(attributes) {
            return;
        }
        for ident in fields.iter().filter_map(|field| field.ident.as_ref()) {
            self.ident(ident);
        }
    }
}

fn line(span: Span) -> usize {
    span.start().line
}

/// Lower-case parts of a snake_case or CamelCase name.
fn parts(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for piece in name.split('_') {
        let humps = !piece.chars().any(char::is_lowercase);
        let mut part = String::new();
        for c in piece.chars() {
            if c.is_uppercase() && !humps && !part.is_empty() {
                parts.push(std::mem::take(&mut part));
            }
            part.extend(c.to_lowercase());
        }
        parts.push(part);
    }
    parts
}

/// A test's name is a sentence.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("test"))
}

fn is_written(attributes: &[Attribute]) -> bool {
    let mut written = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("derive")) {
        let listed = attribute.parse_nested_meta(|derive| {
            let last = derive.path.segments.last();
            written |= last.is_some_and(|last| WRITTEN.iter().any(|name| last.ident == name));
            Ok(())
        });
        written |= listed.is_err();
    }
    written
}

impl<'ast> Visit<'ast> for Declared<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.sig.ident);
        }
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig.ident);
        visit::visit_impl_item_fn(self, item);
    }

    /// A trait's implementation declares no names; the trait does, or it is foreign.
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if item.trait_.is_none() {
            return visit::visit_item_impl(self, item);
        }
        for member in &item.items {
            match member {
                syn::ImplItem::Fn(function) => {
                    visit::visit_signature(self, &function.sig);
                    visit::visit_block(self, &function.block);
                }
                other => visit::visit_impl_item(self, other),
            }
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.function(&item.sig.ident);
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.type_name(&item.ident);
        self.fields(&item.fields, &item.attrs);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.type_name(&item.ident);
        for variant in item.variants.iter().filter(|_| !is_written(&item.attrs)) {
            self.ident(&variant.ident);
            self.fields(&variant.fields, &[]);
        }
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.type_name(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.type_name(&item.ident);
        visit::visit_item_type(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.ident(&item.ident);
        visit::visit_item_const(self, item);
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.ident(&item.ident);
        visit::visit_item_static(self, item);
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.ident(&item.ident);
        visit::visit_impl_item_const(self, item);
    }

    fn visit_trait_item_const(&mut self, item: &'ast syn::TraitItemConst) {
        self.ident(&item.ident);
        visit::visit_trait_item_const(self, item);
    }

    fn visit_trait_item_type(&mut self, item: &'ast syn::TraitItemType) {
        self.ident(&item.ident);
        visit::visit_trait_item_type(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        match EMPTY_MODULES.iter().any(|empty| item.ident == empty) {
            true => self.fault(&item.ident.to_string(), line(item.ident.span()), "its subject"),
            false => self.ident(&item.ident),
        }
        visit::visit_item_mod(self, item);
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        if let Some(ident) = &item.ident {
            self.ident(ident);
        }
    }

    /// Variables and parameters.
    fn visit_pat_ident(&mut self, item: &'ast syn::PatIdent) {
        self.ident(&item.ident);
        visit::visit_pat_ident(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: String) -> Source {
        Source { path: path.to_owned(), text }
    }

    fn faults(text: &str) -> usize {
        dialect(&source("crates/a/src/b.rs", text.to_owned())).len()
    }

    #[test]
    fn every_listed_part_is_refused_in_every_kind_of_name() {
        for part in PARTS.iter().flat_map(|(parts, _)| *parts) {
            let hump = format!("{}{}", part[..1].to_uppercase(), &part[1..]);
            assert_eq!(faults(&format!("struct Last{hump};")), 1, "{part}");
            assert_eq!(faults(&format!("enum A {{ {hump} }}")), 1, "{part}");
            assert_eq!(faults(&format!("struct A {{ {part}_ns: u64 }}")), 1, "{part}");
            assert_eq!(faults(&format!("fn last_{part}() {{}}")), 1, "{part}");
            assert_eq!(faults(&format!("fn a() {{ let {part} = 1; }}")), 1, "{part}");
            assert_eq!(faults(&format!("mod {part};")), 1, "{part}");
            assert_eq!(faults(&format!("const {}: u8 = 1;", part.to_uppercase())), 1, "{part}");
            let path = format!("crates/a/src/{part}.rs");
            assert_eq!(dialect(&source(&path, String::new())).len(), 1, "{part}");
        }
        for (function, _) in FUNCTIONS {
            assert_eq!(faults(&format!("impl A {{ fn {function}() {{}} }}")), 1, "{function}");
        }
    }

    #[test]
    fn names_without_a_subject_are_faults() {
        let text = "pub struct RunManager;\npub(crate) mod utils;\nstruct Runner;\nmod commons;\n";
        assert_eq!(faults(text), 2);
    }

    #[test]
    fn names_of_others_and_sentences_are_none_of_ours() {
        assert_eq!(faults("#[test] fn a_server_that_is_found_again() {}"), 0);
        assert_eq!(faults("#[derive(Serialize)] struct A { told: u8 }"), 0);
        assert_eq!(faults("impl Foreign for A { fn put(&self) {} }"), 0);
        assert_eq!(faults("fn placement() { let display = 1; }"), 0);
    }

    #[test]
    fn every_listed_phrase_is_refused_in_comments_messages_and_docs() {
        for phrase in PHRASES {
            for text in [format!("// it {phrase} x"), format!("let a = \"it {phrase} x\";")] {
                assert!(!prose(&source("a.rs", text)).is_empty(), "{phrase}");
            }
            assert!(!prose(&source("a.md", format!("it {phrase} x"))).is_empty(), "{phrase}");
        }
        assert!(prose(&source("a.rs", "let a = \"departures\";".to_owned())).is_empty());
        assert!(prose(&source("a.md", "the key `departures`".to_owned())).is_empty());
    }
}
