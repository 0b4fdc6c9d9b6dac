//! The page as text. The numbers and words are finished; here they only get their place and colour.
use super::Options;
use super::finding::{Finding, Findings, Severity};
use crate::machine::{RdmaDevice, RdmaPort};
use capture::text::units::counted;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

/// Width of the text, in characters.
const WIDTH: usize = 110;
/// Where effects and commands begin.
const INDENT: usize = 10;

/// Colour is wanted: standard output is a terminal, and the user has not set `NO_COLOR`.
pub fn colour_wanted() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Text of the machine without control characters, so that no file can write to the terminal by itself.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl Findings {
    /// The page as text; `colour` for a terminal.
    pub fn text(&self, colour: bool) -> String {
        render(self, colour)
    }

    /// Writes the page as the options say: JSON, or text, in colour on a terminal.
    ///
    /// # Errors
    /// The writer's.
    pub fn print(&self, options: &Options, colour: bool, out: &mut dyn Write) -> io::Result<()> {
        if options.json {
            serde_json::to_writer_pretty(&mut *out, self)?;
            writeln!(out)
        } else {
            out.write_all(self.text(colour).as_bytes())
        }
    }
}

/// The whole page.
fn render(findings: &Findings, colour: bool) -> String {
    let mut page = Page { text: String::new(), colour };
    page.head(findings);
    findings.devices.iter().for_each(|device| page.device(device));
    let mut area = "";
    for finding in &findings.findings {
        if finding.area != area {
            area = finding.area;
            page.title(area);
        }
        page.finding(finding);
    }
    for section in &findings.sections {
        page.title(&section.title);
        section.lines.iter().for_each(|line| page.line(&format!("  {}", plain(line))));
    }
    page.summary(findings);
    page.text
}

struct Page {
    text: String,
    colour: bool,
}

impl Page {
    fn line(&mut self, line: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{}", line.trim_end());
    }

    fn paint(&self, text: &str, code: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn title(&mut self, title: &str) {
        let title = self.paint(&plain(title), "1");
        self.line("");
        self.line(&title);
    }

    fn head(&mut self, findings: &Findings) {
        let host = &findings.host;
        let virtualised = host.hypervisor.as_ref().map(|name| format!(", on {name}")).unwrap_or_default();
        let emulated = if host.emulated { " (emulated)" } else { "" };
        let memory_mib = host.memory_bytes >> 20;
        let line = format!(
            "rdmascope {} doctor: kernel {}, {}, {memory_mib} MiB{virtualised}{emulated}. Nothing is changed.",
            findings.tool_version,
            host.kernel,
            counted(host.cpus.into(), "CPU")
        );
        self.line(&plain(&line));
    }

    fn device(&mut self, device: &RdmaDevice) {
        let driver = device.driver.as_deref().unwrap_or("driver not told");
        let firmware = device.firmware.as_ref().map(|version| format!(", firmware {version}")).unwrap_or_default();
        self.title(&format!("{} ({driver}{firmware})", device.name));
        device.ports.iter().for_each(|port| self.port(port));
    }

    fn port(&mut self, port: &RdmaPort) {
        self.line(&plain(&format!("  port {}: {}, {}, {}, {}", port.number, port.state, port.physical_state, port.link_layer, port.rate)));
        if port.gids.is_empty() {
            self.line("    no GID");
            return;
        }
        self.line(&format!("    {:>5}  {:>5}  {:<8} {:<12} {:<40} {}", "index", "score", "type", "scope", "GID", "interface"));
        let best = port.best_gid().map(|gid| gid.index);
        for gid in &port.gids {
            let netdev = gid.netdev.as_deref().unwrap_or("not told");
            let mark = if best == Some(gid.index) { "*" } else { " " };
            // Without a score a run takes it by its index only.
            let score = gid.score().map_or("-".to_owned(), |score| score.points.to_string());
            let (kind, scope, value) = (gid.kind, gid.scope(), gid.gid.to_string());
            let line = format!("  {mark} {:>5}  {score:>5}  {kind:<8} {scope:<12} {value:<40} {netdev}", gid.index);
            self.line(&plain(&line));
        }
    }

    fn finding(&mut self, finding: &Finding) {
        let (word, code) = match finding.severity {
            Severity::Ok => ("ok", "32"),
            Severity::Note => ("note", "36"),
            Severity::Warn => ("warn", "33"),
            Severity::Problem => ("PROBLEM", "1;31"),
        };
        let word = self.paint(&format!("{word:<7}"), code);
        let mut lines = wrap(&plain(&finding.found), WIDTH - INDENT).into_iter();
        let first = lines.next().unwrap_or_default();
        self.line(&format!("  {word} {first}"));
        lines.for_each(|line| self.line(&format!("{:INDENT$}{line}", "")));
        if let Some(effect) = &finding.effect {
            wrap(&format!("→ {}", plain(effect)), WIDTH - INDENT).iter().for_each(|line| self.line(&format!("{:INDENT$}{line}", "")));
        }
        if let Some(command) = &finding.command {
            // A command is never wrapped: it must survive copy and paste.
            let line = self.paint(&format!("$ {}", plain(command)), "2");
            self.line(&format!("{:INDENT$}{line}", ""));
        }
    }

    fn summary(&mut self, findings: &Findings) {
        let count = |severity, one: &str| {
            let count = findings.count(severity);
            format!("{count} {one}{}", if count == 1 { "" } else { "s" })
        };
        let counts =
            format!("{}, {}, {}", count(Severity::Problem, "problem"), count(Severity::Warn, "warning"), count(Severity::Note, "note"));
        let verdict = if findings.exit_code() == 0 { "A measurement is possible" } else { "No measurement is possible" };
        self.line("");
        self.line(&format!("{verdict}: {counts}."));
    }
}

/// Breaks a text at spaces into lines of at most `width` characters (a longer word stays whole).
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_keeps_all_words() {
        let text = "one two three four averyveryverylongword five";
        let lines = wrap(text, 10);
        assert_eq!(lines.join(" "), text);
        assert!(lines.iter().all(|line| line.chars().count() <= 10 || !line.contains(' ')), "{lines:?}");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(plain("a\x1b[31mb\n"), "a [31mb ");
    }
}
