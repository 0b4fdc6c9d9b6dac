//! The licences of every package that a build uses must be on the list.

use crate::process;
use anyhow::{Context, Result};
use serde::Deserialize;

/// What the project may be built from. MPL-2.0 only for tools that run at build time.
const ALLOWED: [&str; 14] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "0BSD",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "BSL-1.0",
    "CC0-1.0",
    "Unlicense",
    "MPL-2.0",
];

/// Packages that name no licence in their manifest, and what their licence file was read to be.
const READ_BY_HAND: [(&str, &str); 1] = [("rdma-sys", "MIT")];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
}

/// Asks cargo for every package of the lock file.
pub fn check() -> Result<Vec<String>> {
    let text = process::output(process::cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    let metadata: Metadata = serde_json::from_str(&text).context("reading what cargo metadata printed")?;
    Ok(metadata.packages.iter().filter_map(finding).collect())
}

fn finding(package: &Package) -> Option<String> {
    let name = format!("{} {}", package.name, package.version);
    let read = READ_BY_HAND.iter().find(|(read, _)| *read == package.name).map(|(_, licence)| *licence);
    match package.license.as_deref().or(read) {
        None => Some(format!("{name}: names no licence")),
        Some(licence) if is_allowed(licence) => None,
        Some(licence) => Some(format!("{name}: licence {licence} is not on the list")),
    }
}

/// Whether an SPDX expression can be satisfied with allowed licences. Exceptions only ever allow more.
fn is_allowed(expression: &str) -> bool {
    let parsed = spdx::Expression::parse_mode(expression, spdx::ParseMode::LAX);
    parsed.is_ok_and(|parsed| parsed.evaluate(|needed| needed.license.id().is_some_and(|id| ALLOWED.contains(&id.name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_understood() {
        for fine in ["MIT", "MIT/Apache-2.0", "(MIT OR GPL-2.0-only) AND Unicode-3.0", "Apache-2.0 WITH LLVM-exception"] {
            assert!(is_allowed(fine), "{fine}");
        }
        for refused in ["GPL-2.0-only", "MIT AND LGPL-2.1-only", "Strange", ""] {
            assert!(!is_allowed(refused), "{refused}");
        }
    }

    #[test]
    fn a_package_without_licence_is_found() {
        let package = Package { name: "p".to_owned(), version: "1.0.0".to_owned(), license: None };
        assert_eq!(finding(&package).unwrap(), "p 1.0.0: names no licence");
    }
}
