//! PNG from SVG, with whatever sans-serif face the machine has, or the one bundled by a dependency
//! when it has none.

use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

/// Why an SVG could not be rasterised.
#[derive(Debug, thiserror::Error)]
pub enum RasterError {
    /// The text is not SVG that can be drawn.
    #[error("cannot read the SVG to rasterise: {0}")]
    Parse(String),
    /// The picture has no area, or more than can be allocated.
    #[error("cannot rasterise a picture of {width} x {height} pixels")]
    Size {
        /// Width asked for.
        width: f32,
        /// Height asked for.
        height: f32,
    },
    /// The encoder failed.
    #[error("cannot encode the PNG: {0}")]
    Encode(String),
}

/// Faces to take for `sans-serif`, best first.
const PREFERRED: [&str; 6] =
    ["Inter", "Helvetica Neue", "Arial", "Liberation Sans", "Noto Sans", "DejaVu Sans"];

/// The machine's fonts, read once.
fn fonts() -> Arc<fontdb::Database> {
    static FONTS: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    FONTS
        .get_or_init(|| {
            let mut fonts = fontdb::Database::new();
            fonts.load_system_fonts();
            Arc::new(with_sans(fonts))
        })
        .clone()
}

/// Names a sans-serif face that exists, adding the bundled one when none of the known faces does.
fn with_sans(mut fonts: fontdb::Database) -> fontdb::Database {
    let has = |fonts: &fontdb::Database, name: &str| {
        fonts.faces().any(|f| f.families.iter().any(|(n, _)| n == name))
    };
    let family = match PREFERRED.into_iter().find(|name| has(&fonts, name)) {
        Some(name) => name.to_owned(),
        None => {
            let before = fonts.len();
            fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
            fonts
                .faces()
                .nth(before)
                .and_then(|f| f.families.first())
                .map(|f| f.0.clone())
                .unwrap_or_default()
        }
    };
    fonts.set_sans_serif_family(family);
    fonts
}

/// Rasterises an SVG in its light colours, `scale` pixels to a unit.
pub fn png_from_svg(svg: &str, scale: f32) -> Result<Vec<u8>, RasterError> {
    render(svg, scale, fonts())
}

fn render(svg: &str, scale: f32, fontdb: Arc<fontdb::Database>) -> Result<Vec<u8>, RasterError> {
    let options = Options { fontdb, ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|e| RasterError::Parse(e.to_string()))?;
    let (width, height) = (tree.size().width() * scale, tree.size().height() * scale);
    // Sizes beyond this are a mistake, and would take gigabytes.
    let fits = width >= 1.0 && height >= 1.0 && width * height <= 2e8;
    let mut pixels = fits
        .then(|| Pixmap::new(width.ceil() as u32, height.ceil() as u32))
        .flatten()
        .ok_or(RasterError::Size { width, height })?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| RasterError::Encode(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"
        font-family="Nowhere, sans-serif"><text x="4" y="20" fill="red">words</text></svg>"#;
    const NOTHING: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"/>"#;

    #[test]
    fn text_is_drawn_with_system_fonts_and_without_any() {
        let blank = render(NOTHING, 1.0, fonts()).unwrap();
        assert_ne!(render(WORDS, 1.0, fonts()).unwrap(), blank);
        let bare = Arc::new(with_sans(fontdb::Database::new()));
        assert_eq!(bare.len(), 1);
        assert_ne!(render(WORDS, 1.0, bare).unwrap(), blank);
    }

    #[test]
    fn bad_input_is_an_error() {
        assert!(matches!(png_from_svg("<p>", 1.0), Err(RasterError::Parse(_))));
        assert!(matches!(png_from_svg(NOTHING, 1e6), Err(RasterError::Size { .. })));
        assert!(matches!(png_from_svg(NOTHING, f32::NAN), Err(RasterError::Size { .. })));
    }
}
