//! What every chart can do: become SVG, CSV and PNG, and be saved.

use std::path::{Path, PathBuf};

use crate::canvas::escape;
use crate::palette::stylesheet;
use crate::raster::{RasterError, png_from_svg};

/// Faces that look alike and are found on most machines, the first that exists being used.
pub(crate) const FACES: &str =
    "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

/// Width of a chart on a phone.
pub const PHONE: f64 = 360.0;

/// The files a saved chart left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The picture as SVG.
    pub svg: PathBuf,
    /// The picture as PNG, at twice its nominal size.
    pub png: PathBuf,
    /// The plotted numbers.
    pub csv: PathBuf,
}

/// Why a chart could not be saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// A file could not be written.
    #[error("cannot write {path}: {source}; check that the folder is writable and the disk has \
     room", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The SVG could not be rasterised.
    #[error(transparent)]
    Raster(#[from] RasterError),
}

/// A chart: pure until it is saved.
pub trait Chart {
    /// Width and height in pixels.
    fn size(&self) -> (f64, f64);
    /// The title.
    fn title(&self) -> &str;
    /// The SVG elements inside the outermost `<svg>`.
    fn body(&self) -> String;
    /// The same chart for a screen as wide as a phone's: as narrow as [`PHONE`], panels below each
    /// other.
    fn for_phone(&self) -> Box<dyn Chart>;
    /// The plotted numbers: `series,x,y,low,high`, with a `panel` column in front for small
    /// multiples.
    fn to_csv(&self) -> String;

    /// A standalone SVG that follows the reader's light or dark preference.
    fn to_svg(&self) -> String {
        let style = format!(
            "<style>@media (prefers-color-scheme:dark){{{}}}</style>",
            stylesheet("", true)
        );
        wrap_svg(
            self.size(),
            self.title(),
            r#" xmlns="http://www.w3.org/2000/svg""#,
            &format!("{style}\n{}", self.body()),
        )
    }

    /// SVG to stand inside an HTML page, which supplies the colours with [`stylesheet`].
    fn to_inline_svg(&self) -> String {
        wrap_svg(self.size(), self.title(), r#" class="figure""#, &self.body())
    }

    /// The picture as PNG bytes, `scale` pixels to a unit.
    fn to_png(&self, scale: f32) -> Result<Vec<u8>, RasterError> {
        png_from_svg(&self.to_svg(), scale)
    }

    /// Writes `NAME.svg`, `NAME.png` and `NAME.csv` into a folder, which is made if it is missing.
    fn save(&self, dir: &Path, name: &str) -> Result<Saved, SaveError> {
        let at = |ending: &str| dir.join(format!("{name}.{ending}"));
        let write = |path: PathBuf, bytes: &[u8]| match std::fs::write(&path, bytes) {
            Ok(()) => Ok(path),
            Err(source) => Err(SaveError::Write { path, source }),
        };
        std::fs::create_dir_all(dir)
            .map_err(|source| SaveError::Write { path: dir.into(), source })?;
        let csv = write(at("csv"), self.to_csv().as_bytes())?;
        let svg = write(at("svg"), self.to_svg().as_bytes())?;
        let png = write(at("png"), &self.to_png(2.0)?)?;
        Ok(Saved { svg, png, csv })
    }
}

fn wrap_svg((w, h): (f64, f64), title: &str, attributes: &str, body: &str) -> String {
    let label = escape(title);
    format!(
        "<svg{attributes} viewBox=\"0 0 {w:.0} {h:.0}\" width=\"{w:.0}\" height=\"{h:.0}\" \
         role=\"img\" aria-label=\"{label}\" font-family=\"{FACES}\">\n{body}</svg>\n"
    )
}
