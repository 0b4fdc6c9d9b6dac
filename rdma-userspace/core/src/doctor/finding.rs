//! A finding, and all of them with the facts that they are about.
use crate::machine::RdmaDevice;
use capture::manifest::Host;
use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// As it should be.
    Ok,
    /// Good to know when reading figures.
    Note,
    /// It changes the figures, or takes a part of them away.
    Warn,
    /// No measurement is possible.
    Problem,
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Title of its area.
    pub area: &'static str,
    /// A key that does not change, such as `cpu.governor`.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What was found, with value and unit.
    pub found: String,
    /// What it does to a measurement; `None` when nothing.
    pub effect: Option<String>,
    /// The command that changes it; `None` when there is none, or nothing to change.
    pub command: Option<String>,
}

impl Finding {
    /// A finding with neither effect nor command.
    pub(super) fn new(id: &'static str, severity: Severity, found: impl Into<String>) -> Self {
        Self { area: "", id, severity, found: found.into(), effect: None, command: None }
    }

    /// As it should be.
    pub(super) fn ok(id: &'static str, found: impl Into<String>) -> Self {
        Self::new(id, Severity::Ok, found)
    }

    /// Good to know.
    pub(super) fn note(id: &'static str, found: impl Into<String>) -> Self {
        Self::new(id, Severity::Note, found)
    }

    /// It changes the figures.
    pub(super) fn warn(id: &'static str, found: impl Into<String>) -> Self {
        Self::new(id, Severity::Warn, found)
    }

    /// With what it does to a measurement.
    pub(super) fn effect(self, effect: impl Into<String>) -> Self {
        Self { effect: Some(effect.into()), ..self }
    }

    /// With the command that changes it.
    pub(super) fn command(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..self }
    }
}

/// A part of the page that another module fills, such as the probe plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Section {
    /// Its title.
    pub title: String,
    /// Its lines.
    pub lines: Vec<String>,
}

/// All that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Findings {
    /// Version of the tool.
    pub tool_version: &'static str,
    /// The machine.
    pub host: Host,
    /// The RDMA devices that were looked at.
    pub devices: Vec<RdmaDevice>,
    /// The findings, area by area.
    pub findings: Vec<Finding>,
    /// Further parts.
    pub sections: Vec<Section>,
}

impl Findings {
    /// Adds a part to the page; this is where the probe plan goes.
    pub fn add_section(&mut self, title: impl Into<String>, lines: Vec<String>) {
        self.sections.push(Section { title: title.into(), lines });
    }

    /// Findings of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Exit code of the program: 1 when no measurement is possible, else 0.
    pub fn exit_code(&self) -> u8 {
        u8::from(self.count(Severity::Problem) > 0)
    }
}
