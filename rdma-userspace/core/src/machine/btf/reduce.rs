//! A small part of a kernel's BTF: only the members and functions that are asked for, with the same answers for them.
//!
//! The types that parameters name are kept by name alone, and a structure keeps nothing but the members on the way.

use super::format::{kind, u32_at};
use super::write::Builder;
use super::{Btf, BtfError};

/// What to keep.
#[derive(Clone, Debug, Default)]
pub struct Keep {
    /// Structures and dotted paths of members.
    pub members: Vec<(&'static str, &'static str)>,
    /// Functions.
    pub functions: Vec<&'static str>,
    /// Typedefs of pointers to functions (`btf_trace_*`).
    pub callbacks: Vec<String>,
}

/// The reduced data of `btf`'s own types, to be read with `base` (itself reduced) as its base.
///
/// # Errors
/// [`BtfError`] when `btf` contradicts itself.
pub fn reduce(btf: &Btf, keep: &Keep, base: Option<&Btf>) -> Result<Vec<u8>, BtfError> {
    let mut reducer = Reducer { from: btf, to: base.map_or_else(Builder::new, Builder::on) };
    let mut structures: Vec<&str> = keep.members.iter().map(|(structure, _)| *structure).collect();
    structures.sort_unstable();
    structures.dedup();
    for structure in structures {
        if let Some(id) = btf.find_own(structure, |head| matches!(head.kind, kind::STRUCT | kind::UNION)) {
            let paths: Vec<&str> = keep.members.iter().filter(|(name, _)| *name == structure).map(|(_, path)| *path).collect();
            reducer.structure(id, &paths)?;
        }
    }
    for function in &keep.functions {
        if let Some(id) = btf.find_own(function, |head| head.kind == kind::FUNC) {
            let parameters = reducer.parameters(btf.head(id)?.0.size_or_type)?;
            reducer.to.function(function, &parameters);
        }
    }
    for callback in &keep.callbacks {
        if let Some(id) = btf.find_own(callback, |head| head.kind == kind::TYPEDEF) {
            reducer.callback(callback, id)?;
        }
    }
    Ok(reducer.to.build())
}

struct Reducer<'a> {
    from: &'a Btf,
    to: Builder,
}

impl Reducer<'_> {
    /// The structure with the members on these paths; those that it does not have are left out.
    fn structure(&mut self, id: u32, paths: &[&str]) -> Result<u32, BtfError> {
        let mut firsts: Vec<&str> = paths.iter().map(|path| path.split('.').next().unwrap_or(path)).collect();
        firsts.sort_unstable();
        firsts.dedup();
        let mut members = Vec::new();
        for first in firsts {
            let Some((bits, member_id)) = self.from.member(id, first, 0)? else { continue };
            let rests: Vec<&str> = paths.iter().filter_map(|path| path.strip_prefix(first)?.strip_prefix('.')).collect();
            let member_id = self.from.peel(member_id)?;
            let kept = if rests.is_empty() { self.by_name(member_id)? } else { self.structure(member_id, &rests)? };
            members.push((first, kept, bits));
        }
        let (head, _) = self.from.head(id)?;
        let name = self.name(head.name);
        Ok(self.to.structure(&name, head.kind, head.size_or_type, false, &members))
    }

    /// A type that is told from others by its name alone.
    fn by_name(&mut self, id: u32) -> Result<u32, BtfError> {
        if id == 0 {
            return Ok(0);
        }
        let (head, _) = self.from.head(id)?;
        let name = self.name(head.name);
        Ok(match head.kind {
            kind::PTR => {
                let target = self.by_name(head.size_or_type)?;
                self.to.add("", kind::PTR, false, 0, target, &[])
            }
            kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => self.by_name(head.size_or_type)?,
            kind::STRUCT => self.to.add(&name, kind::FWD, false, 0, 0, &[]),
            kind::UNION => self.to.add(&name, kind::FWD, true, 0, 0, &[]),
            kind::FWD => self.to.add(&name, kind::FWD, head.flag, 0, 0, &[]),
            kind::ENUM | kind::ENUM64 => self.to.add(&name, kind::ENUM, false, 0, 4, &[]),
            kind::TYPEDEF => self.to.add(&name, kind::TYPEDEF, false, 0, 0, &[]),
            kind::FUNC_PROTO => self.to.add("", kind::FUNC_PROTO, false, 0, 0, &[]),
            _ => self.to.add(&name, kind::INT, false, 0, 4, &[32]),
        })
    }

    /// The parameters' types of a prototype.
    fn parameters(&mut self, proto_id: u32) -> Result<Vec<u32>, BtfError> {
        let (proto, owner, at) = self.from.record(proto_id)?;
        let ids: Result<Vec<u32>, BtfError> =
            (0..proto.count as usize).map(|index| u32_at(&owner.bytes, at + 12 + 8 * index + 4)).collect();
        ids?.into_iter().map(|id| self.by_name(id)).collect()
    }

    fn callback(&mut self, name: &str, id: u32) -> Result<(), BtfError> {
        let (pointer, _) = self.from.head(self.from.peel(id)?)?;
        let parameters = self.parameters(pointer.size_or_type)?;
        let tail: Vec<u32> = parameters.iter().flat_map(|id| [0, *id]).collect();
        let proto = self.to.add("", kind::FUNC_PROTO, false, parameters.len() as u32, 0, &tail);
        let pointer = self.to.add("", kind::PTR, false, 0, proto, &[]);
        self.to.add(name, kind::TYPEDEF, false, 0, pointer, &[]);
        Ok(())
    }

    fn name(&self, offset: u32) -> String {
        String::from_utf8_lossy(self.from.string(offset).unwrap_or_default()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::btf::test_support::{kernel_btf, rxe_btf};
    use std::sync::Arc;

    #[test]
    fn the_part_gives_the_same_answers() {
        let keep = Keep {
            members: vec![
                ("task_struct", "pid"),
                ("ib_qp", "qp_num"),
                ("rxe_pkt_info", "wqe"),
                ("rxe_qp", "ibqp.qp_num"),
                ("rxe_qp", "none"),
            ],
            functions: vec!["rxe_comp_queue_pkt"],
            callbacks: Vec::new(),
        };
        let kernel = Arc::new(kernel_btf());
        let module = rxe_btf(Some(kernel.clone()));
        let small_kernel = Arc::new(Btf::parse(reduce(&kernel, &keep, None).expect("reduces"), None).expect("parses"));
        let small = reduce(&module, &keep, Some(&small_kernel)).expect("reduces");
        let small = Btf::parse(small, Some(small_kernel)).expect("parses");
        for (structure, path) in [("task_struct", "pid"), ("ib_qp", "qp_num"), ("rxe_pkt_info", "wqe"), ("rxe_qp", "ibqp.qp_num")] {
            assert_eq!(small.member_offset(structure, path), module.member_offset(structure, path), "{structure}.{path}");
        }
        assert!(small.member_offset("task_struct", "tgid").is_err(), "not asked for");
        assert_eq!(small.size_of("rxe_qp"), module.size_of("rxe_qp"));
        assert_eq!(small.parameters("rxe_comp_queue_pkt"), module.parameters("rxe_comp_queue_pkt"));
        assert_eq!(small.parameters("rxe_resp_queue_pkt"), None);
    }
}
