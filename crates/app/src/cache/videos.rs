//! Videos that are decoded side by side, in the model, under the cache-aware scheduler with its
//! profiler and under G-EDF (003 §4.3, Table 3).
//!
//! A decoder is a task with a frame a job: 24 frames a second, 14 ms, a working set of 2688 KiB (the
//! paper: 2.5 to 3 MB), every frame other memory. What the paper does not say is how often a frame's
//! data is read: here twice, at random. As execution times are only known up to what accesses wait,
//! 14 ms are those of a frame of which all accesses miss all caches.

use crate::scheduling::Scheduling;
use crate::simulate::caches::{self, Caches};
use crate::{On, provenance};
use ::cache::Shape;
use model::watch::Watch;
use model::{
    Bytes, Details, Duration, Error, Pattern, Provenance, Result, TaskSet, Timing, Workload, time,
};
use report::Figure;
use report::lines::{self, Curves};
use serde::Serialize;
use simulate::{Ending, Scenario};

/// What is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose caches.
    pub on: On,
    /// How many videos, each for itself. The paper: 1, 6, 12.
    pub videos: Vec<u32>,
    /// How long each is simulated.
    pub horizon: Duration,
    /// The command that does it again, for the result.
    pub command: String,
}

/// Of 24 frames a second.
const PERIOD: Duration = Duration::from_millis(41);
const WCET: Duration = Duration::from_millis(14);
const WSS: Bytes = Bytes::from_kib(2688);
const PASSES: u32 = 2;

/// The longest frames. JSON: as `warmset cache videos --format json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Decoded {
    /// The name of the platform.
    pub platform: String,
    /// By number of videos.
    pub rows: Vec<Row>,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// So many videos.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Row {
    /// How many.
    pub videos: u32,
    /// The longest frame under G-EDF.
    #[serde(rename = "g_edf_ns", with = "time::ns")]
    pub g_edf: Duration,
    /// And under the cache-aware scheduler, once every estimate has converged or is given up: in
    /// the second half of the time.
    #[serde(rename = "ca_edf_ns", with = "time::ns")]
    pub ca_edf: Duration,
    /// The longest while the profiler learns, too.
    #[serde(rename = "ca_edf_all_ns", with = "time::ns")]
    pub ca_edf_all: Duration,
}

/// Runs each number of videos under both policies.
///
/// # Errors
/// No videos; a platform whose caches cannot be modelled or have no prices; the user stopped it.
pub fn run(options: &Options, watch: &dyn Watch) -> Result<Decoded> {
    if options.videos.is_empty() || options.videos.contains(&0) {
        return Err(Error::new("there is no video to decode")
            .at("--videos")
            .remedy("give numbers above zero, such as `1,6,12`"));
    }
    let platform = options.on.platform()?;
    let run = |videos: u32, policy: &str| -> Result<[Duration; 2]> {
        let set = decoders(videos)?;
        let shape = Shape::of(&platform)?;
        let page = cache::page_of(&platform);
        let how = Caches {
            passes: PASSES,
            fresh: true,
            ..Caches::default()
        };
        let mut cached = caches::in_shape(&set, shape, page, how, 1)?;
        let half = Duration::from_nanos(options.horizon.nanos() / 2);
        cached.count_from(half);
        let scheduling = Scheduling::of(policy)?;
        let plan = scheduling
            .policy()
            .plan(&scheduling.setup(&set, &platform, None))?;
        let scenario = Scenario {
            horizon: options.horizon,
            ..Scenario::default()
        };
        let run = simulate::Run {
            set: &set,
            platform: &platform,
            scenario: &scenario,
            costs: None,
            watch,
        };
        let summary = run.in_caches(plan, &mut (), &mut cached)?;
        if summary.ending == Ending::Interrupted {
            return Err(Error::new("stopped before all videos were decoded").remedy("run it again"));
        }
        let longest = |of: fn(&simulate::Tally) -> Duration| cached.tallies().map(|t| of(&t)).max();
        Ok([
            longest(|t| t.longest).unwrap_or_default(),
            longest(|t| t.longest_counted).unwrap_or_default(),
        ])
    };
    let mut rows = Vec::new();
    for videos in &options.videos {
        let [g_edf, _] = run(*videos, "g-edf")?;
        let [ca_edf_all, ca_edf] = run(*videos, "ca-edf:wss=profiled")?;
        rows.push(Row {
            videos: *videos,
            g_edf,
            ca_edf,
            ca_edf_all,
        });
    }
    watch.finish();
    Ok(Decoded {
        platform: platform.name.clone(),
        rows,
        provenance: provenance(&options.command),
    })
}

/// The longest frames of Table 3 of 003, in milliseconds: videos, G-EDF, the cache-aware scheduler.
const PAPER: [(f64, f64, f64); 3] = [
    (1.0, 14.004, 13.771),
    (6.0, 14.947, 13.935),
    (12.0, 14.956, 13.972),
];

impl Decoded {
    /// The longest frame by number of videos, beside the paper's.
    ///
    /// # Errors
    /// It cannot be drawn.
    pub fn figure(&self) -> Result<Option<Figure>> {
        if self.rows.is_empty() {
            return Ok(None);
        }
        let curve = |of: fn(&Row) -> Duration| -> Vec<(f64, f64)> {
            let mut points: Vec<(f64, f64)> = self
                .rows
                .iter()
                .map(|row| (f64::from(row.videos), of(row).nanos() as f64 / 1e6))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points
        };
        let ours = [
            curve(|r| r.g_edf),
            curve(|r| r.ca_edf),
            curve(|r| r.ca_edf_all),
        ];
        let papers = [PAPER.map(|p| (p.0, p.1)), PAPER.map(|p| (p.0, p.2))];
        let all = || ours.iter().flatten().chain(papers.iter().flatten());
        let least = all().map(|p| p.1).fold(f64::INFINITY, f64::min).floor();
        let mut ticks: Vec<(f64, String)> = all().map(|p| (p.0, p.0.to_string())).collect();
        ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
        ticks.dedup();
        let curves = Curves {
            title: self.platform.clone(),
            description: "The longest frame under G-EDF and under the cache-aware scheduler."
                .to_owned(),
            x: "videos".to_owned(),
            y: "longest frame, ms".to_owned(),
            logarithmic: false,
            ticks,
            level: None,
            least,
            most: None,
            curves: (0..)
                .zip(ours)
                .chain((3..).zip(papers.map(|points| points.to_vec())))
                .collect(),
        };
        lines::figure(
            "videos",
            "Videos decoded side by side",
            "A model of the caches, with frames of 14 ms of which all accesses miss; 003 \
             Table 3 beside.",
            &[
                "g-edf",
                "ca-edf",
                "ca-edf while it learns",
                "G-EDF in 003",
                "cache-aware in 003",
            ],
            &[curves],
        )
    }
}

fn decoders(videos: u32) -> Result<TaskSet> {
    let decoder = |number: u32| {
        let details = Details {
            wss: Some(WSS),
            workload: Some(Workload::Walk {
                write_ratio: 0.0,
                pattern: Pattern::Random,
            }),
            ..Details::named(format!("V{}", number + 1))
        };
        (Timing::implicit(WCET, PERIOD), details)
    };
    TaskSet::new((0..videos).map(decoder).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Choice;
    use model::watch::Silent;

    /// Three working sets fit into the cache, so that one of the four processors has to idle. Nine
    /// videos leave 0.93 of a processor by their WCETs, ten 0.59: then frames thrash as under G-EDF.
    #[test]
    fn as_many_videos_as_leave_a_processor_to_idle_do_not_thrash() {
        let options = Options {
            on: On::Platform(Choice::Named("core-i7".to_owned())),
            videos: vec![9, 10],
            horizon: Duration::from_secs(2),
            command: String::new(),
        };
        let seen = run(&options, &Silent).unwrap().rows;
        let [nine, ten] = seen[..] else {
            panic!("{seen:?}");
        };
        assert_eq!(nine.g_edf, WCET);
        assert!(nine.ca_edf.nanos() * 10 < WCET.nanos() * 9, "{nine:?}");
        assert_eq!((ten.g_edf, ten.ca_edf), (WCET, WCET));
    }

    #[test]
    fn the_picture_has_ours_beside_the_papers() {
        let row = |videos, g_edf, ca_edf| Row {
            videos,
            g_edf: Duration::from_micros(g_edf),
            ca_edf: Duration::from_micros(ca_edf),
            ca_edf_all: Duration::from_micros(g_edf),
        };
        let mut decoded = Decoded {
            platform: "core-i7".to_owned(),
            rows: vec![row(24, 14_000, 14_000), row(1, 11_120, 11_120)],
            provenance: Provenance::default(),
        };
        let svg = decoded.figure().unwrap().unwrap().to_svg();
        for said in [
            "cache-aware in 003",
            "ca-edf while it learns",
            ">24<",
            ">12<",
        ] {
            assert!(svg.contains(said), "{said}");
        }
        decoded.rows.clear();
        // The paper's curves alone are no picture of what was run.
        assert_eq!(decoded.figure().unwrap(), None);
    }
}
