//! No circles between sibling modules: when `a` uses `b`, nothing of `b` may need `a`, directly or over others. A sibling is
//! a module with all that is below it, so that a circle is found at the level where its ends meet.
//!
//! A parent is no sibling of its children: it may declare, use and export them, and they may use what it defines. A list of
//! its children in the parent (drivers, operations) next to the type that they fill in is good order and no circle. What it
//! only exports or imports is followed to its owner ([`super::uses`]), so that it cannot hide an arrow between its children;
//! and the root of a package may define nothing for its rooms ([`super::arrows`]).

use super::modules::Modules;
use super::uses::Use;
use std::collections::{BTreeMap, VecDeque};

/// Who uses whom among siblings, with the places where it does.
type Graph<'a> = BTreeMap<usize, BTreeMap<usize, Vec<&'a Use>>>;

/// One line per circle: its modules, a place for each of its arrows, and the arrow that would be the easiest to lose. All
/// circles are gone when each of those arrows is.
pub fn check(modules: &Modules, uses: &[Use]) -> Vec<String> {
    let mut levels: BTreeMap<usize, Graph> = BTreeMap::new();
    for one in uses {
        if let Some((level, from, to)) = meeting(modules, one) {
            levels.entry(level).or_default().entry(from).or_default().entry(to).or_default().push(one);
        }
    }
    let mut findings = Vec::new();
    for mut graph in levels.into_values() {
        while let Some(circle) = shortest_circle(&graph) {
            let arrows = circle.iter().zip(circle.iter().cycle().skip(1));
            let Some((from, to)) = arrows.min_by_key(|(from, to)| graph[*from][*to].len()) else { break };
            findings.push(shown(modules, &graph, &circle, (*from, *to)));
            graph.entry(*from).or_default().remove(to);
        }
    }
    findings
}

/// The module in which user and used meet, and the children of it that they belong to.
fn meeting(modules: &Modules, one: &Use) -> Option<(usize, usize, usize)> {
    let outwards = |module: usize| {
        let mut line: Vec<usize> = modules.line(module).collect();
        line.reverse();
        line
    };
    let (user, used) = (outwards(one.user), outwards(one.used));
    let shared = user.iter().zip(&used).take_while(|(a, b)| a == b).count();
    Some((*user.get(shared.checked_sub(1)?)?, *user.get(shared)?, *used.get(shared)?))
}

/// The shortest circle, the first of them by number; each module is followed by one that it uses.
fn shortest_circle(graph: &Graph) -> Option<Vec<usize>> {
    let arrows = graph.iter().flat_map(|(from, to)| to.keys().map(move |to| (*from, *to)));
    let mut circle = arrows.filter_map(|(from, to)| path(graph, to, from)).min_by_key(Vec::len)?;
    // The way back from the arrow's end to its start: the start goes first.
    circle.rotate_right(1);
    Some(circle)
}

/// A shortest way along the arrows, both ends included.
fn path(graph: &Graph, from: usize, to: usize) -> Option<Vec<usize>> {
    let mut before = BTreeMap::from([(from, from)]);
    let mut next = VecDeque::from([from]);
    while let Some(at) = next.pop_front() {
        if at == to {
            let back = std::iter::successors(Some(to), |at| (*at != from).then(|| before[at]));
            let mut path: Vec<usize> = back.collect();
            path.reverse();
            return Some(path);
        }
        for following in graph.get(&at).into_iter().flat_map(BTreeMap::keys) {
            before.entry(*following).or_insert_with(|| {
                next.push_back(*following);
                at
            });
        }
    }
    None
}

fn shown(modules: &Modules, graph: &Graph, circle: &[usize], weakest: (usize, usize)) -> String {
    let name = |module: usize| modules.all[module].name.as_str();
    let mut outwards: Vec<&str> = modules.line(circle[0]).map(name).collect();
    outwards.reverse();
    let mut text = format!("circle: {}", outwards.join("::"));
    for (from, to) in circle.iter().zip(circle.iter().cycle().skip(1)) {
        let first = graph[from][to][0];
        text += &format!(" → {} ({}:{})", name(*to), first.file, first.line);
    }
    let places = graph[&weakest.0][&weakest.1].len();
    text + &format!("; fewest places: {} → {} ({places})", name(weakest.0), name(weakest.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::{manifest, planted};
    use crate::tidy::uses;

    /// The circles of a planted package `p` with these files below `src/`.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let manifest = manifest("p", "");
        let files: Vec<(String, &[u8])> = files.iter().map(|(name, text)| (format!("src/{name}"), text.as_bytes())).collect();
        let own = [("Cargo.toml", manifest.as_bytes())];
        let planted = planted(&own.into_iter().chain(files.iter().map(|(name, text)| (name.as_str(), *text))).collect::<Vec<_>>());
        let modules = Modules::read(&planted.tree);
        assert_eq!(modules.findings, Vec::<String>::new());
        check(&modules, &uses::between(&planted.tree, &modules))
    }

    #[test]
    fn a_parent_and_its_children_are_no_circle() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\npub fn f() { a::f(); b::g() }\n"),
            // A child uses what its parents define; the parents use the child.
            ("a/mod.rs", "mod inner;\npub use inner::Inner;\npub struct Own;\npub fn f() { inner::h() }\n"),
            ("a/inner.rs", "use super::Own;\npub struct Inner;\npub fn h() { crate::f() }\n"),
            ("b.rs", "use crate::a::Inner;\n"),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
    }

    #[test]
    fn two_that_use_each_other_are_found() {
        let files =
            [("lib.rs", "mod a;\nmod b;\n"), ("a.rs", "\nuse crate::b;\nuse crate::b::X;\n"), ("b.rs", "fn f() { super::a::g() }\n")];
        assert_eq!(found(&files), ["circle: p::a → b (src/a.rs:2) → a (src/b.rs:1); fewest places: b → a (1)"]);
    }

    #[test]
    fn a_longer_circle_is_found_where_its_ends_meet() {
        // a/deep → b → c → a, each of another folder.
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;\n"),
            ("a/mod.rs", "mod deep;\n"),
            ("a/deep.rs", "use crate::b::B;\nuse crate::b::C;\n"),
            ("b.rs", "use crate::c::inner::I;\nuse crate::c::inner::J;\n"),
            ("c/mod.rs", "pub mod inner;\nmod other;\n"),
            ("c/inner.rs", ""),
            ("c/other.rs", "use crate::a::A;\n"),
        ];
        let circle = "circle: p::a → b (src/a/deep.rs:1) → c (src/b.rs:1) → a (src/c/other.rs:1); fewest places: c → a (1)";
        assert_eq!(found(&files), [circle]);
    }

    #[test]
    fn a_circle_over_what_the_parent_exports_is_found() {
        let files = [
            ("lib.rs", "mod m;\n"),
            ("m/mod.rs", "mod a;\nmod b;\npub use a::A;\nuse b::B;\n"),
            ("m/a.rs", "use super::*;\npub struct A(B);\n"),
            ("m/b.rs", "use super::A;\npub struct B;\n"),
        ];
        assert_eq!(found(&files), ["circle: p::m::a → b (src/m/a.rs:2) → a (src/m/b.rs:1); fewest places: a → b (1)"]);
    }

    #[test]
    fn each_circle_is_found_and_tests_make_none() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\n"),
            ("a.rs", "use crate::{b, c};\n"),
            ("b.rs", "use crate::a;\n"),
            ("c.rs", "use crate::a;\n#[cfg(test)]\nmod tests { use crate::d; }\n"),
            ("d.rs", "use crate::c;\n"),
        ];
        let found = found(&files);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("circle: p::a → b ") && found[1].starts_with("circle: p::a → c "), "{found:?}");
    }
}
