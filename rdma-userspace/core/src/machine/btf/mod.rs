//! A small reader of BTF, split BTF included: where a member lies, what a function takes.
//!
//! A module's BTF continues the numbering of types and strings of the kernel's own, which it needs as its base.

mod format;
mod reduce;
#[cfg(test)]
pub(crate) mod test_support;
#[cfg(test)]
mod tests;
mod write;

pub use reduce::{Keep, reduce};

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use format::{Sections, TypeHead, head_at, kind, record_len, sections, u32_at};

/// Longest chain of typedefs and qualifiers, and deepest nesting of anonymous members, that is followed.
const DEPTH_MAX: u32 = 32;

/// Why BTF gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BtfError {
    /// Another format or byte order.
    #[error("not BTF of this byte order (magic {magic:#x}, version {version})")]
    NotBtf {
        /// What stood in the place of the magic number.
        magic: u16,
        /// What stood in the place of the version.
        version: u8,
    },
    /// Data ends too early.
    #[error("the data ends before byte {at}")]
    Truncated {
        /// The byte that is missing.
        at: usize,
    },
    /// A kind of a newer format.
    #[error("kind {kind} at byte {at} is not known to this version")]
    UnknownKind {
        /// The kind's number.
        kind: u32,
        /// Where.
        at: usize,
    },
    /// No struct or union of that name.
    #[error("no struct or union `{name}`")]
    NoStruct {
        /// Its name.
        name: String,
    },
    /// No member of that name.
    #[error("`{structure}` has no member `{member}`")]
    NoMember {
        /// The struct that was searched.
        structure: String,
        /// The member.
        member: String,
    },
    /// The member does not begin at a byte.
    #[error("`{member}` of `{structure}` is a bit field")]
    BitField {
        /// The struct.
        structure: String,
        /// The member.
        member: String,
    },
    /// A chain of types that does not end.
    #[error("type {id} is nested too deep")]
    TooDeep {
        /// Where the chain began.
        id: u32,
    },
    /// A type id that no record has.
    #[error("no type {id}")]
    NoType {
        /// The id.
        id: u32,
    },
}

/// Types of the kernel or of one module.
#[derive(Debug)]
pub struct Btf {
    pub(super) bytes: Vec<u8>,
    sections: Sections,
    /// Start of each own record; index 0 is type `first_id`.
    records: Vec<u32>,
    first_id: u32,
    first_string: u32,
    base: Option<Arc<Btf>>,
    /// Own records by the hash of their name, sorted; made at the first look-up.
    names: OnceLock<Vec<(u64, u32)>>,
}

impl Btf {
    /// Reads `/sys/kernel/btf/NAME`; a module needs the kernel's own as `base`.
    ///
    /// # Errors
    /// [`BtfError::NotBtf`], [`BtfError::Truncated`], or [`BtfError::UnknownKind`] for a format that is too new.
    pub fn parse(bytes: Vec<u8>, base: Option<Arc<Btf>>) -> Result<Self, BtfError> {
        let sections = sections(&bytes)?;
        let mut records = Vec::new();
        let mut at = sections.types;
        while at < sections.types_end {
            records.push(at as u32);
            at += record_len(&head_at(&bytes, at)?, at)?;
        }
        // Type 0 is `void`, which has no record.
        let (first_id, first_string) = base.as_ref().map_or((1, 0), |base| base.next());
        Ok(Btf { bytes, sections, records, first_id, first_string, base, names: OnceLock::new() })
    }

    /// Offset in bytes of a member, given as a dotted path such as `res.task`. Anonymous structs and unions are looked through.
    ///
    /// # Errors
    /// [`BtfError::NoStruct`], [`BtfError::NoMember`], [`BtfError::BitField`].
    pub fn member_offset(&self, structure: &str, path: &str) -> Result<u32, BtfError> {
        let mut id = self.find(structure, |head| matches!(head.kind, kind::STRUCT | kind::UNION));
        let mut offset_bits = 0;
        let mut owner = structure;
        for member in path.split('.') {
            let Some(in_id) = id else { return Err(BtfError::NoStruct { name: owner.to_owned() }) };
            let Some((bits, member_id)) = self.member(in_id, member, 0)? else {
                return Err(BtfError::NoMember { structure: owner.to_owned(), member: member.to_owned() });
            };
            offset_bits += bits;
            id = Some(self.peel(member_id)?);
            owner = member;
        }
        if offset_bits % 8 == 0 {
            Ok(offset_bits / 8)
        } else {
            Err(BtfError::BitField { structure: structure.to_owned(), member: path.to_owned() })
        }
    }

    /// Size in bytes of a struct or union.
    ///
    /// # Errors
    /// [`BtfError::NoStruct`].
    pub fn size_of(&self, structure: &str) -> Result<u32, BtfError> {
        let id = self.find(structure, |head| matches!(head.kind, kind::STRUCT | kind::UNION));
        let id = id.ok_or_else(|| BtfError::NoStruct { name: structure.to_owned() })?;
        Ok(self.head(id)?.0.size_or_type)
    }

    /// Types of a function's parameters as C text without qualifiers (`struct rxe_qp *`); `None` when it is not described.
    pub fn parameters(&self, function: &str) -> Option<Vec<String>> {
        let id = self.find(function, |head| head.kind == kind::FUNC)?;
        self.proto_parameters(self.head(id).ok()?.0.size_or_type)
    }

    /// Types of the parameters of a typedef that is a pointer to a function (`btf_trace_*`), as [`Btf::parameters`].
    pub fn callback_parameters(&self, typedef: &str) -> Option<Vec<String>> {
        let id = self.find(typedef, |head| head.kind == kind::TYPEDEF)?;
        let (pointer, _) = self.head(self.peel(id).ok()?).ok()?;
        if pointer.kind == kind::PTR { self.proto_parameters(pointer.size_or_type) } else { None }
    }

    fn proto_parameters(&self, id: u32) -> Option<Vec<String>> {
        let (proto, owner, at) = self.record(id).ok().filter(|(head, _, _)| head.kind == kind::FUNC_PROTO)?;
        let ids = (0..proto.count as usize).map(|index| u32_at(&owner.bytes, at + 12 + 8 * index + 4).ok());
        ids.map(|id| self.type_text(id?, 0)).collect()
    }

    /// Whether a typedef of that name exists.
    pub fn has_typedef(&self, name: &str) -> bool {
        self.find(name, |head| head.kind == kind::TYPEDEF).is_some()
    }

    /// Id of the typedef of that name, which must be one of this BTF's own.
    pub fn typedef_id(&self, name: &str) -> Option<u32> {
        self.find(name, |head| head.kind == kind::TYPEDEF).filter(|id| *id >= self.first_id)
    }

    /// Id of the function of that name, which must be one of this BTF's own.
    pub fn function_id(&self, name: &str) -> Option<u32> {
        self.find(name, |head| head.kind == kind::FUNC).filter(|id| *id >= self.first_id)
    }

    /// First type of that name for which `is_kind` holds, own types first.
    fn find(&self, name: &str, is_kind: impl Fn(&TypeHead) -> bool + Copy) -> Option<u32> {
        self.find_own(name, is_kind).or_else(|| self.base.as_ref()?.find(name, is_kind))
    }

    /// First own type of that name for which `is_kind` holds.
    pub(super) fn find_own(&self, name: &str, is_kind: impl Fn(&TypeHead) -> bool) -> Option<u32> {
        let names = self.names.get_or_init(|| self.hash_names());
        let hash = hash_of(name.as_bytes());
        let from = names.partition_point(|(other, _)| *other < hash);
        let same_hash = names[from..].iter().take_while(|(other, _)| *other == hash);
        let mut indices = same_hash.map(|(_, index)| *index);
        let index = indices.find(|index| {
            let head = head_at(&self.bytes, self.records[*index as usize] as usize);
            head.is_ok_and(|head| is_kind(&head) && self.string(head.name) == Some(name.as_bytes()))
        });
        index.map(|index| self.first_id + index)
    }

    fn hash_names(&self) -> Vec<(u64, u32)> {
        let name = |(index, at): (usize, &u32)| {
            let head = head_at(&self.bytes, *at as usize).ok().filter(|head| head.name != 0)?;
            Some((hash_of(self.string(head.name)?), index as u32))
        };
        let mut names: Vec<_> = self.records.iter().enumerate().filter_map(name).collect();
        names.sort_unstable();
        names
    }

    /// The first id and the first string offset of a BTF that continues this one.
    pub(super) fn next(&self) -> (u32, u32) {
        let strings = (self.sections.strings_end - self.sections.strings) as u32;
        (self.first_id + self.records.len() as u32, self.first_string + strings)
    }

    /// The record of a type: its head, the BTF that holds it, and where.
    pub(super) fn record(&self, id: u32) -> Result<(TypeHead, &Btf, usize), BtfError> {
        match &self.base {
            Some(base) if id < self.first_id => base.record(id),
            _ => {
                let index = id.checked_sub(self.first_id).ok_or(BtfError::NoType { id })?;
                let at = *self.records.get(index as usize).ok_or(BtfError::NoType { id })? as usize;
                Ok((head_at(&self.bytes, at)?, self, at))
            }
        }
    }

    pub(super) fn head(&self, id: u32) -> Result<(TypeHead, usize), BtfError> {
        self.record(id).map(|(head, _, at)| (head, at))
    }

    pub(super) fn string(&self, offset: u32) -> Option<&[u8]> {
        match &self.base {
            Some(base) if offset < self.first_string => base.string(offset),
            _ => {
                let start = self.sections.strings + offset.checked_sub(self.first_string)? as usize;
                let tail = self.bytes.get(start..self.sections.strings_end)?;
                tail.split(|byte| *byte == 0).next()
            }
        }
    }

    /// Offset in bits and type of a member, also inside anonymous members.
    pub(super) fn member(&self, id: u32, name: &str, depth: u32) -> Result<Option<(u32, u32)>, BtfError> {
        if depth > DEPTH_MAX {
            return Err(BtfError::TooDeep { id });
        }
        let (head, owner, at) = self.record(id)?;
        if !matches!(head.kind, kind::STRUCT | kind::UNION) {
            return Ok(None);
        }
        for index in 0..head.count as usize {
            let member = at + 12 + 12 * index;
            let (name_offset, type_id, offset) =
                (u32_at(&owner.bytes, member)?, u32_at(&owner.bytes, member + 4)?, u32_at(&owner.bytes, member + 8)?);
            let bits = if head.flag { offset & 0x00ff_ffff } else { offset };
            match self.string(name_offset) {
                Some(found) if found == name.as_bytes() => return Ok(Some((bits, type_id))),
                Some(b"") => {
                    let inner = self.peel(type_id)?;
                    if let Some((inner_bits, inner_type)) = self.member(inner, name, depth + 1)? {
                        return Ok(Some((bits + inner_bits, inner_type)));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// The type behind typedefs and qualifiers.
    pub(super) fn peel(&self, id: u32) -> Result<u32, BtfError> {
        let mut now = id;
        for _ in 0..DEPTH_MAX {
            if now == 0 {
                return Ok(0);
            }
            let (head, _) = self.head(now)?;
            match head.kind {
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => now = head.size_or_type,
                _ => return Ok(now),
            }
        }
        Err(BtfError::TooDeep { id })
    }

    fn type_text(&self, id: u32, depth: u32) -> Option<String> {
        if id == 0 {
            return Some("void".to_owned());
        }
        let (head, _) = self.head(id).ok()?;
        let name = || String::from_utf8_lossy(self.string(head.name).unwrap_or_default()).into_owned();
        match head.kind {
            _ if depth > DEPTH_MAX => None,
            kind::PTR => Some(format!("{} *", self.type_text(head.size_or_type, depth + 1)?).replace("* *", "**")),
            kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => self.type_text(head.size_or_type, depth + 1),
            kind::STRUCT => Some(format!("struct {}", name())),
            kind::UNION => Some(format!("union {}", name())),
            kind::ENUM | kind::ENUM64 => Some(format!("enum {}", name())),
            kind::FWD => Some(format!("{} {}", if head.flag { "union" } else { "struct" }, name())),
            kind::FUNC_PROTO => Some("function".to_owned()),
            _ => Some(name()),
        }
    }
}

/// Hash of a name; only compared within one process.
fn hash_of(name: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}
