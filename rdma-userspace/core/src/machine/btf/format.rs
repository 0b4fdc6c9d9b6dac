//! The binary layout of BTF (kernel documentation, "BPF Type Format"): header, type records, strings.

use super::BtfError;

/// What a BTF blob begins with.
pub const MAGIC: u16 = 0xeb9f;
/// The version that is understood.
pub const VERSION: u8 = 1;

/// Kinds of type records.
pub mod kind {
    pub const INT: u32 = 1;
    pub const PTR: u32 = 2;
    pub const ARRAY: u32 = 3;
    pub const STRUCT: u32 = 4;
    pub const UNION: u32 = 5;
    pub const ENUM: u32 = 6;
    pub const FWD: u32 = 7;
    pub const TYPEDEF: u32 = 8;
    pub const VOLATILE: u32 = 9;
    pub const CONST: u32 = 10;
    pub const RESTRICT: u32 = 11;
    pub const FUNC: u32 = 12;
    pub const FUNC_PROTO: u32 = 13;
    pub const VAR: u32 = 14;
    pub const DATASEC: u32 = 15;
    pub const FLOAT: u32 = 16;
    pub const DECL_TAG: u32 = 17;
    pub const TYPE_TAG: u32 = 18;
    pub const ENUM64: u32 = 19;
}

/// Where the parts of a BTF blob lie, in bytes from its start.
#[derive(Clone, Copy, Debug)]
pub struct Sections {
    /// Start of the type records.
    pub types: usize,
    /// End of the type records.
    pub types_end: usize,
    /// Start of the strings.
    pub strings: usize,
    /// End of the strings.
    pub strings_end: usize,
}

/// The fixed head of a type record.
#[derive(Clone, Copy, Debug)]
pub struct TypeHead {
    /// Offset of the name in the strings.
    pub name: u32,
    /// A value of [`kind`].
    pub kind: u32,
    /// The kind's flag: members of a struct are bit fields, a forward is a union.
    pub flag: bool,
    /// Number of members, parameters or values that follow.
    pub count: u32,
    /// Size in bytes, or the id of the type that this one refers to.
    pub size_or_type: u32,
}

/// Little-endian `u32` at `at`.
pub fn u32_at(bytes: &[u8], at: usize) -> Result<u32, BtfError> {
    let word = bytes.get(at..at + 4).ok_or(BtfError::Truncated { at })?;
    Ok(u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

/// Reads the header.
pub fn sections(bytes: &[u8]) -> Result<Sections, BtfError> {
    let first = u32_at(bytes, 0)?;
    let (magic, version) = ((first & 0xffff) as u16, (first >> 16) as u8);
    if magic != MAGIC || version != VERSION {
        return Err(BtfError::NotBtf { magic, version });
    }
    let header = u32_at(bytes, 4)? as usize;
    let word = |at| u32_at(bytes, at).map(|word| word as usize);
    let (types, types_len, strings, strings_len) = (word(8)?, word(12)?, word(16)?, word(20)?);
    let sections = Sections {
        types: header + types,
        types_end: header + types + types_len,
        strings: header + strings,
        strings_end: header + strings + strings_len,
    };
    let end = sections.types_end.max(sections.strings_end);
    if end > bytes.len() { Err(BtfError::Truncated { at: end }) } else { Ok(sections) }
}

/// The head of the record at `at`.
pub fn head_at(bytes: &[u8], at: usize) -> Result<TypeHead, BtfError> {
    let (name, info, size_or_type) = (u32_at(bytes, at)?, u32_at(bytes, at + 4)?, u32_at(bytes, at + 8)?);
    Ok(TypeHead { name, kind: (info >> 24) & 0x1f, flag: info >> 31 == 1, count: info & 0xffff, size_or_type })
}

/// Bytes of a whole record, its head included.
pub fn record_len(head: &TypeHead, at: usize) -> Result<usize, BtfError> {
    let count = head.count as usize;
    let tail = match head.kind {
        kind::INT | kind::VAR | kind::DECL_TAG => 4,
        kind::ARRAY => 12,
        kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => 12 * count,
        kind::ENUM | kind::FUNC_PROTO => 8 * count,
        kind::PTR
        | kind::FWD
        | kind::TYPEDEF
        | kind::VOLATILE
        | kind::CONST
        | kind::RESTRICT
        | kind::FUNC
        | kind::FLOAT
        | kind::TYPE_TAG => 0,
        unknown => return Err(BtfError::UnknownKind { kind: unknown, at }),
    };
    Ok(12 + tail)
}
