//! The studies of the papers, by name. To add one: a line in [`presets`].
//!
//! 000 §5, Fig. 5; 002 §6.2.2, Fig. 6.1, and §6.3, Fig. 6.2 to 6.5, the hard ones with their
//! brute-force curves too. All on the 24 processors of `xeon-l7455`, caps 1 to 24 by 0.25 and
//! delays 0 to 2000 µs by 100 µs (002 §6.3). Overheads other than D, which the papers charge as
//! measured on their machine, are left out. In Fig. 6.4 (a) and Obs. 6.3.5 of 002 these decide the
//! order of the policies, and without them it is the reverse: titles, captions and notes say so
//! ([`Study::notes`]).

use crate::axis::Axis;
use crate::charged::Charged;
use crate::definition::{Cache, Study};
use crate::grid::{Cap, Factor, Grid};
use crate::{families, figures};
use analyze::Guarantee;
use generate::{Deadlines, Fill};
use model::error::nearest;
use model::{Duration, Error, Overheads, Platform, Result};

/// How a preset differs from the others.
#[derive(Clone)]
struct Preset {
    name: String,
    title: String,
    source: &'static str,
    guarantee: Guarantee,
    utilizations: String,
    periods: &'static str,
    /// The only delay, in microseconds; else the whole range.
    delay: Option<u64>,
    /// Global and clustered EDF by simulation.
    brute_force: Option<Spacing>,
}

/// How far apart the points of a study by simulation are: 60 simulated seconds take their time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spacing {
    /// Caps by 1, delays by 500 µs, 10 sets: minutes.
    Coarse,
    /// As in 002 §6.3: caps by 0.25, delays by 100 µs; 100 sets, where the paper has 1,000: hours.
    Fine,
}

/// What every title says, as the figures that the presets are named after charge these overheads.
pub(crate) const WITHOUT: &str = "no kernel overheads";

impl Study {
    /// The same study with other costs; a title that says that there are no overheads says which
    /// there are.
    #[must_use]
    pub fn charging(self, charged: Charged) -> Study {
        let title = match charged.overheads() {
            Some(profile) => {
                let which = format!("kernel overheads of {}", profile.platform);
                self.title.replace(WITHOUT, &which)
            }
            None => self.title,
        };
        Study {
            title,
            charged,
            ..self
        }
    }
}

/// The sets of each cap where nothing else is said: as many as in 002 §6.3 where that takes
/// seconds, fewer where the sufficient tests for G-EDF take minutes.
const fn default_sets(guarantee: Guarantee) -> u32 {
    match guarantee {
        Guarantee::Soft => 1_000,
        Guarantee::Hard => 100,
    }
}

fn presets() -> Vec<Preset> {
    let weighted = |name: &str, source, guarantee, utilizations: &str, periods| Preset {
        name: name.to_owned(),
        // Short enough to stand above a chart.
        title: format!(
            "{}, {}, {periods} periods, {WITHOUT}",
            match guarantee {
                Guarantee::Hard => "Hard",
                Guarantee::Soft => "Soft",
            },
            utilizations.replace('-', " ")
        ),
        source,
        guarantee,
        utilizations: utilizations.to_owned(),
        periods,
        delay: None,
        brute_force: None,
    };
    let soft_heavy_short =
        |name, source| weighted(name, source, Guarantee::Soft, "uniform-heavy", "short");
    let mut all = vec![
        soft_heavy_short("ospert10-fig5", "000 §5, Fig. 5"),
        Preset {
            delay: Some(500),
            ..soft_heavy_short("bastoni11-fig6.1a", "002 §6.2.2, Fig. 6.1 (a)")
        },
        soft_heavy_short("bastoni11-fig6.1b", "002 §6.2.2, Fig. 6.1 (b)"),
    ];
    for (figure, source, guarantee, shape) in [
        ("6.2", "002 §6.3, Fig. 6.2", Guarantee::Hard, "uniform"),
        ("6.3", "002 §6.3, Fig. 6.3", Guarantee::Hard, "bimodal"),
        ("6.4", "002 §6.3, Fig. 6.4", Guarantee::Soft, "uniform"),
        ("6.5", "002 §6.3, Fig. 6.5", Guarantee::Soft, "bimodal"),
    ] {
        for (inset, weight) in [("a", "light"), ("b", "medium"), ("c", "heavy")] {
            all.push(weighted(
                &format!("bastoni11-fig{figure}{inset}"),
                source,
                guarantee,
                &format!("{shape}-{weight}"),
                "moderate",
            ));
            let Some(exact) = all.last().filter(|_| guarantee == Guarantee::Hard).cloned() else {
                continue;
            };
            for (suffix, spacing) in [("-bf", Spacing::Coarse), ("-bf-fine", Spacing::Fine)] {
                all.push(Preset {
                    name: format!("{}{suffix}", exact.name),
                    title: format!("{}, brute force", exact.title),
                    brute_force: Some(spacing),
                    ..exact.clone()
                });
            }
        }
    }
    all
}

impl Preset {
    fn study(&self) -> Result<Study> {
        let us = Duration::from_micros;
        let coarse = self.brute_force == Some(Spacing::Coarse);
        let delays = match self.delay {
            Some(d) => Grid::single(us(d))?,
            None if coarse => Grid::new(us(0), us(2000), us(500))?,
            None => Grid::new(us(0), us(2000), us(100))?,
        };
        let policies = match self.brute_force.is_some() {
            true => [
                "p-edf",
                "brute-force:g-edf",
                "brute-force:c-edf:l2",
                "brute-force:c-edf:l3",
            ],
            false => ["p-edf", "g-edf", "c-edf:l2", "c-edf:l3"],
        };
        let cap = Cap::from_thousandths;
        Ok(Study {
            name: self.name.clone(),
            title: self.title.clone(),
            source: self.source.to_owned(),
            platform: Platform::builtin("xeon-l7455")?,
            policies: policies.map(str::to_owned).to_vec(),
            guarantee: self.guarantee,
            utilizations: self.utilizations.parse()?,
            periods: self.periods.parse()?,
            deadlines: Deadlines::Implicit,
            fill: Fill::Drop,
            caps: Grid::new(
                cap(1_000),
                cap(24_000),
                cap(if coarse { 1_000 } else { 250 }),
            )?,
            axis: Axis::Delays(delays),
            drawn_to: None,
            cache: Cache::NOTHING,
            overhead_factor: Factor::ONE,
            factor_on: Overheads::ALL,
            sets: if coarse {
                10
            } else {
                default_sets(self.guarantee)
            },
            until_ci: None,
            seed: 1,
            charge: 1,
            overhead: Duration::ZERO,
            charged: Charged::default(),
        })
    }
}

/// Every preset that is no member of a family: name, title, source.
pub fn list() -> Vec<(String, String, String)> {
    let own = presets().into_iter();
    let own = own.map(|p| (p.name, p.title, p.source.to_owned()));
    let figures = figures::names()
        .filter_map(figures::find)
        .filter_map(Result::ok)
        .map(|study| (study.name, study.title, study.source));
    own.chain(figures).collect()
}

/// The preset of a name.
///
/// # Errors
/// There is none: suggests the nearest.
pub fn find(name: &str) -> Result<Study> {
    let all = presets();
    if let Some(study) = figures::find(name).or_else(|| families::find(name)) {
        return study;
    }
    match all.iter().find(|p| p.name == name) {
        Some(preset) => preset.study(),
        None if !families::members(name).is_empty() => Err(Error::new(format!(
            "`{name}` stands for {} studies, not for one",
            families::members(name).len()
        ))
        .remedy(format!(
            "name one of them, such as `{}`",
            families::members(name)[0]
        ))),
        None => {
            let mut names: Vec<String> = all.iter().map(|p| p.name.clone()).collect();
            names.extend(figures::names().map(str::to_owned));
            for family in families::families() {
                names.push(family.name.to_owned());
                names.extend(family.studies);
            }
            let near = nearest(name, names.iter().map(String::as_str));
            Err(
                Error::new(format!("there is no study `{name}`")).remedy(match near {
                    Some(near) => format!("did you mean `{near}`? `warmset study list` shows all"),
                    None => {
                        "see `warmset study list`, or name a file such as `study.toml`".to_owned()
                    }
                }),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 000 §5, example: u in [0.5, 0.9], p in [3 ms, 33 ms], 24 processors, clusters of two and
    /// six.
    #[test]
    fn fig_5_of_000_has_the_parameters_of_the_paper() {
        let study = find("ospert10-fig5").unwrap();
        assert_eq!(study.utilizations, "uniform:0.5-0.9".parse().unwrap());
        assert_eq!(study.periods, "uniform:3ms-33ms/1ms".parse().unwrap());
        assert_eq!(study.platform.usable().len(), 24);
        assert_eq!((study.guarantee, study.fill), (Guarantee::Soft, Fill::Drop));
        assert_eq!(
            (study.deadlines, study.charge, study.overhead),
            (Deadlines::Implicit, 1, Duration::ZERO)
        );
        assert_eq!(study.policies, ["p-edf", "g-edf", "c-edf:l2", "c-edf:l3"]);
        let clusters = |level| {
            let spec = model::ClusterSpec::Level(level);
            study
                .platform
                .clusters(spec)
                .unwrap()
                .iter()
                .map(|c| c.len())
                .collect::<Vec<_>>()
        };
        assert_eq!((clusters(2), clusters(3)), (vec![2; 12], vec![6; 4]));
        let caps = study.caps.values();
        assert_eq!(
            (caps.len(), caps[1].to_f64() - caps[0].to_f64()),
            (93, 0.25)
        );
        let delays = study.axis.swept();
        assert_eq!((delays.len(), delays.text(20).as_str()), (21, "2ms"));
    }

    #[test]
    fn every_preset_is_sound_and_has_its_own_name() {
        let all = list();
        for (i, (name, _, _)) in all.iter().enumerate() {
            find(name).unwrap().prepare().map(|_| ()).unwrap();
            assert!(all[i + 1..].iter().all(|other| other.0 != *name), "{name}");
        }
        let figure = find("bastoni11-fig6.1a").unwrap();
        assert_eq!(figure.axis.swept().texts(), ["500us"]);
        let hard = find("bastoni11-fig6.3b").unwrap();
        assert_eq!(hard.guarantee, Guarantee::Hard);
        assert_eq!(hard.utilizations, "bimodal:3/9".parse().unwrap());
        assert_eq!(hard.periods, "moderate".parse().unwrap());
    }

    /// 002 charges measured overheads in its figures; what leaves them out must not pass for the
    /// figure.
    #[test]
    fn every_preset_says_that_kernel_overheads_are_left_out() {
        let members = families::families().into_iter().flat_map(|f| f.studies);
        let members = members.map(|name| find(&name).unwrap());
        let members = members.map(|study| (study.name, study.title, study.source));
        for (name, title, source) in list().into_iter().chain(members) {
            assert!(title.contains("no kernel overheads"), "{name}: {title}");
            let study = find(&name).unwrap();
            let notes = study.notes(&study.prepare().unwrap());
            let note = notes.first().map_or("", String::as_str);
            assert!(
                note.contains(&source) && note.contains("are left out here"),
                "{name}: {note}"
            );
        }
    }

    #[test]
    fn an_unknown_study_is_answered_with_the_nearest() {
        let e = find("ospert10-fig6").unwrap_err().to_string();
        assert!(e.contains("did you mean `ospert10-fig5`?"), "{e}");
    }
}
