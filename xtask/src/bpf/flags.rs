//! The flags with which the object is built: what builds it and what records it take them from here.

/// What the object depends on beside its sources.
pub const RUSTFLAGS: [&str; 3] = ["--cfg=bpf_target_arch=\"x86_64\"", "-Cdebuginfo=2", "-Clink-arg=--btf"];
/// The profile, whose settings the object depends on too.
pub const PROFILE: [&str; 5] = [
    "profile.release.debug=2",
    "profile.release.opt-level=3",
    "profile.release.codegen-units=1",
    "profile.release.lto=false",
    "profile.release.panic=\"abort\"",
];

/// The flags that are recorded: all but the mappings of paths, which make the object the same in every folder.
pub fn recorded() -> Vec<&'static str> {
    RUSTFLAGS.iter().chain(PROFILE.iter()).copied().collect()
}
