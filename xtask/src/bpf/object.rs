//! The BPF object as a file: what must be in it, and what is taken out of it.

use anyhow::{Context, Result, bail};
use object::build::elf::{Builder, SectionData};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind, elf};
use std::collections::BTreeMap;

/// The object without what no loader reads: the DWARF sections, which the linker needs to make `.BTF` and which are five sixths
/// of what it writes, and the relocations of `.BTF` and `.BTF.ext`, which only a further link would apply. Code, maps,
/// symbols, the code's relocations, `.BTF` and `.BTF.ext` with the programs' source lines are kept byte for byte.
pub fn stripped(object: &[u8]) -> Result<Vec<u8>> {
    let mut builder = Builder::read(object).context("reading the BPF object")?;
    for section in &mut builder.sections {
        let name = String::from_utf8_lossy(&section.name);
        let target = name.strip_prefix(".rel").unwrap_or_default();
        section.delete = is_dwarf(&name) || is_dwarf(target) || matches!(target, ".BTF" | ".BTF.ext");
    }
    builder.delete_orphans();
    // LLVM has one table for the names of symbols and of sections; the builder writes two.
    if !builder.sections.iter().any(|section| matches!(section.data, SectionData::SectionString)) {
        let names = builder.sections.add();
        (names.name, names.sh_type, names.sh_addralign) = (".shstrtab".into(), elf::SHT_STRTAB, 1);
        names.data = SectionData::SectionString;
    }
    let mut out = Vec::new();
    builder.write(&mut out).context("writing the BPF object")?;
    Ok(out)
}

fn is_dwarf(section: &str) -> bool {
    section.starts_with(".debug_")
}

/// Checks that an object is for BPF and has type information, a licence and programs, and nothing that only a debugger reads;
/// returns the list of its programs.
pub fn check(object: &[u8]) -> Result<String> {
    let file = object::File::parse(object).context("reading the BPF object")?;
    if file.architecture() != object::Architecture::Bpf {
        bail!("the object is for {:?}, not for BPF", file.architecture());
    }
    for (needed, why) in [(".BTF", "the kernel refuses maps and typed programs without it"), ("license", "most helpers need it")] {
        let size = file.section_by_name(needed).map_or(0, |section| section.size());
        if size == 0 {
            bail!("the object has no {needed} section ({why})");
        }
    }
    if let Some(name) = file.sections().filter_map(|section| section.name().ok()).find(|name| is_dwarf(name)) {
        bail!("the object still has its {name} section");
    }
    let mut programs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for symbol in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_global()) {
        let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
        let Some(section) = section.and_then(|section| section.name().ok().map(str::to_owned)) else {
            continue;
        };
        if section != ".text" {
            programs.entry(section).or_default().push(symbol.name()?.to_owned());
        }
    }
    if programs.is_empty() {
        bail!("the object holds no program");
    }
    let count: usize = programs.values().map(Vec::len).sum();
    let mut summary = format!("{count} programs in {} sections, {} bytes\n", programs.len(), object.len());
    for (section, names) in programs {
        summary.push_str(&format!("  {section}: {}\n", names.join(", ")));
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::record::Place;
    use object::build::elf::Relocation;
    use std::fs;

    fn committed() -> Vec<u8> {
        fs::read(Place::committed().object()).unwrap()
    }

    /// The object with sections as the linker leaves them, which only a debugger and a further link read.
    fn with_debug_sections(object: &[u8]) -> Vec<u8> {
        let mut builder = Builder::read(object).unwrap();
        let symbols = builder.sections.iter().find(|section| matches!(section.data, SectionData::Symbol)).unwrap().id();
        let types = builder.sections.iter().find(|section| section.name == b".BTF.ext"[..].into()).unwrap().id();
        let debug = builder.sections.add();
        (debug.name, debug.sh_type, debug.sh_addralign) = (".debug_info".into(), elf::SHT_PROGBITS, 1);
        debug.data = SectionData::Data(vec![1; 1 << 20].into());
        let debug = debug.id();
        let symbol = builder.symbols.add();
        (symbol.section, symbol.st_shndx) = (Some(debug), elf::SHN_XINDEX);
        symbol.set_st_info(elf::STB_LOCAL, elf::STT_SECTION);
        let symbol = symbol.id();
        for (name, target) in [(".rel.debug_info", debug), (".rel.BTF.ext", types)] {
            let section = builder.sections.add();
            (section.name, section.sh_type, section.sh_addralign, section.sh_entsize) = (name.into(), elf::SHT_REL, 8, 16);
            (section.sh_link_section, section.sh_info_section) = (Some(symbols), Some(target));
            section.data =
                SectionData::Relocation(vec![Relocation { r_offset: 8, symbol: Some(symbol), r_type: elf::R_BPF_64_64, r_addend: 0 }]);
        }
        let mut out = Vec::new();
        builder.write(&mut out).unwrap();
        out
    }

    fn names(object: &[u8]) -> Vec<String> {
        let file = object::File::parse(object).unwrap();
        file.sections().filter_map(|section| section.name().ok().map(str::to_owned)).filter(|name| !name.is_empty()).collect()
    }

    #[test]
    fn an_object_for_another_machine_is_refused() {
        let itself = fs::read(std::env::current_exe().unwrap()).unwrap();
        let error = check(&itself).unwrap_err().to_string();
        assert!(error.contains("not for BPF"), "{error}");
        assert!(check(b"not an object").is_err());
    }

    #[test]
    fn what_no_loader_reads_is_taken_out_and_all_else_stays() {
        let committed = committed();
        let whole = with_debug_sections(&committed);
        assert!(names(&whole).ends_with(&[".debug_info", ".rel.debug_info", ".rel.BTF.ext"].map(str::to_owned)), "{:?}", names(&whole));
        assert!(check(&whole).unwrap_err().to_string().contains(".debug_info"));
        let after = stripped(&whole).unwrap();
        assert_eq!(names(&after), names(&committed));
        let (after, before) = (object::File::parse(&*after).unwrap(), object::File::parse(&*committed).unwrap());
        for (section, as_before) in after.sections().zip(before.sections()) {
            let relocations = |section: &object::Section<'_, '_>| section.relocations().map(|it| format!("{it:?}")).collect::<Vec<_>>();
            assert_eq!(section.data().unwrap(), as_before.data().unwrap(), "{:?}", section.name());
            assert_eq!(relocations(&section), relocations(&as_before), "{:?}", section.name());
        }
        let symbols =
            |file: &object::File<'_>| file.symbols().map(|it| (it.name().unwrap().to_owned(), it.address(), it.size())).collect::<Vec<_>>();
        assert_eq!(symbols(&after), symbols(&before));
    }

    #[test]
    fn the_committed_object_is_whole_and_small() {
        let object = committed();
        check(&object).unwrap();
        assert!(object.len() < 256 << 10, "{} bytes", object.len());
        assert_eq!(stripped(&object).unwrap(), object);
    }
}
