//! The table of rooms in docs/architecture.md: which rooms there are, and which others each may use. That table is the
//! only copy; it stands between two marker lines, in as many parts as reading asks for:
//!
//! ```text
//! | room | what is in it | may use |
//! |---|---|---|
//! | `analysis/src/show/` | charts, HTML, text | `report`, `stages` |
//! | `analysis/src/report/` | the finished numbers | `capture` |
//! | `analysis/capture/` | the format on disk | nothing |
//! ```
//!
//! The first cell names a room: a top-level module by its folder or file, or a whole package by its folder. The last cell
//! says `nothing`, or names rooms by the end of their path as far as that is unambiguous, or all rooms of a folder
//! (`analysis/*`). A room may only use rooms that stand below it, so that arrows go down and the table can hold no circle.

use std::collections::HashSet;

/// The page with the table.
pub const PAGE: &str = "docs/architecture.md";
const START: &str = "<!-- rooms: checked by cargo xtask tidy -->";
const END: &str = "<!-- end of rooms -->";

/// The rooms, from the top to the bottom.
#[derive(Debug, Default)]
pub struct Table {
    pub rooms: Vec<Room>,
}

/// A row of the table.
#[derive(Debug)]
pub struct Room {
    /// Its folder, or its file without `.rs`, relative to the root of the tree.
    pub path: String,
    /// Line of the page.
    pub line: usize,
    pub may_use: Vec<Allowed>,
}

/// One entry of a room's last cell.
#[derive(Debug)]
pub struct Allowed {
    /// As it is written.
    pub text: String,
    /// The rooms that it means.
    pub rooms: Vec<usize>,
}

impl Table {
    /// Reads the page. The table has what could be read; the findings say what could not.
    pub fn read(page: &str) -> (Self, Vec<String>) {
        let mut findings = Vec::new();
        let rows = rows(page, &mut findings);
        let mut table = Self { rooms: Vec::new() };
        let mut seen = HashSet::new();
        for row in &rows {
            if !seen.insert(row.room.clone()) {
                findings.push(format!("{PAGE}:{}: {} is a second row of this room", row.line, row.room));
            }
            table.rooms.push(Room { path: row.room.clone(), line: row.line, may_use: Vec::new() });
        }
        for (index, row) in rows.iter().enumerate() {
            for text in &row.may_use {
                match table.meant(text) {
                    Ok(rooms) => {
                        let above = rooms.iter().find(|room| **room <= index);
                        if let Some(above) = above {
                            let (from, to) = (&row.room, &table.rooms[*above].path);
                            findings.push(format!("{PAGE}:{}: {from} may use {to}, which does not stand below it", row.line));
                        }
                        table.rooms[index].may_use.push(Allowed { text: text.clone(), rooms });
                    }
                    Err(problem) => findings.push(format!("{PAGE}:{}: {problem}", row.line)),
                }
            }
        }
        (table, findings)
    }

    /// The room of a file, when one of the table has it. `package` is the folder of the package that the file belongs to:
    /// a package around it has no say.
    pub fn room_of(&self, file: &str, package: &str) -> Option<usize> {
        let has = |room: &Room| {
            let is_inside = file.strip_prefix(&room.path).is_some_and(|rest| rest.starts_with('/') || rest == ".rs");
            let is_of_package = room.path.strip_prefix(package).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            is_inside && is_of_package
        };
        let rooms = self.rooms.iter().enumerate().filter(|(_, room)| has(room));
        rooms.max_by_key(|(_, room)| room.path.len()).map(|(index, _)| index)
    }

    /// The shortest text that means this room in a last cell.
    pub fn short(&self, room: usize) -> &str {
        let path = &self.rooms[room].path;
        let starts = path.rmatch_indices('/').map(|(slash, _)| &path[slash + 1..]);
        starts.into_iter().find(|text| self.meant(text) == Ok(vec![room])).unwrap_or(path)
    }

    /// The rooms that an entry of a last cell means.
    fn meant(&self, text: &str) -> Result<Vec<usize>, String> {
        let matching = |is: &dyn Fn(&str) -> bool| {
            let rooms = self.rooms.iter().enumerate().filter(|(_, room)| is(&room.path));
            rooms.map(|(index, _)| index).collect::<Vec<_>>()
        };
        if let Some(folder) = text.strip_suffix('*') {
            let rooms = matching(&|path| folder.ends_with('/') && path.starts_with(folder));
            return if rooms.is_empty() { Err(format!("no room is in `{text}`")) } else { Ok(rooms) };
        }
        let exact = matching(&|path| path == text);
        if !exact.is_empty() {
            return Ok(exact);
        }
        let rooms = matching(&|path| path.strip_suffix(text).is_some_and(|before| before.ends_with('/')));
        match rooms.len() {
            0 => Err(format!("no room is called `{text}`")),
            1 => Ok(rooms),
            _ => {
                let names: Vec<&str> = rooms.iter().map(|room| self.rooms[*room].path.as_str()).collect();
                Err(format!("`{text}` may mean {}", names.join(" or ")))
            }
        }
    }
}

struct Row {
    line: usize,
    room: String,
    may_use: Vec<String>,
}

/// The rows of all parts of the table; a line between the markers that cannot be understood is a finding.
fn rows(page: &str, findings: &mut Vec<String>) -> Vec<Row> {
    let lines = || page.lines().enumerate();
    let start = lines().find(|(_, line)| *line == START).map(|(index, _)| index);
    let end = lines().find(|(_, line)| *line == END).map(|(index, _)| index);
    let (Some(start), Some(end)) = (start, end) else {
        findings.push(format!("{PAGE}: no table of rooms between the lines `{START}` and `{END}`"));
        return Vec::new();
    };
    let mut rows = Vec::new();
    // How many cells the rows have, after the head of a part.
    let mut width = None;
    let mut is_head = false;
    for (index, line) in lines().take(end).skip(start + 1) {
        let mut find = |what: &str| findings.push(format!("{PAGE}:{}: {what}: {line}", index + 1));
        let cells = cells(line);
        if line.is_empty() || line.starts_with('#') {
            width = None;
            continue;
        }
        match (cells, width) {
            (None, _) => find("neither a row, nor a heading, nor empty"),
            (Some(cells), None) => {
                if cells.first() != Some(&"room") || cells.last() != Some(&"may use") || cells.len() < 2 {
                    find("the first column is not `room` or the last not `may use`");
                }
                width = Some(cells.len());
                is_head = true;
            }
            (Some(cells), Some(width)) if is_head => {
                is_head = false;
                if cells.len() != width || !cells.iter().all(|cell| cell.len() >= 3 && cell.chars().all(|c| c == '-')) {
                    find("not the line of dashes below a head");
                }
            }
            (Some(cells), Some(width)) => match row(&cells, index + 1).filter(|_| cells.len() == width) {
                Some(row) => rows.push(row),
                None => find("not a row of a room in backticks and what it may use, or `nothing`"),
            },
        }
    }
    rows
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inside = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(inside.split('|').map(str::trim).collect())
}

fn row(cells: &[&str], line: usize) -> Option<Row> {
    let (first, last) = (cells.first()?, cells.last()?);
    let room = quoted(first)?;
    let room = room.strip_suffix('/').or_else(|| room.strip_suffix(".rs")).unwrap_or(room);
    let may_use = match *last {
        "nothing" => Vec::new(),
        list => list.split(", ").map(|entry| quoted(entry).map(str::to_owned)).collect::<Option<_>>()?,
    };
    Some(Row { line, room: room.to_owned(), may_use })
}

/// The text between backticks.
fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('`')?.strip_suffix('`').filter(|inside| !inside.is_empty() && !inside.contains(['`', ' ']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(table: &str) -> String {
        format!("# Where things are\n\n{START}\n{table}\n{END}\n\nMore.\n")
    }

    const GOOD: &str = "## Runner

| room | may use |
|-----|-----|
| `rdma-userspace/src/trace/` | `analysis/*` |

## analysis

| room | what is in it | may use |
|---|---|---|
| `analysis/src/show/` | prints | `report`, `analysis/src/trace`, `capture` |
| `analysis/src/report/` | numbers | `analysis/src/trace` |
| `analysis/src/trace.rs` | | nothing |
| `analysis/capture/` | the format | nothing |";

    #[test]
    fn a_good_table_is_read() {
        let (table, findings) = Table::read(&page(GOOD));
        assert_eq!(findings, Vec::<String>::new());
        let meant = |room: &Room| room.may_use.iter().map(|one| one.rooms.clone()).collect::<Vec<_>>();
        let read: Vec<_> = table.rooms.iter().map(|room| (room.path.as_str(), meant(room))).collect();
        let expected = [
            ("rdma-userspace/src/trace", vec![vec![1, 2, 3, 4]]),
            ("analysis/src/show", vec![vec![2], vec![3], vec![4]]),
            ("analysis/src/report", vec![vec![3]]),
            ("analysis/src/trace", vec![]),
            ("analysis/capture", vec![]),
        ];
        assert_eq!(read, expected);
        assert_eq!(
            (0..5).map(|room| table.short(room)).collect::<Vec<_>>(),
            ["rdma-userspace/src/trace", "show", "report", "analysis/src/trace", "capture"]
        );
    }

    #[test]
    fn files_are_found_in_their_rooms() {
        let (table, _) = Table::read(&page(GOOD));
        assert_eq!(table.room_of("analysis/src/show/html/mod.rs", "analysis"), Some(1));
        assert_eq!(table.room_of("analysis/src/trace.rs", "analysis"), Some(3));
        assert_eq!(table.room_of("analysis/src/trace/join.rs", "analysis"), Some(3));
        assert_eq!(table.room_of("analysis/src/tracer.rs", "analysis"), None);
        assert_eq!(table.room_of("analysis/src/lib.rs", "analysis"), None);
        assert_eq!(table.room_of("analysis/capture/src/lib.rs", "analysis/capture"), Some(4));
        // A package inside a room of another is not of that room.
        assert_eq!(table.room_of("analysis/capture/deep/src/lib.rs", "analysis/capture/deep"), None);
    }

    #[test]
    fn what_cannot_be_understood_is_found() {
        let spoiled = [
            ("| `analysis/capture/` | the format | nothing |", "| `analysis/capture/` | the format |", "not a row of a room"),
            ("| `analysis/capture/` | the format | nothing |", "`analysis/capture/` | the format | nothing |", "neither a row"),
            ("| nothing |", "| |", "not a row of a room"),
            ("`report`, ", "report, ", "not a row of a room"),
            ("`report`, ", "`report` ", "not a row of a room"),
            ("|---|---|---|", "|---|---|", "not the line of dashes"),
            ("| room | may use |", "| rooms | may use |", "the first column is not `room`"),
            ("## analysis\n", "Rooms of analysis:\n", "neither a row"),
            ("`report`, ", "`reports`, ", "no room is called `reports`"),
            ("`report`, ", "`trace`, ", "`trace` may mean rdma-userspace/src/trace or analysis/src/trace"),
            ("`analysis/*`", "`core/*`", "no room is in `core/*`"),
            ("`analysis/src/report/` |", "`analysis/src/show/` |", "is a second row of this room"),
            (START, "", "no table of rooms"),
            (END, "", "no table of rooms"),
        ];
        for (good, bad, finding) in spoiled {
            let text = page(GOOD).replace(good, bad);
            let (_, findings) = Table::read(&text);
            assert!(findings.iter().any(|found| found.contains(finding)), "{bad}: {findings:?}");
        }
    }

    #[test]
    fn an_arrow_goes_down() {
        let upward = page(GOOD).replace("| the format | nothing |", "| the format | `show` |");
        let (_, findings) = Table::read(&upward);
        assert_eq!(findings, [format!("{PAGE}:17: analysis/capture may use analysis/src/show, which does not stand below it")]);
    }
}
