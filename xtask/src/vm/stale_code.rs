//! A fault of the emulator that ends a guest: QEMU's multi-threaded translation may still run an int3 that the kernel has already taken
//! back when a probe or a tracepoint came or went (docs/found-the-hard-way.md). The kernel then finds a trap that is nobody's and dies.

use super::watch::console_of;
use std::fs;
use std::path::Path;

/// How kernels begin their report of an int3 that is nobody's: newer ones, and those before 6.11 or so.
const SIGNS: [&str; 2] = ["Oops: int3: 0000 [#1]", "] int3: 0000 [#1]"];

/// The guests of a job that died of it, by what their consoles in `folder` say. Only that sign counts: every other death is a failure.
pub fn victims(folder: &Path, letters: &[char]) -> Vec<char> {
    let died = |letter: &&char| {
        let console = fs::read(folder.join(console_of(**letter))).unwrap_or_default();
        let console = String::from_utf8_lossy(&console);
        SIGNS.iter().any(|sign| console.contains(sign))
    };
    letters.iter().filter(died).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_trap_that_is_nobodys_is_the_emulators_fault() {
        let folder = tempfile::tempdir().unwrap();
        let console = |letter: char, text: &str| fs::write(folder.path().join(console_of(letter)), text).unwrap();
        console('a', "[  113.6] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI\n");
        console('b', "[   13.6] Oops: general protection fault: 0000 [#1] SMP\n[ 14.0] Kernel panic - not syncing\n");
        assert_eq!(victims(folder.path(), &['a', 'b']), ['a']);
        console('b', "[   13.623515] int3: 0000 [#1] SMP NOPTI\n");
        assert_eq!(victims(folder.path(), &['a', 'b']), ['a', 'b']);
        assert!(victims(&folder.path().join("none"), &['a']).is_empty());
    }
}
