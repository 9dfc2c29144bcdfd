//! Cache delays of a platform by a model of its caches: the synthetic method of 000 §3.2, with the
//! model in the place of the machine.
//!
//! A job walks its working set until it is warm, leaves its processor for a random time, resumes on
//! a random processor, and walks again; the delay is the difference between that walk and the warm
//! one. Under load a polluter on every other processor, and on the job's own while that is away,
//! changes line after line of an array that is larger than the largest cache, at the same time.
//!
//! What an access waits is told in `cache::waits`: a line that another processor behind a common
//! cache has changed costs an `intervention`, a changed line that makes room a `write_back`.
//!
//! What the model leaves out: the bandwidth of buses that processors share, accesses that overlap,
//! prefetchers and page translations.

mod scene;

use crate::{On, PROGRAM, provenance};
use cache::Shape;
use model::profile::{CpmdCurve, CpmdPoint};
use model::watch::Watch;
use model::{
    Bytes, Delay, Duration, Error, Load, Platform, Profile, Provenance, Result, Resumption, files,
    profilefile,
};
use rayon::prelude::*;
use report::cpmd::Cell;
use scene::Scene;
use serde::Serialize;
use std::path::PathBuf;

/// What is run. [`Options::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose caches.
    pub on: On,
    /// The directory for the results.
    pub output: PathBuf,
    /// Working set sizes. Empty: those of the platform's built-in profile, or powers of two up to
    /// its largest cache.
    pub wss: Vec<Bytes>,
    /// Samples for each size, load and kind of resumption. Default: 10.
    pub samples: u32,
    /// Preemption lengths are drawn uniformly between zero and this. Default: 50 ms, as in
    /// 000 §4.1.
    pub max_preemption: Duration,
    /// What else runs. Default: nothing, and polluters.
    pub loads: Vec<Load>,
    /// Seed of lengths and destinations. Default: 1.
    pub seed: u64,
    /// The command that does it again, for the result.
    pub command: String,
}

impl Options {
    /// The defaults.
    pub fn new(on: On, output: PathBuf) -> Self {
        Options {
            on,
            output,
            wss: Vec::new(),
            samples: 10,
            max_preemption: Duration::from_millis(50),
            loads: vec![Load::Idle, Load::Load],
            seed: 1,
            command: String::new(),
        }
    }
}

/// What came of it. JSON: as `warmset measure cpmd --model --format json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Modelled {
    /// The profile, which says that it is by a model.
    pub profile: Profile,
    /// Where it is kept.
    pub profile_path: PathBuf,
    /// Its delays beside those of the built-in profile of the platform, if there is one.
    pub beside: Vec<Beside>,
    /// Did the user stop it? What is told is of the sizes that were done.
    pub interrupted: bool,
}

/// A mean delay beside the one that is built in.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Beside {
    /// How the job resumed.
    #[serde(serialize_with = "named")]
    pub resumption: Resumption,
    /// What else ran.
    pub load: Load,
    /// Its working set.
    pub wss: Bytes,
    /// By the model, in nanoseconds.
    pub model_ns: i64,
    /// In the built-in profile.
    pub known_ns: i64,
}

fn named<S: serde::Serializer>(
    resumption: &Resumption,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    to.collect_str(resumption)
}

/// The file of the profile, and of the picture.
const PROFILE: &str = "profile.toml";
const PICTURE: &str = "cpmd-model.svg";
/// Written parts of the words: the one of 000's figures. Every line of 16 words is changed.
const WRITES: f64 = 0.25;

impl Modelled {
    /// # Errors
    /// The user stopped it.
    pub fn complete(&self) -> Result<()> {
        match self.interrupted {
            false => Ok(()),
            true => Err(Error::new("interrupted; the sizes that were done are kept")
                .at(self.profile_path.display())
                .remedy("run the command again for all of them")),
        }
    }
}

/// Finds the delays and writes the profile and a picture of it beside the built-in one.
///
/// # Errors
/// No samples or sizes that are no whole lines; a platform whose caches cannot be modelled or have
/// no prices; files that cannot be written.
pub fn measure(options: &Options, watch: &dyn Watch) -> Result<Modelled> {
    if options.samples == 0 || options.max_preemption.is_zero() || options.loads.is_empty() {
        return Err(Error::new("there is nothing to sample")
            .at("--samples, --max-preemption, --load")
            .remedy("give numbers above zero"));
    }
    crate::workers()?;
    let platform = options.on.platform()?;
    // A line that nothing misses takes its time by itself.
    let shape = Shape::of(&platform)?.without_hits();
    let known = Profile::builtin(&platform.name).ok();
    let sizes = sizes(options, &platform, known.as_ref())?;
    // Found out before minutes of work.
    Scene::new(&platform, &shape, sizes[0], Load::Idle, options)?;
    files::make_dir(&options.output)?;
    let mut cells = Vec::new();
    for load in &options.loads {
        cells.extend(sizes.iter().map(|wss| (*load, *wss)));
    }
    watch.begin("sampling delays in the model", cells.len() as u64);
    let sampled = cells.par_iter().map(|(load, wss)| {
        if watch.stopped() {
            return Ok(None);
        }
        let points = Scene::new(&platform, &shape, *wss, *load, options)?.sample(watch)?;
        watch.advance(1);
        Ok(points.map(|points| (*load, points)))
    });
    let sampled: Vec<Option<(Load, Points)>> = sampled.collect::<Result<_>>()?;
    watch.finish();
    crate::note_free(&shape, watch);
    let interrupted = sampled.iter().any(Option::is_none);
    let profile = profile(options, &platform, sampled.into_iter().flatten().collect())?;
    let profile_path = options.output.join(PROFILE);
    files::write(&profile_path, profilefile::to_toml(&profile))?;
    draw(options, &platform, &profile, known.as_ref())?;
    Ok(Modelled {
        beside: known.map_or_else(Vec::new, |known| beside(&profile, &known)),
        profile,
        profile_path,
        interrupted,
    })
}

/// A point of the curve of each kind of resumption.
type Points = Vec<(Resumption, CpmdPoint)>;

fn sizes(options: &Options, platform: &Platform, known: Option<&Profile>) -> Result<Vec<Bytes>> {
    let mut sizes = options.wss.clone();
    if sizes.is_empty() {
        let curves = known.into_iter().flat_map(|known| &known.cpmd);
        sizes.extend(curves.flat_map(|curve| curve.points.iter().map(|point| point.wss)));
    }
    if sizes.is_empty() {
        let largest = platform.caches.iter().filter_map(|cache| cache.size).max();
        let largest = largest.unwrap_or(Bytes::from_kib(4));
        sizes.extend(
            (0..)
                .map(|power| Bytes::from_kib(4 << power))
                .take_while(|size| *size <= largest),
        );
    }
    sizes.sort_unstable();
    sizes.dedup();
    match sizes
        .iter()
        .all(|size| size.get() > 0 && size.get() % 4096 == 0)
    {
        true if !sizes.is_empty() => Ok(sizes),
        _ => Err(Error::new("working sets are whole pages of 4KiB")
            .at("--wss")
            .remedy("give multiples of 4KiB")),
    }
}

fn profile(
    options: &Options,
    platform: &Platform,
    sampled: Vec<(Load, Points)>,
) -> Result<Profile> {
    let mut curves: Vec<CpmdCurve> = Vec::new();
    for (load, points) in sampled {
        for (resumption, point) in points {
            let is_same = |c: &&mut CpmdCurve| c.resumption == resumption && c.load == load;
            match curves.iter_mut().find(is_same) {
                Some(curve) => curve.points.push(point),
                None => curves.push(CpmdCurve {
                    resumption,
                    load,
                    write_ratio: WRITES,
                    points: vec![point],
                }),
            }
        }
    }
    let settings = [
        (
            "method",
            "a model of the caches, synthetic (000 §3.2)".to_owned(),
        ),
        (
            "preemption length",
            format!("uniform in 0-{}", options.max_preemption),
        ),
        ("samples", format!("{} of each kind", options.samples)),
    ];
    let mut profile = Profile::new(
        &platform.name,
        Provenance {
            source: format!("{PROGRAM}, a model of the caches"),
            machine: platform.description.clone(),
            seed: Some(options.seed),
            warnings: vec!["by a model of the caches, not measured".to_owned()],
            settings: settings
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            ..provenance(&options.command)
        },
    );
    profile.cpmd = curves;
    Ok(profile)
}

/// The mean delays that both have.
fn beside(profile: &Profile, known: &Profile) -> Vec<Beside> {
    let mut all = Vec::new();
    for curve in &profile.cpmd {
        let other = report::cpmd::curve(known, curve.resumption, curve.load);
        for point in &curve.points {
            let there = other.and_then(|other| other.points.iter().find(|p| p.wss == point.wss));
            let means = (point.average, there.and_then(|there| there.average));
            if let (Some(model), Some(known)) = means {
                all.push(Beside {
                    resumption: curve.resumption,
                    load: curve.load,
                    wss: point.wss,
                    model_ns: model.nanos(),
                    known_ns: known.nanos(),
                });
            }
        }
    }
    all
}

/// Mean delays by the model, and in the next row those that are built in.
fn draw(
    options: &Options,
    platform: &Platform,
    profile: &Profile,
    known: Option<&Profile>,
) -> Result<()> {
    let marks = report::cpmd::cache_marks(platform);
    let cells: Vec<Cell> = options
        .loads
        .iter()
        .map(|load| (model::Statistic::Average, *load))
        .collect();
    let Some(mut sketch) = report::cpmd::sketch("cpmd-model", profile, &marks, &cells) else {
        return Ok(());
    };
    let name = |what: &str, panels: &mut [report::panel::Panel]| {
        for panel in panels {
            panel.title = format!("{what}: {}", panel.title);
        }
    };
    name("model", &mut sketch.panels);
    if let Some(mut known) =
        known.and_then(|known| report::cpmd::sketch("known", known, &marks, &cells))
    {
        name("built-in profile", &mut known.panels);
        sketch.panels.extend(known.panels);
    }
    sketch.caption =
        "Above by a model of the caches, below as the profile of the platform has it.".to_owned();
    files::write(&options.output.join(PICTURE), sketch.draw()?.to_svg())
}

/// What samples of one kind say; `None` without any.
fn point(wss: Bytes, samples: &[i64]) -> Option<CpmdPoint> {
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<i64>() as f64 / count;
    let squares = samples.iter().map(|s| (*s as f64 - mean).powi(2));
    let deviation = (squares.sum::<f64>() / (count - 1.0).max(1.0)).sqrt();
    Some(CpmdPoint {
        wss,
        samples: samples.len() as u64,
        average: Some(Delay::from_nanos(mean.round() as i64)),
        deviation: Some(Duration::from_nanos(deviation.round() as u64)),
        maximum: Some(Delay::from_nanos(*samples.iter().max()?)),
        percentiles: Vec::new(),
        average_interval: None,
        maximum_interval: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Choice;
    use model::strategy::Price;
    use model::watch::Silent;

    fn measured(wss: &[u64], loads: &[Load]) -> Modelled {
        on(Platform::builtin("xeon-l7455").unwrap(), wss, loads)
    }

    fn on(platform: Platform, wss: &[u64], loads: &[Load]) -> Modelled {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            wss: wss.iter().map(|kib| Bytes::from_kib(*kib)).collect(),
            samples: 3,
            max_preemption: Duration::from_micros(300),
            loads: loads.to_vec(),
            ..Options::new(On::Platform(Choice::Value(platform)), dir.path().to_owned())
        };
        let seen = measure(&options, &Silent).unwrap();
        assert!(dir.path().join(PICTURE).exists());
        let text = std::fs::read_to_string(&seen.profile_path).unwrap();
        assert!(text.contains("not measured"), "the profile says what it is");
        seen
    }

    fn mean(seen: &Modelled, resumption: Resumption, load: Load, kib: u64) -> i64 {
        let curve = report::cpmd::curve(&seen.profile, resumption, load).unwrap();
        let wss = Bytes::from_kib(kib);
        let point = curve.points.iter().find(|point| point.wss == wss).unwrap();
        point.average.unwrap().nanos()
    }

    /// By hand: idle, a preemption loses nothing; a migration to a processor that shares the L2
    /// loses the lines of the L1, one that shares the L3 those of the L2, one that shares nothing all
    /// of them. Every line was changed, so that the processor before has to write it to the common
    /// cache first.
    #[test]
    fn idle_delays_are_the_lines_that_are_not_there() {
        let seen = measured(&[16], &[Load::Idle]);
        let platform = Platform::builtin("xeon-l7455").unwrap();
        let shape = Shape::of(&platform).unwrap();
        let path = shape.path(platform.usable().lowest().unwrap(), false);
        let fill = |depth: usize| {
            let fill = shape.parts[path[depth]].strategy.fill.unwrap();
            fill.pessimistic.nanos() as i64
        };
        let lines = 16 * 1024 / 64;
        for (resumption, each) in [
            (Resumption::Preemption, 0),
            (Resumption::Migration(2), 2 * fill(0)),
            (Resumption::Migration(3), fill(1) + fill(0)),
            (Resumption::Memory, fill(2)),
        ] {
            let found = mean(&seen, resumption, Load::Idle, 16);
            assert_eq!(found, lines * each, "{resumption}");
        }
        assert_eq!(seen.beside.len(), 4, "the paper has these, too");
    }

    /// A working set larger than the L1 is missed there in any case; what an L2-migration costs is
    /// that the processor before has changed the lines that fill its L1 (002 Table A.4: 14.21 us).
    #[test]
    fn what_the_first_cache_has_changed_is_paid_for_whatever_the_size() {
        let seen = measured(&[64, 128], &[Load::Idle]);
        for kib in [64, 128] {
            let found = mean(&seen, Resumption::Migration(2), Load::Idle, kib);
            assert_eq!(found, 512 * 28);
        }
    }

    /// 000, Observation 2: under load all kinds cost about the same.
    #[test]
    fn under_load_nothing_is_left_of_a_small_working_set_in_the_first_levels() {
        let seen = measured(&[4], &[Load::Idle, Load::Load]);
        let under_load = mean(&seen, Resumption::Preemption, Load::Load, 4);
        assert!(under_load > mean(&seen, Resumption::Preemption, Load::Idle, 4));
    }

    /// What the polluter has changed leaves the L1 for the 64 lines of the job, in two samples of
    /// three: one preemption is too short for that.
    #[test]
    fn lines_that_polluters_have_changed_are_written_back_at_their_price() {
        let preempted = |write_back: u64| {
            let mut platform = Platform::builtin("xeon-l7455").unwrap();
            for cache in platform.caches.iter_mut().filter(|cache| cache.level == 1) {
                let price = Price::always(Duration::from_nanos(write_back));
                cache.strategy.write_back = Some(price);
            }
            let seen = on(platform, &[4], &[Load::Load]);
            mean(&seen, Resumption::Preemption, Load::Load, 4)
        };
        let (free, dear) = (preempted(0), preempted(100));
        let more = dear - free;
        assert!((64 * 65..=64 * 67).contains(&more), "{free} {dear}");
    }

    #[test]
    fn sizes_that_are_no_pages_are_refused() {
        let options = Options {
            wss: vec![Bytes::new(100)],
            ..Options::new(
                On::Platform(Choice::Named("xeon-l7455".to_owned())),
                PathBuf::from("unused"),
            )
        };
        assert!(measure(&options, &Silent).is_err());
    }
}
