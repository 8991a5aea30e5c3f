//! Line charts beside one another in one SVG file. Owns the look; knows nothing of what is drawn.

use anyhow::{Context as _, anyhow};
use plotters::prelude::*;
use std::path::Path;

/// One chart: for each x the values of all lines, in their order.
pub struct Chart<'a> {
    /// Over the chart.
    pub title: String,
    /// Under it.
    pub axis: &'a str,
    /// x, and a value for each line.
    pub points: &'a [(usize, Vec<f64>)],
}

const SIZE: (u32, u32) = (1000, 420);
const COLOURS: [RGBColor; 3] = [RGBColor(0, 90, 181), RGBColor(220, 50, 32), RGBColor(90, 90, 90)];
const FONT: &str = "sans-serif";

/// Draws the charts, both axes logarithmic, values in milliseconds.
pub fn draw(path: &Path, names: &[&str], charts: &[Chart<'_>]) -> anyhow::Result<()> {
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    let parts = area.split_evenly((1, charts.len()));
    area.fill(&WHITE).map_err(|error| anyhow!("{error}"))?;
    for (chart, part) in charts.iter().zip(&parts) {
        draw_one(part, names, chart).map_err(|error| anyhow!("{error}"))?;
    }
    area.present().map_err(|error| anyhow!("{error}")).with_context(|| path.display().to_string())
}

fn draw_one(
    part: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    names: &[&str],
    chart: &Chart<'_>,
) -> Result<(), Box<dyn std::error::Error>> {
    let values = chart.points.iter().flat_map(|(_, values)| values).copied();
    let (least, most) = values.fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
    let ends = (chart.points.first(), chart.points.last());
    let (Some((from, _)), Some((to, _))) = ends else { return Err("a chart without points".into()) };
    let mut drawn = ChartBuilder::on(part)
        .caption(&chart.title, (FONT, 16))
        .margin(12)
        .x_label_area_size(38)
        .y_label_area_size(52)
        .build_cartesian_2d((*from as f64..*to as f64).log_scale(), (least * 0.8..most * 1.2).log_scale())?;
    drawn.configure_mesh().x_desc(chart.axis).y_desc("ms").label_style((FONT, 12)).light_line_style(WHITE).draw()?;
    for (index, (&name, colour)) in names.iter().zip(COLOURS).enumerate() {
        let line: Vec<(f64, f64)> =
            chart.points.iter().filter_map(|(x, values)| Some((*x as f64, *values.get(index)?))).collect();
        drawn
            .draw_series(LineSeries::new(line, colour.stroke_width(2)).point_size(3))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    drawn
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .label_font((FONT, 12))
        .border_style(BLACK.mix(0.3))
        .background_style(WHITE)
        .draw()?;
    Ok(())
}
