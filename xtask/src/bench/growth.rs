//! `bench growth`: how the processor time of a start grows with the number of libraries and of symbols, in synthetic sets without a C library,
//! which ours, ld-linux and musl's loader can start alike. Owns the series and the fit; the drawing is `plot`'s.

use super::plot::{self, Chart};
use super::root::Root;
use super::stage;
use super::{Settings, startup::Times};
use rtld_suites::harness::{Context, copy_with_interpreter};
use rtld_suites::synthetic::{self, Shape};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Libraries, of `SYMBOLS` symbols each.
const LIBRARIES: [usize; 5] = [10, 30, 100, 300, 1000];
const SYMBOLS: usize = 100;
/// Symbols in each of `MANY` libraries.
const COUNTS: [usize; 5] = [20, 100, 200, 500, 1000];
const MANY: usize = 100;
/// ld-linux, under the name that programs have for it.
const LD_LINUX: &str = "/lib64/ld-linux-x86-64.so.2";
/// musl's loader, in the system or in the private root.
const MUSL: &str = "/lib/ld-musl-x86_64.so.1";
/// The plot, from the workspace's directory.
const PLOT: &str = "docs/startup-growth.svg";

/// One loader that takes part.
struct Contestant {
    name: &'static str,
    interpreter: PathBuf,
}

/// Measures, fits, draws; nothing is judged.
pub fn measure(context: &Context, settings: &Settings<'_>) -> anyhow::Result<(bool, Value)> {
    let ending = stage::ending(context)?;
    let mut contestants = vec![
        Contestant { name: "ld-elf.so.1", interpreter: context.loader.clone() },
        Contestant { name: "ld-linux", interpreter: PathBuf::from(LD_LINUX) },
    ];
    let musl = [Some(PathBuf::from(MUSL)), Root::existing().map(|root| root.file(MUSL))];
    let musl = musl.into_iter().flatten().find(|path| path.exists());
    if let Some(path) = &musl {
        // Under a name that is short enough for the programs' PT_INTERP.
        let interpreter = context.work.join("m");
        fs::copy(path, &interpreter)?;
        contestants.push(Contestant { name: "musl", interpreter });
    }
    println!("processor time to the first initialiser, ms, minimum of {} alternating rounds", settings.rounds);
    let by_libraries = series(context, settings, &contestants, &ending, &LIBRARIES.map(|n| (n, n, SYMBOLS)))?;
    let by_symbols = series(context, settings, &contestants, &ending, &COUNTS.map(|n| (n, MANY, n)))?;
    let mut figures = Vec::new();
    for (index, contestant) in contestants.iter().enumerate() {
        let points = |series: &[(usize, Vec<f64>)]| -> Vec<(f64, f64)> {
            series.iter().filter_map(|(x, times)| Some((*x as f64, *times.get(index)?))).collect()
        };
        let (libraries, symbols) = (points(&by_libraries), points(&by_symbols));
        // Milliseconds a symbol in each of MANY libraries; nanoseconds a relocation.
        let cost = slope(&symbols) * 1e6 / MANY as f64;
        println!("{}: {cost:.0} ns for each symbolic relocation, {MANY} libraries (least squares)", contestant.name);
        figures.push(json!({
            "loader": contestant.name,
            "ms_by_libraries": libraries,
            "ms_by_symbols": symbols,
            "ns_a_relocation": cost,
        }));
    }
    let names: Vec<&str> = contestants.iter().map(|contestant| contestant.name).collect();
    let plot = context.root.join(PLOT);
    plot::draw(
        &plot,
        &names,
        &[
            Chart { title: format!("{SYMBOLS} symbols in each library"), axis: "libraries", points: &by_libraries },
            Chart { title: format!("{MANY} libraries"), axis: "symbols in each library", points: &by_symbols },
        ],
    )?;
    println!("drawn: {PLOT}");
    if musl.is_none() {
        println!("not measured: musl: not installed (package musl; --install fetches it)");
    }
    Ok((true, Value::Array(figures)))
}

/// For each (x, libraries, symbols): x, and the least time of each loader in milliseconds.
fn series(
    context: &Context,
    settings: &Settings<'_>,
    contestants: &[Contestant],
    ending: &Path,
    shapes: &[(usize, usize, usize)],
) -> anyhow::Result<Vec<(usize, Vec<f64>)>> {
    let mut series = Vec::new();
    for &(x, libraries, symbols) in shapes {
        let shape = Shape { libraries, symbols };
        let set = synthetic::build(&stage::store()?.join("synthetic"), shape)?;
        let mut programs = Vec::new();
        for (index, contestant) in contestants.iter().enumerate() {
            // Names of equal length: the path lies on the program's stack.
            let directory = context.work.join(format!("loader-{index}"));
            fs::create_dir_all(&directory)?;
            let program = directory.join(format!("{libraries}x{symbols}"));
            copy_with_interpreter(&set.bare, &program, &contestant.interpreter)?;
            programs.push(program);
        }
        let mut times = vec![Vec::new(); programs.len()];
        for round in 0..=settings.rounds {
            let start = round % programs.len().max(1);
            let turn = (0..programs.len()).cycle().skip(start).take(programs.len());
            for index in turn {
                let (Some(program), Some(times)) = (programs.get(index), times.get_mut(index)) else { continue };
                let time = stage::time(&mut stage::command(program, ending))?;
                // The first round warms the page cache.
                if round > 0 {
                    times.push(time.processor / 1000.0);
                }
            }
        }
        let least: Vec<f64> = times.into_iter().map(|times| Times::of(times).minimum).collect();
        let words: Vec<String> =
            contestants.iter().zip(&least).map(|(contestant, time)| format!("{} {time:.2}", contestant.name)).collect();
        println!("{:12} {}", shape.name(), words.join(", "));
        series.push((x, least));
    }
    Ok(series)
}

/// The slope of the line of least squares; not a number of fewer than two points.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let products: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    products / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slope_of_a_line_is_its_slope() {
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]), 2.0);
        assert_eq!(slope(&[(1.0, 0.0), (2.0, 3.0), (3.0, 0.0)]), 0.0);
        assert!(slope(&[(1.0, 1.0)]).is_nan());
    }
}
