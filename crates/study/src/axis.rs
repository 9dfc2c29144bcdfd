//! What a study sweeps: the delay D of 000 §5 and 002 §6.3, the working set size ξ of 002 §6.4, a
//! factor on overheads, or the number of processors.

use crate::grid::{Factor, Grid, Value};
use model::{Bytes, Duration, Error, Overheads, Ratio, Result};
use serde::Serialize;

/// The quantity of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// One cache delay D, the same for every task and every way to go on.
    Delay,
    /// The working set size ξ of every task; what it costs stands in the profile.
    WorkingSet,
    /// A factor on every overhead of the profile, cache delays included.
    OverheadFactor,
    /// The number of processors of the platform, which is scaled.
    Processors,
}

impl Quantity {
    /// All, in the order of documents.
    pub const ALL: [Quantity; 4] = [
        Quantity::Delay,
        Quantity::WorkingSet,
        Quantity::OverheadFactor,
        Quantity::Processors,
    ];

    /// The key of a study file that sweeps it.
    pub const fn key(self) -> &'static str {
        match self {
            Quantity::Delay => "delays",
            Quantity::WorkingSet => "working_sets",
            Quantity::OverheadFactor => "overhead_factors",
            Quantity::Processors => "processors",
        }
    }

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Quantity::Delay => "delay",
            Quantity::WorkingSet => "working_set",
            Quantity::OverheadFactor => "overhead_factor",
            Quantity::Processors => "processors",
        }
    }

    /// Its letter in formulas and figures.
    pub const fn symbol(self) -> &'static str {
        match self {
            Quantity::Delay => "D",
            Quantity::WorkingSet => "ξ",
            Quantity::OverheadFactor => "f",
            Quantity::Processors => "m",
        }
    }

    /// The unit of its values in results: `ns`, `B`, or none.
    pub const fn unit(self) -> &'static str {
        match self {
            Quantity::Delay => "ns",
            Quantity::WorkingSet => "B",
            Quantity::OverheadFactor | Quantity::Processors => "",
        }
    }

    /// What it is, in words.
    const fn words(self) -> &'static str {
        match self {
            Quantity::Delay => "cache-related delay of one preemption or migration",
            Quantity::WorkingSet => "working set size of every task",
            Quantity::OverheadFactor => "factor on all overheads",
            Quantity::Processors => "number of processors",
        }
    }

    /// A number of it as people write it.
    pub(crate) fn text(self, number: u64) -> String {
        match self {
            Quantity::Delay => Duration::from_nanos(number).to_string(),
            Quantity::WorkingSet => Bytes::new(number).to_string(),
            Quantity::OverheadFactor => {
                Factor::of(number).map_or_else(String::new, |f| f.to_string())
            }
            Quantity::Processors => number.to_string(),
        }
    }

    /// The number of it that people write so.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn read(self, text: &str) -> Result<u64> {
        match self {
            Quantity::Delay => text.parse::<Duration>().map(Duration::nanos),
            Quantity::WorkingSet => text.parse::<Bytes>().map(Bytes::get),
            Quantity::OverheadFactor => {
                let ratio: Ratio = text.parse()?;
                Factor::try_from(ratio).map(Value::number)
            }
            Quantity::Processors => text.parse().map_err(|_| {
                Error::new(format!("`{text}` is no number of processors"))
                    .remedy("write a whole number")
            }),
        }
    }
}

/// What a study sweeps, with its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Axis {
    /// Delays D.
    Delays(Grid<Duration>),
    /// Working set sizes ξ.
    WorkingSets(Grid<Bytes>),
    /// Factors on all overheads.
    OverheadFactors(Grid<Factor>),
    /// Numbers of processors; caps are shares of them.
    Processors(Grid<u32>),
}

impl Axis {
    /// What is swept.
    pub fn quantity(&self) -> Quantity {
        match self {
            Axis::Delays(_) => Quantity::Delay,
            Axis::WorkingSets(_) => Quantity::WorkingSet,
            Axis::OverheadFactors(_) => Quantity::OverheadFactor,
            Axis::Processors(_) => Quantity::Processors,
        }
    }

    /// The values, as it stands in a file.
    pub fn written(&self) -> String {
        match self {
            Axis::Delays(grid) => grid.written(),
            Axis::WorkingSets(grid) => grid.written(),
            Axis::OverheadFactors(grid) => grid.written(),
            Axis::Processors(grid) => grid.written(),
        }
    }

    /// The values by their numbers, ascending.
    pub fn numbers(&self) -> Vec<u64> {
        fn of<T: Value>(grid: &Grid<T>) -> Vec<u64> {
            grid.values().into_iter().map(Value::number).collect()
        }
        match self {
            Axis::Delays(grid) => of(grid),
            Axis::WorkingSets(grid) => of(grid),
            Axis::OverheadFactors(grid) => of(grid),
            Axis::Processors(grid) => of(grid),
        }
    }

    /// As results tell it.
    pub fn swept(&self) -> Swept {
        Swept {
            quantity: self.quantity(),
            scaled_from: None,
            factor_on: None,
            points: self.numbers(),
            drawn_to: None,
        }
    }
}

/// The axis of results: the quantity and its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Swept {
    /// What is swept.
    pub quantity: Quantity,
    /// The platform that is scaled to other numbers of processors.
    pub scaled_from: Option<String>,
    /// Which overheads a factor multiplies, where it is not all.
    pub factor_on: Option<Overheads>,
    /// The values by their numbers, ascending: nanoseconds, bytes, thousandths of a factor,
    /// processors.
    pub points: Vec<u64>,
    /// Up to which of these numbers charts go; `None`: to the end.
    pub drawn_to: Option<u64>,
}

impl Swept {
    /// How many values.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// What it is, in words.
    pub fn title(&self) -> String {
        match (&self.scaled_from, self.factor_on) {
            (Some(platform), _) => format!("{}, scaled from {platform}", self.quantity.words()),
            (None, Some(on)) => format!("factor on the overheads {on}"),
            (None, None) => self.quantity.words().to_owned(),
        }
    }

    /// A value by its place, in its unit.
    pub fn value(&self, at: usize) -> f64 {
        self.in_unit(self.points[at])
    }

    fn in_unit(&self, number: u64) -> f64 {
        match self.quantity {
            Quantity::OverheadFactor => number as f64 / 1000.0,
            _ => number as f64,
        }
    }

    /// Up to which value charts go, in its unit; `None`: to the end.
    pub fn drawn_to(&self) -> Option<f64> {
        self.drawn_to.map(|number| self.in_unit(number))
    }

    /// A value by its place, as people write it: `500us`, `64KiB`, `1.5`, `24`.
    pub fn text(&self, at: usize) -> String {
        self.quantity.text(self.points[at])
    }

    /// All values as people write them.
    pub fn texts(&self) -> Vec<String> {
        (0..self.len()).map(|at| self.text(at)).collect()
    }

    /// The place of a value as people write it.
    ///
    /// # Errors
    /// It is no value of this quantity, or the study has no such value.
    pub fn place(&self, text: &str) -> Result<usize> {
        let number = self.quantity.read(text)?;
        self.points.binary_search(&number).map_err(|_| {
            let name = self.quantity.name().replace('_', " ");
            Error::new(format!(
                "the study has no {name} of {}",
                self.quantity.text(number)
            ))
            .remedy(match self.len() {
                0 => "run it with more values".to_owned(),
                n => format!("it has {n} from {} to {}", self.text(0), self.text(n - 1)),
            })
        })
    }
}

/// `{"name": "delay", "symbol": "D", "title": …, "unit": "ns", "points": […]}`.
impl Serialize for Swept {
    fn serialize<S: serde::Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(untagged)]
        enum Points<'a> {
            Whole(&'a [u64]),
            Fractions(Vec<f64>),
        }
        #[derive(Serialize)]
        struct Out<'a> {
            name: &'a str,
            symbol: &'a str,
            title: String,
            unit: &'a str,
            points: Points<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            drawn_to: Option<f64>,
        }
        let out = Out {
            name: self.quantity.name(),
            symbol: self.quantity.symbol(),
            title: self.title(),
            unit: self.quantity.unit(),
            points: match self.quantity {
                Quantity::OverheadFactor => {
                    Points::Fractions((0..self.len()).map(|at| self.value(at)).collect())
                }
                _ => Points::Whole(&self.points),
            },
            drawn_to: self.drawn_to(),
        };
        out.serialize(s)
    }
}
