//! Forms of text that several files of /proc and /sys share.

/// Value of the first `key : value` line.
pub fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// The word in brackets of a choice such as `always [madvise] never`.
pub fn chosen(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word)
}

/// The members of a CPU list such as `0-3,8`, as the kernel writes it; `None` when it is not one.
pub fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // No machine has more; a damaged file must not make us allocate.
        if first > last || last > 65_535 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists() {
        assert_eq!(cpu_list("0-2,8"), Some(vec![0, 1, 2, 8]));
        assert_eq!(cpu_list(""), Some(vec![]));
        assert_eq!(cpu_list("3-1"), None);
        assert_eq!(cpu_list("0-4294967295"), None);
        assert_eq!(cpu_list("x"), None);
    }

    #[test]
    fn fields_and_choices() {
        assert_eq!(field("Name:\tx\nUid : 0 0\n", "Uid"), Some("0 0"));
        assert_eq!(field("Name\n", "Name"), None);
        assert_eq!([chosen("none [integrity] confidentiality"), chosen("none")], [Some("integrity"), None]);
    }
}
