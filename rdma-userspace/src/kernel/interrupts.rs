//! `/proc/interrupts`: numbers, names and counts by CPU.

use std::path::Path;

/// One interrupt line that has a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Linux interrupt number.
    pub number: u32,
    /// Times handled, by column of the table's head (online CPUs in order).
    pub counts: Vec<u64>,
    /// The rest of the line: chip, hardware number, names of the handlers.
    pub description: String,
}

/// Reads the table below `root`; lines without a number (`NMI`, `LOC`) are left out.
///
/// # Errors
/// What the system said when the file could not be read.
pub fn read(root: &Path) -> std::io::Result<Vec<Interrupt>> {
    Ok(parse(&std::fs::read_to_string(root.join("proc/interrupts"))?))
}

/// Parses the table.
pub fn parse(text: &str) -> Vec<Interrupt> {
    let mut lines = text.lines();
    let cpus = lines.next().map_or(0, |head| head.split_whitespace().count());
    lines.filter_map(|line| parse_line(line, cpus)).collect()
}

fn parse_line(line: &str, cpus: usize) -> Option<Interrupt> {
    let (number, rest) = line.split_once(':')?;
    let number = number.trim().parse().ok()?;
    let mut rest = rest.trim_start();
    let mut counts = Vec::with_capacity(cpus);
    while counts.len() < cpus {
        let (word, tail) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let Ok(count) = word.parse() else { break };
        counts.push(count);
        rest = tail.trim_start();
    }
    Some(Interrupt { number, counts, description: rest.split_whitespace().collect::<Vec<_>>().join(" ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_lines_are_read() {
        let text = "           CPU0       CPU1\n  0:         23          0   IO-APIC   2-edge      timer\n 27:      \
                    100         7   PCI-MSI 81920-edge      virtio0-input.0\nLOC:  5  6   Local timer interrupts\n";
        let table = parse(text);
        assert_eq!(table.len(), 2);
        assert_eq!((table[1].number, table[1].counts.as_slice()), (27, [100, 7].as_slice()));
        assert_eq!(table[1].description, "PCI-MSI 81920-edge virtio0-input.0");
    }
}
