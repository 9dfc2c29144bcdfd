//! What both engines share: the processors in a row, and the course of virtual time from instant to
//! instant.

use crate::scenario::Scenario;
use crate::summary::Ending;
use model::CpuId;
use model::watch::Watch;
use policy::{Domain, DomainId, Place};

/// A dense processor: the domains' processors are counted in a row, those of the first domain, then
/// of the second, …
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Processor(pub u32);

impl Processor {
    /// Stands for none.
    pub const NONE: Processor = Processor(u32::MAX);

    /// The first `count` of them.
    pub fn all(count: usize) -> impl Iterator<Item = Processor> {
        (0..count as u32).map(Processor)
    }

    /// For indexing.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// That of a place in the domain whose first processor this is.
    #[inline(always)]
    pub const fn of(self, place: Place) -> Processor {
        Processor(self.0 + place.0)
    }

    /// Its place in the domain with this first processor.
    #[inline(always)]
    pub const fn place_from(self, first: Processor) -> Place {
        Place(self.0 - first.0)
    }
}

/// The processors of all domains.
pub(crate) struct Processors {
    pub ids: Vec<CpuId>,
    /// By domain, its first dense processor.
    pub base: Vec<Processor>,
    /// By dense processor, its domain.
    pub domain_of: Vec<DomainId>,
}

impl Processors {
    pub fn of<P>(domains: &[Domain<P>]) -> Self {
        let mut base = Vec::with_capacity(domains.len());
        let mut domain_of = Vec::new();
        for (index, domain) in (0..).map(DomainId).zip(domains) {
            base.push(Processor(domain_of.len() as u32));
            domain_of.extend(domain.cpus.iter().map(|_| index));
        }
        Processors {
            ids: domains
                .iter()
                .flat_map(|d| d.cpus.iter().copied())
                .collect(),
            base,
            domain_of,
        }
    }

    /// Is a processor one of this domain?
    #[inline]
    pub fn is_in(&self, cpu: Processor, domain: DomainId) -> bool {
        self.domain_of.get(cpu.index()) == Some(&domain)
    }

    /// The processor that handles a release: where the task last ran, if that is in the domain,
    /// else the domain's first.
    #[inline]
    pub fn releasing(&self, domain: DomainId, last: Option<Processor>) -> Processor {
        match last {
            Some(last) if self.is_in(last, domain) => last,
            _ => self.base[domain.index()],
        }
    }

    /// How many processors a domain has.
    #[inline]
    pub fn size(&self, domain: DomainId) -> u32 {
        let end = self.base.get(domain.index() + 1).map(|first| first.0);
        end.unwrap_or(self.ids.len() as u32) - self.base[domain.index()].0
    }
}

/// Domains in which something happened at this instant; each is asked once for its decision.
pub(crate) struct Dirty {
    domains: Vec<DomainId>,
    count: usize,
    /// Where there are several domains.
    is_dirty: Vec<bool>,
    /// Where there is one, whether something happened in it.
    only: Option<bool>,
}

impl Dirty {
    /// At the very start every domain is asked.
    pub fn all(domains: usize) -> Self {
        Dirty {
            // One more than there can be, so that a domain that is in already can be written again
            // behind the last.
            domains: (0..domains as u32 + 1).map(DomainId).collect(),
            count: domains,
            is_dirty: vec![true; domains],
            only: (domains == 1).then_some(true),
        }
    }

    /// Something happened in a domain. Is that news?
    #[inline(always)]
    pub fn mark(&mut self, domain: DomainId) -> bool {
        if let Some(is_dirty) = &mut self.only {
            return !std::mem::replace(is_dirty, true);
        }
        let was = std::mem::replace(&mut self.is_dirty[domain.index()], true);
        self.domains[self.count] = domain;
        self.count += usize::from(!was);
        !was
    }

    /// The domain that was marked last.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<DomainId> {
        if let Some(is_dirty) = &mut self.only {
            return std::mem::replace(is_dirty, false).then_some(DomainId(0));
        }
        if self.count == 0 {
            return None;
        }
        self.count -= 1;
        let domain = self.domains[self.count];
        self.is_dirty[domain.index()] = false;
        Some(domain)
    }
}

/// An engine as the course of time sees it.
pub(crate) trait Engine {
    /// How many instants pass between two looks at the watch.
    const WATCH_EVERY: u32 = 1 << 16;
    /// All that happens at the present instant.
    fn instant(&mut self, horizon: u64);
    /// When something happens next that has to be looked at.
    fn next(&mut self, horizon: u64) -> u64;
    /// Sets the clock.
    fn advance(&mut self, now: u64);
    /// Is a deadline miss known?
    fn has_missed(&self) -> bool;
}

/// Lets time pass until the horizon, the first miss where the scenario says so, or an interruption.
/// Says why it ended and when.
#[inline(always)]
pub(crate) fn run<E: Engine>(
    engine: &mut E,
    scenario: &Scenario,
    watch: &impl Watch,
) -> (Ending, u64) {
    let horizon = scenario.horizon.nanos();
    let mut until_watch = E::WATCH_EVERY;
    let (mut now, mut told) = (0, 0);
    watch.begin("simulating", horizon / 1_000_000);
    loop {
        engine.instant(horizon);
        if scenario.stop_at_miss && engine.has_missed() {
            return (Ending::Miss, now);
        }
        let next = engine.next(horizon);
        if next > horizon || now == horizon {
            return (Ending::Horizon, horizon);
        }
        now = next;
        engine.advance(now);
        until_watch -= 1;
        if until_watch == 0 {
            until_watch = E::WATCH_EVERY;
            watch.advance(now / 1_000_000 - told);
            told = now / 1_000_000;
            if watch.stopped() {
                return (Ending::Interrupted, now);
            }
        }
    }
}
