//! What runs and comparisons are called in a report: as short as tells them apart.
use crate::report::model::{Comparison, RunReport};
use capture::Transport;
use std::collections::BTreeMap;

/// Gives every run its name: operation and mode; with the size where runs of several sizes are called so; with the folder where even
/// that is not one run.
pub(crate) fn of_runs(runs: &mut [RunReport]) {
    let what = |run: &RunReport| format!("{} {}", run.manifest.run.op, run.manifest.run.mode);
    let sized = |run: &RunReport| format!("{} {} B", what(run), run.manifest.run.size_bytes);
    let sizes: Vec<String> = runs.iter().map(sized).collect();
    let names = shortest(runs, &[&what, &sized, &|run| format!("{} ({})", sized(run), run.path)]);
    for ((run, name), size) in runs.iter_mut().zip(names).zip(&sizes) {
        run.name = name;
        run.has_twin = sizes.iter().filter(|other| *other == size).count() > 1;
    }
}

/// Gives every comparison its name: operation and size; with both folders where that is not one comparison.
pub(crate) fn of_comparisons(comparisons: &mut [Comparison]) {
    let what = |it: &Comparison| format!("{} {} B", it.op, it.size_bytes);
    let names = shortest(comparisons, &[&what, &|it| format!("{} ({} / {})", what(it), it.runs.0, it.runs.1)]);
    for (comparison, name) in comparisons.iter_mut().zip(names) {
        comparison.name = name;
    }
}

/// What a transport is called where it may not be known.
pub(crate) fn of_transport(transport: Option<Transport>) -> &'static str {
    transport.map_or("transport not known", Transport::name)
}

/// For each item the first of its `candidates` that no other item has; the last one where all are shared.
fn shortest<T>(items: &[T], candidates: &[&dyn Fn(&T) -> String]) -> Vec<String> {
    let mut names: Vec<Option<String>> = vec![None; items.len()];
    for candidate in candidates {
        let these: Vec<String> = items.iter().map(candidate).collect();
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for name in &these {
            *seen.entry(name).or_default() += 1;
        }
        for (name, this) in names.iter_mut().zip(&these) {
            if name.is_none() && seen.get(this.as_str()) == Some(&1) {
                *name = Some(this.clone());
            }
        }
    }
    let last = |item| candidates.last().map_or_else(String::new, |candidate| candidate(item));
    names.into_iter().zip(items).map(|(name, item)| name.unwrap_or_else(|| last(item))).collect()
}

#[cfg(test)]
mod tests {
    use super::shortest;

    #[test]
    fn a_name_is_as_long_as_it_takes_to_tell_runs_apart() {
        let runs = [("send", 64, "a"), ("read", 64, "b"), ("send", 4096, "c"), ("read", 64, "d"), ("write", 64, "e")];
        let names =
            shortest(&runs, &[&|it| it.0.into(), &|it| format!("{} {}", it.0, it.1), &|it| format!("{} {} ({})", it.0, it.1, it.2)]);
        assert_eq!(names, ["send 64", "read 64 (b)", "send 4096", "read 64 (d)", "write"]);
    }

    #[test]
    fn what_cannot_be_told_apart_has_its_longest_name() {
        assert_eq!(shortest(&[1, 1], &[&|_| "a".into(), &|it| format!("a {it}")]), ["a 1", "a 1"]);
    }
}
