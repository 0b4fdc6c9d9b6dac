//! Words of the command line that the kernel was started with.
use super::root::Root;

/// Where the kernel tells it.
pub const PATH: &str = "proc/cmdline";
/// Makes interrupt handlers run in threads.
pub const THREADED_IRQS: &str = "threadirqs";

/// Was the kernel started with this word? What is not told was not said.
pub fn has(root: &Root, word: &str) -> bool {
    root.text(PATH).is_some_and(|line| line.split_whitespace().any(|it| it == word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::Tree;

    #[test]
    fn whole_words_only() {
        let tree = Tree::new().file(PATH, "quiet nothreadirqs threadirqs=1 idle=poll\n");
        let root = tree.root();
        assert!(has(&root, "idle=poll") && has(&root, "quiet"));
        assert!(!has(&root, THREADED_IRQS) && !has(&root, "idle"));
        assert!(!has(&Tree::new().root(), THREADED_IRQS));
    }
}
