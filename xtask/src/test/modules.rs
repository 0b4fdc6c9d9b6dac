//! The modules of the guest tests. They are known from the built binaries (`--list`), and held against the files that those are made
//! from: no list is kept by hand, and a file whose tests are in no binary is an error.

use crate::paths;
use crate::vm::Link;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;

/// Where the tests lie: a folder per kind, a file per module.
const TESTS: &str = "rdma-userspace/tests";
/// Runs after all others in its guest: it loads the drivers of cards and leaves them, and every later plan would have their hooks.
const LAST: &str = "vm_drivers";
/// Part of the names of tests that take minutes each and that change with the analysis rather than with the kernel.
const LONG: &str = "_delay";

/// These ask what the tool does with its peer, its threads and its captures, hardly what the kernel does: a run of several everyday
/// kernels has them once, on the first. Kernels that are named have them each.
const ONCE: [&str; 2] = ["vm_session", "vm_costs"];

/// How modules are called that want a card on Ethernet.
const ETHERNET: &str = "card_ethernet_";

/// Where tests run; each kind is one binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// In one guest.
    Vm,
    /// In guest b of two.
    Pair,
    /// In one guest with an emulated card.
    Card,
}

impl Kind {
    /// In the order in which they run.
    pub const ALL: [Self; 3] = [Self::Vm, Self::Pair, Self::Card];

    /// Name of the binary and of the folder of its source.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vm => "vm",
            Self::Pair => "pair",
            Self::Card => "card",
        }
    }
}

/// One module of a guest test binary; run in a process of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// The binary that it is in.
    pub kind: Kind,
    /// Its name in the source.
    pub name: String,
    /// How many tests it has.
    pub tests: u64,
}

/// `vm_session`: the name that `--filter` is compared with and that logs and tables have.
impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}_{}", self.kind.name(), self.name))
    }
}

impl Module {
    /// The harness's filter for the tests of this module.
    pub fn filter(&self) -> String {
        format!("{}::", self.name)
    }
}

/// The modules of a binary, from what it prints with `--list --ignored`; `files` are those of its folder, which has one per module.
pub fn of_listing(kind: Kind, listing: &str, files: &BTreeSet<String>) -> Result<Vec<Module>> {
    let tests: Vec<&str> = listing.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let mut modules = BTreeMap::<&str, u64>::new();
    for test in &tests {
        let (module, _) = test.split_once("::").with_context(|| format!("the test `{test}` of {} is in no module", kind.name()))?;
        *modules.entry(module).or_default() += 1;
    }
    let unseen: Vec<&str> = files.iter().map(String::as_str).filter(|file| !modules.contains_key(file)).collect();
    if !unseen.is_empty() {
        bail!("no test for guests in {TESTS}/{}/{{{}}}.rs: declared in main.rs, and its tests ignored?", kind.name(), unseen.join(","));
    }
    let modules: Vec<Module> = modules.into_iter().map(|(name, tests)| Module { kind, name: name.to_owned(), tests }).collect();
    for module in &modules {
        let filter = module.filter();
        // The harness looks for its filter anywhere in a name.
        if let Some(other) = tests.iter().find(|test| test.contains(&filter) && !test.starts_with(&filter)) {
            bail!("the filter `{filter}` for {module} chooses `{other}` too");
        }
    }
    Ok(modules)
}

/// The files of a kind's folder that have to be modules with tests, without their ending.
pub fn files(kind: Kind) -> Result<BTreeSet<String>> {
    let folder = paths::root().join(TESTS).join(kind.name());
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("listing {}", paths::shown(&folder)))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".rs").filter(|name| *name != "main").map(str::to_owned));
    }
    Ok(names)
}

/// Chooses what runs, in its order. Long ones are left out unless `thorough` or a filter asks; it is an error when nothing is left.
pub fn chosen(mut modules: Vec<Module>, filter: Option<&str>, thorough: bool) -> Result<Vec<Module>> {
    let names: Vec<String> = modules.iter().map(Module::to_string).collect();
    modules.retain(|module| match filter {
        Some(wanted) => module.to_string().contains(wanted),
        None => thorough || !module.to_string().contains(LONG),
    });
    if modules.is_empty() {
        bail!("no module of the guest tests is called so; there are {}", names.join(", "));
    }
    modules.sort_by_key(|module| (module.kind, module.to_string() == LAST, module.name.clone()));
    Ok(modules)
}

/// Leaves out what an everyday kernel that is not the first need not run again.
pub fn without_once(modules: &[Module]) -> Vec<Module> {
    modules.iter().filter(|module| !ONCE.contains(&module.to_string().as_str())).cloned().collect()
}

/// Those that fit a card on this link: a few want Ethernet, and say so in their names.
pub fn fitting(modules: &[Module], link: Link) -> Vec<Module> {
    modules.iter().filter(|module| link == Link::Ethernet || !module.to_string().starts_with(ETHERNET)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn modules(names: &[(Kind, &str)]) -> Vec<Module> {
        names.iter().map(|(kind, name)| Module { kind: *kind, name: (*name).to_owned(), tests: 1 }).collect()
    }

    fn names(modules: &[Module]) -> Vec<String> {
        modules.iter().map(Module::to_string).collect()
    }

    #[test]
    fn modules_are_read_from_what_the_binary_lists() {
        let listing = "drivers::a: test\ndrivers::inner::b: test\nverbs::c: test\n\n3 tests, 0 benchmarks\n";
        let found = of_listing(Kind::Vm, listing, &set(&["drivers", "verbs"])).unwrap();
        assert_eq!(names(&found), ["vm_drivers", "vm_verbs"]);
        assert_eq!((found[0].tests, found[1].tests), (2, 1));
        assert_eq!(found[0].filter(), "drivers::");
    }

    #[test]
    fn a_file_that_is_in_no_binary_is_an_error() {
        let error = of_listing(Kind::Vm, "verbs::c: test\n", &set(&["verbs", "left_out"])).unwrap_err().to_string();
        assert!(error.contains("tests/vm/{left_out}.rs"), "{error}");
        assert!(of_listing(Kind::Pair, "", &set(&["truth"])).is_err());
    }

    #[test]
    fn a_test_outside_of_a_module_is_an_error() {
        let error = of_listing(Kind::Vm, "verbs::c: test\nalone: test\n", &set(&["verbs"])).unwrap_err().to_string();
        assert!(error.contains("`alone`"), "{error}");
    }

    #[test]
    fn a_filter_that_would_choose_another_modules_tests_is_an_error() {
        let listing = "sides::a: test\ntwo_sides::b: test\n";
        let error = of_listing(Kind::Pair, listing, &set(&["sides", "two_sides"])).unwrap_err().to_string();
        assert!(error.contains("`two_sides::b`") && error.contains("pair_sides"), "{error}");
        assert!(of_listing(Kind::Pair, "sides::a: test\nsides_two::b: test\n", &set(&[])).is_ok());
    }

    #[test]
    fn a_filter_matches_kind_and_module() {
        let all = || modules(&[(Kind::Pair, "delays"), (Kind::Pair, "truth"), (Kind::Vm, "delays"), (Kind::Vm, "session")]);
        let of = |filter| names(&chosen(all(), Some(filter), false).unwrap());
        assert_eq!(of("vm_session"), ["vm_session"]);
        assert_eq!(of("_delay"), ["vm_delays", "pair_delays"]);
        assert_eq!(of("pair_"), ["pair_delays", "pair_truth"]);
        let error = chosen(all(), Some("vm_truth"), true).unwrap_err().to_string();
        assert!(error.contains("vm_session"), "{error}");
    }

    #[test]
    fn long_ones_wait_to_be_asked_for_and_drivers_are_loaded_last() {
        let all = || modules(&[(Kind::Pair, "truth"), (Kind::Vm, "delay_inside"), (Kind::Vm, "drivers"), (Kind::Vm, "verbs")]);
        assert_eq!(names(&chosen(all(), None, false).unwrap()), ["vm_verbs", "vm_drivers", "pair_truth"]);
        assert_eq!(names(&chosen(all(), None, true).unwrap()), ["vm_delay_inside", "vm_verbs", "vm_drivers", "pair_truth"]);
        let with_card = modules(&[(Kind::Card, "device"), (Kind::Pair, "truth"), (Kind::Vm, "verbs")]);
        assert_eq!(names(&chosen(with_card, None, false).unwrap()), ["vm_verbs", "pair_truth", "card_device"]);
    }

    #[test]
    fn what_hardly_asks_the_kernel_runs_once() {
        let all = modules(&[(Kind::Vm, "session"), (Kind::Vm, "verbs"), (Kind::Pair, "truth"), (Kind::Pair, "session")]);
        assert_eq!(names(&without_once(&all)), ["vm_verbs", "pair_truth", "pair_session"]);
    }

    #[test]
    fn what_wants_ethernet_is_left_out_elsewhere() {
        let all = modules(&[(Kind::Card, "ethernet_control"), (Kind::Card, "device")]);
        assert_eq!(names(&fitting(&all, Link::Infiniband)), ["card_device"]);
        assert_eq!(fitting(&all, Link::Ethernet), all);
        let has_one = files(Kind::Card).unwrap().iter().any(|file| format!("card_{file}").starts_with(ETHERNET));
        assert!(has_one);
    }

    #[test]
    fn every_kind_has_files_and_the_last_one_is_among_them() {
        for kind in Kind::ALL {
            assert!(!files(kind).unwrap().is_empty(), "{kind:?}");
        }
        for name in ONCE.iter().chain([&LAST]) {
            assert!(files(Kind::Vm).unwrap().contains(name.strip_prefix("vm_").unwrap()), "{name}");
        }
    }
}
