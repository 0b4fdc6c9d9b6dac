//! Big files are named here, each with its reason: a repository keeps every version of them for ever.

use super::tree::Tree;

/// The largest file that needs no reason, in bytes.
const MAX_SIZE: u64 = 256 * 1024;

/// A file that may be bigger, and why it is in the repository.
pub type Named = (&'static str, &'static str);

/// The project's own.
pub const NAMED: [Named; 1] = [("analysis/assets/DejaVuSans.ttf", "the charts' font: the machine that draws them may have none")];

/// Files over the limit that are not in the list, and entries of the list without such a file.
pub fn check(tree: &Tree, named: &[Named]) -> Vec<String> {
    let is_big = |name: &str| tree.files.get(name).map(|file| file.size > MAX_SIZE);
    let is_named = |name: &str| named.iter().any(|(entry, _)| *entry == name);
    let unnamed = tree.files.iter().filter(|(name, file)| file.size > MAX_SIZE && !is_named(name)).map(|(name, file)| {
        format!("{name}: {} KiB, more than {}: {} does not name it", file.size.div_ceil(1024), MAX_SIZE / 1024, file!())
    });
    let needless = named.iter().filter_map(|(name, _)| match is_big(name) {
        Some(true) => None,
        Some(false) => Some(format!("{}: {name} is not over {} KiB", file!(), MAX_SIZE / 1024)),
        None => Some(format!("{}: {name} is not there", file!())),
    });
    unnamed.chain(needless).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::planted;

    const LIST: [Named; 1] = [("big.bin", "needed")];

    #[test]
    fn a_big_file_needs_a_reason() {
        let just_fits = vec![0; MAX_SIZE as usize];
        let too_big = vec![0; MAX_SIZE as usize + 1];
        let clean = planted(&[("big.bin", &too_big), ("fits.bin", &just_fits)]);
        assert_eq!(check(&clean.tree, &LIST), Vec::<String>::new());
        let bad = planted(&[("big.bin", &too_big), ("blob.bin", &too_big)]);
        assert_eq!(check(&bad.tree, &LIST), [format!("blob.bin: 257 KiB, more than 256: {} does not name it", file!())]);
    }

    #[test]
    fn a_reason_needs_a_big_file() {
        let small = planted(&[("big.bin", b"small")]);
        assert_eq!(check(&small.tree, &LIST), [format!("{}: big.bin is not over 256 KiB", file!())]);
        let none = planted(&[("a", b"")]);
        assert_eq!(check(&none.tree, &LIST), [format!("{}: big.bin is not there", file!())]);
    }
}
