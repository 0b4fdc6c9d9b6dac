//! A chart as a picture: drawn by plotters into an SVG document or a PNG file, by the same code.
use super::canvas::{self, Canvas, DrawResult, Target};
use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters::drawing::IntoDrawingArea;
use plotters::style::{FontStyle, register_font};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Pixels of the picture per unit of the chart's own coordinates: plotters draws on whole pixels, so both formats are drawn twice as large.
const SCALE: u32 = 2;

/// Why a picture could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The committed font did not load: the build is broken.
    #[error("the built-in font cannot be read, so no chart can be drawn")]
    Font,
    /// The backend refused.
    #[error("cannot draw {what}: {why}")]
    Draw {
        /// The chart.
        what: String,
        /// What plotters said.
        why: String,
    },
    /// The picture was drawn and could not be stored.
    #[error("cannot write {path}: {why}", path = path.display())]
    Store {
        /// Where to.
        path: PathBuf,
        /// What the encoder or the system said.
        why: String,
    },
}

/// A chart that can be drawn on any backend.
pub trait Chart {
    /// Width and height in the chart's own pixels.
    fn size(&self) -> (u32, u32);
    /// What the chart shows, as one sentence: the text alternative.
    fn describe(&self) -> String;
    /// Draws the whole chart.
    ///
    /// # Errors
    /// Whatever the backend says.
    fn draw<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>) -> DrawResult<DB>;
}

/// A chart of any kind, to be made into files.
pub trait Picture {
    /// As [`svg`].
    ///
    /// # Errors
    /// As [`svg`].
    fn svg(&self) -> Result<String, PlotError>;
    /// As [`png`].
    ///
    /// # Errors
    /// As [`png`].
    fn png(&self, path: &Path) -> Result<(), PlotError>;
}

impl<C: Chart> Picture for C {
    fn svg(&self) -> Result<String, PlotError> {
        svg(self)
    }

    fn png(&self, path: &Path) -> Result<(), PlotError> {
        png(self, path)
    }
}

/// The chart as a whole SVG document that scales with its container and carries its text alternative.
///
/// # Errors
/// [`PlotError::Font`] and [`PlotError::Draw`].
pub fn svg(chart: &impl Chart) -> Result<String, PlotError> {
    load_font()?;
    let (width, height) = chart.size();
    let mut drawn = String::new();
    paint(chart, SVGBackend::with_string(&mut drawn, (width * SCALE, height * SCALE)), Target::Vector)?;
    // plotters writes the pixel size into the first tag; the picture keeps its coordinates and is shown at the chart's own size.
    let body = drawn.split_once('>').map_or("", |(_, body)| body);
    let label = canvas::escape(&chart.describe());
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {} {}\" role=\"img\" \
         aria-label=\"{label}\">\n<title>{label}</title>{}",
        width * SCALE,
        height * SCALE,
        compact(body)
    ))
}

/// The chart as a PNG file.
///
/// # Errors
/// [`PlotError::Font`], [`PlotError::Draw`] and [`PlotError::Store`].
pub fn png(chart: &impl Chart, path: &Path) -> Result<(), PlotError> {
    load_font()?;
    let (width, height) = chart.size();
    // Made before drawing, so that a folder that cannot be written is told as such.
    std::fs::File::create(path).map_err(|error| PlotError::Store { path: path.to_owned(), why: error.to_string() })?;
    paint(chart, BitMapBackend::new(path, (width * SCALE, height * SCALE)), Target::Pixels)
}

fn paint<DB: DrawingBackend>(chart: &impl Chart, backend: DB, target: Target) -> Result<(), PlotError> {
    let area = backend.into_drawing_area();
    let canvas = Canvas::new(&area, f64::from(SCALE), target);
    chart.draw(&canvas).and_then(|()| area.present()).map_err(|error| PlotError::Draw { what: chart.describe(), why: error.to_string() })
}

/// Every backend that plotters builds with `ab_glyph`, SVG included, measures text with a registered font.
fn load_font() -> Result<(), PlotError> {
    static LOADED: OnceLock<bool> = OnceLock::new();
    let loaded =
        LOADED.get_or_init(|| register_font(canvas::FONT, FontStyle::Normal, include_bytes!("../../../assets/DejaVuSans.ttf")).is_ok());
    if *loaded { Ok(()) } else { Err(PlotError::Font) }
}

/// Drops the attributes that say what SVG assumes anyway; they are a third of the file.
fn compact(svg: &str) -> String {
    svg.replace(" opacity=\"1\"", "")
        .replace(" stroke=\"none\"", "")
        .replace(" \"/>", "\"/>")
        .replace("\">\n", "\">")
        .replace("\n</text>", "</text>")
}
