//! Makes the pictures of a report: each as an SVG and a PNG file, and as inline SVG for the page.
use super::ReportError;
use super::groups::{Group, metric_words};
use super::markup::esc;
use crate::report::model::RunReport;
use crate::show::plots::{Distribution, Heading, Picture, Series};
use capture::text::units::count;
use std::path::{Path, PathBuf};

/// The folder of pictures.
pub(super) struct Pictures {
    dir: PathBuf,
}

impl Pictures {
    /// Makes the folder.
    pub(super) fn new(out_dir: &Path) -> Result<Self, ReportError> {
        let dir = out_dir.join("charts");
        std::fs::create_dir_all(&dir).map_err(|source| ReportError::Write { path: dir.clone(), source })?;
        Ok(Self { dir })
    }

    /// Draws a chart into both files and returns the figure for the page.
    pub(super) fn figure(&mut self, name: &str, wide: bool, picture: &dyn Picture) -> Result<String, ReportError> {
        let svg = picture.svg()?;
        super::store(&self.dir.join(format!("{name}.svg")), svg.as_bytes())?;
        picture.png(&self.dir.join(format!("{name}.png")))?;
        let class = if wide { " class=\"wide\"" } else { "" };
        let name = esc(name);
        Ok(format!(
            "<figure{class}>\n{svg}<figcaption>As a file: <a href=\"charts/{name}.svg\">SVG</a>, <a href=\"charts/{name}.png\">PNG</a></figcaption></figure>\n"
        ))
    }
}

/// The heading over the charts of a whole group.
pub(super) fn group_heading(group: &Group<'_>) -> Heading {
    Heading {
        subject: format!("{}, {}", group.name(), metric_words(group.metric)),
        context: group.runs.first().map_or_else(String::new, |run| place(run)),
        emulated: group.emulated(),
    }
}

/// The heading over the charts of one run.
pub(super) fn run_heading(group: &Group<'_>, run: &RunReport) -> Heading {
    Heading {
        subject: format!("{}, {}, {}", group.name(), run.manifest.run.mode, metric_words(group.metric)),
        context: format!("{}; rounds with probes (level {}), n = {}", place(run), run.manifest.run.level, joined(run)),
        emulated: run.manifest.host.emulated,
    }
}

fn joined(run: &RunReport) -> String {
    run.breakdown.as_ref().map_or_else(|| "0".to_string(), |breakdown| count(breakdown.joined))
}

fn place(run: &RunReport) -> String {
    let device = &run.manifest.device;
    let emulated = if device.is_emulated() { ", EMULATED DEVICE" } else { "" };
    format!("kernel {}, {} ({}{emulated})", run.manifest.host.kernel, device.name, device.driver)
}

/// The distributions of a group: untraced rounds in the colour of their mode; `probed` adds those with probes in grey.
pub(super) fn distribution<'a>(group: &Group<'a>, probed: bool) -> Distribution<'a> {
    let mut series: Vec<Series<'a>> = Vec::new();
    let mut any_probed = false;
    for &run in &group.runs {
        let mode = run.manifest.run.mode;
        let repeat = series.iter().filter(|known| known.mode == mode && !known.probed).count();
        let same_mode = || group.runs.iter().filter(|other| other.manifest.run.mode == mode);
        let twins = same_mode().count();
        let same_index = same_mode().filter(|other| other.manifest.run.index == run.manifest.run.index).count();
        let detail = match (twins, same_index) {
            (1, _) => String::new(),
            (_, 1) => format!("run {}", run.manifest.run.index),
            _ => run.path.clone(),
        };
        let mut add = |latency: &'a Option<crate::report::model::Latency>, probed: bool| {
            if let Some(latency) = latency.as_ref().filter(|latency| latency.n > 0) {
                any_probed |= probed;
                series.push(Series { mode, repeat, detail: detail.clone(), probed, latency });
            }
        };
        let untraced = run.untraced.as_ref().is_some_and(|latency| latency.n > 0);
        if untraced {
            add(&run.untraced, false);
        }
        if !untraced || (probed && twins == 1) {
            add(&run.traced, true);
        }
    }
    let mut heading = group_heading(group);
    heading.context.push_str(if any_probed { "; grey: rounds with probes" } else { "; rounds without probes" });
    Distribution { heading, series }
}
