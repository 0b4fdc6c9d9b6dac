//! Writing BTF: for extracts of kernels and for tests.

use super::Btf;
use super::format::{MAGIC, VERSION, kind};

/// Builds BTF data.
pub(crate) struct Builder {
    types: Vec<u8>,
    strings: Vec<u8>,
    first_string: u32,
    /// Id of the next record.
    pub(crate) next_id: u32,
}

impl Builder {
    /// Builds a kernel's own.
    pub(crate) fn new() -> Self {
        Builder { types: Vec::new(), strings: vec![0], first_string: 0, next_id: 1 }
    }

    /// Builds a module's, which continues `base`.
    pub(crate) fn on(base: &Btf) -> Self {
        let (next_id, first_string) = base.next();
        Builder { types: Vec::new(), strings: vec![0], first_string, next_id }
    }

    fn string(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let at = self.first_string + self.strings.len() as u32;
        self.strings.extend_from_slice(text.as_bytes());
        self.strings.push(0);
        at
    }

    /// Adds a record and returns its id.
    pub(crate) fn add(&mut self, name: &str, kind: u32, flag: bool, count: u32, size_or_type: u32, tail: &[u32]) -> u32 {
        let name = self.string(name);
        let info = kind << 24 | u32::from(flag) << 31 | count;
        for word in [name, info, size_or_type].iter().chain(tail) {
            self.types.extend_from_slice(&word.to_le_bytes());
        }
        self.next_id += 1;
        self.next_id - 1
    }

    /// Adds a struct or union of members (name, type, offset in bits).
    pub(crate) fn structure(&mut self, name: &str, kind: u32, size: u32, flag: bool, members: &[(&str, u32, u32)]) -> u32 {
        let tail: Vec<u32> = members.iter().flat_map(|(name, id, bits)| [self.string(name), *id, *bits]).collect();
        self.add(name, kind, flag, members.len() as u32, size, &tail)
    }

    /// Adds a function of nameless parameters.
    pub(crate) fn function(&mut self, name: &str, parameters: &[u32]) {
        let tail: Vec<u32> = parameters.iter().flat_map(|id| [0, *id]).collect();
        let proto = self.add("", kind::FUNC_PROTO, false, parameters.len() as u32, 0, &tail);
        self.add(name, kind::FUNC, false, 1, proto, &[]);
    }

    /// The finished data.
    pub(crate) fn build(self) -> Vec<u8> {
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let head = [u32::from(MAGIC) | u32::from(VERSION) << 16, 24, 0, types, types, strings];
        let mut bytes: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(self.types);
        bytes.extend(self.strings);
        bytes
    }
}
