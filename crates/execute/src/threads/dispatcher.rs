//! A dispatcher: the thread of a processor that carries the decisions of its domain out, above all
//! jobs.
//!
//! It sleeps until it is called (a job has finished on its processor, mail has come) or, as the
//! leader of its domain, until something is due. The leader alone looks after timers, so that one
//! processor of a domain takes all releases (the release master of 002 §5.1.1).

use crate::backend::Host;
use crate::clock::Timestamps;
use crate::colored::{self, Provider, Who};
use crate::domain::Domain;
use crate::ids::PostId;
use crate::kernel::{self, Thread};
use crate::remedies::MORE_THREADS;
use crate::stage::{Domains, Stage, open};
use crate::threads::backend::ThreadBackend;
use crate::threads::host::ThreadTeam;
use crate::threads::host::Threads;
use crate::threads::panics;
use crate::threads::post::PostWords;
use model::{Duration, Error, Result};
use policy::{Place, Policy};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;

/// How often a dispatcher gives a sign of life although nothing happens.
const BEAT: Duration = Duration::from_millis(50);
/// How often it tries to get the lock before it sleeps for it: whoever has it runs on another
/// processor and is quick.
const TRIES: u32 = 2_000;

/// How the names of their threads begin; the processor follows.
const NAME: &str = "dispatcher ";

/// Is this the name of a dispatcher's thread, of this run or another?
pub(crate) fn is_name(name: &str) -> bool {
    let cpu = name.strip_prefix(NAME);
    cpu.is_some_and(|cpu| !cpu.is_empty() && cpu.bytes().all(|b| b.is_ascii_digit()))
}

/// A domain whose decisions threads carry out.
pub(crate) type ThreadDomain<P> = Domain<P, ThreadBackend>;

/// A stage with dispatchers.
pub(crate) trait ThreadStage: Stage<Threads> {
    /// Starts its dispatchers, which wait for the stage to begin.
    ///
    /// # Errors
    /// No thread can be had.
    fn start(
        &self,
        team: &Arc<ThreadTeam>,
        provider: Option<&Arc<dyn Provider>>,
    ) -> Result<Vec<JoinHandle<()>>>;
}

impl<P: Policy + Send + 'static> ThreadStage for Domains<P, ThreadBackend> {
    fn start(
        &self,
        team: &Arc<ThreadTeam>,
        provider: Option<&Arc<dyn Provider>>,
    ) -> Result<Vec<JoinHandle<()>>> {
        let mut post = self.site.post;
        let mut started = Vec::new();
        for domain in &self.domains {
            let places = open(domain).books.cpus.len();
            for place in Place::all(places) {
                let at = (self.site.stage, post.of(place));
                started.push(start(team, domain, at, provider.cloned())?);
            }
            post = PostId(post.0 + places as u32);
        }
        Ok(started)
    }
}

/// Starts the dispatcher of a post for a stage. It begins its work once the stage rules, the team
/// knows its timeline and it is called.
fn start<P: Policy + Send + 'static>(
    team: &Arc<ThreadTeam>,
    domain: &Arc<Mutex<ThreadDomain<P>>>,
    (stage, post): (u32, PostId),
    provider: Option<Arc<dyn Provider>>,
) -> Result<JoinHandle<()>> {
    let (team, domain) = (Arc::clone(team), Arc::clone(domain));
    let cpu = team.posts[post.index()].cpu;
    std::thread::Builder::new()
        .name(format!("{NAME}{cpu}").chars().take(15).collect())
        .stack_size(512 << 10)
        .spawn(move || {
            colored::on_its_stack(provider.as_ref(), Who::Dispatcher, || {
                dispatch(&team, &domain, stage, post)
            });
        })
        .map_err(|e| {
            Error::new(format!(
                "cannot start the dispatcher of processor {cpu}: {e}"
            ))
            .remedy(MORE_THREADS)
        })
}

fn enter<T>(domain: &Mutex<T>) -> MutexGuard<'_, T> {
    for _ in 0..TRIES {
        match domain.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
        }
    }
    domain.lock().unwrap_or_else(PoisonError::into_inner)
}

fn dispatch<P: Policy>(
    team: &Arc<ThreadTeam>,
    domain: &Mutex<ThreadDomain<P>>,
    stage: u32,
    id: PostId,
) {
    let post = &team.posts[id.index()];
    panics::lower_on_panic(team, panics::Who::Dispatcher(post.slot));
    let Ok(_entry) = team.host.board.enter().map_err(|e| team.fail(e)) else {
        return;
    };
    let thread = Thread::current();
    let settled = thread
        .pin(post.cpu)
        .and_then(|()| thread.raise(kernel::DISPATCHER.get()));
    if let Err(e) = settled {
        team.fail(
            Error::new(format!("cannot dispatch on processor {}: {e}", post.cpu))
                .remedy("run as root, on processors that are in this process's cpuset"),
        );
        return;
    }
    kernel::without_timer_slack();
    team.host.post(id).take(thread);
    // A policy that panics ends the run ([`panics`]).
    let work = std::panic::AssertUnwindSafe(|| {
        serve(team, domain, stage, id);
        team.leave_stage(stage);
    });
    // What it says has been said.
    let _ = std::panic::catch_unwind(work);
    team.host.board.rest(post.slot as usize);
    // It fails only where the kernel has lost the thread.
    let _ = thread.lower();
}

fn serve<P: Policy>(team: &ThreadTeam, domain: &Mutex<ThreadDomain<P>>, stage: u32, id: PostId) {
    let (post, words) = (&team.posts[id.index()], team.host.post(id));
    let leader = team.inboxes[post.domain.index()].leader;
    let here = Place(id.0 - leader.0);
    loop {
        let seen = words.calls();
        let mut until = kernel::monotonic() + BEAT.nanos();
        if team.ruling() < stage && !team.ending.load(Ordering::Acquire) {
            // Its time has not come; the watchdog does not miss it.
            words.sleep(seen, until);
            continue;
        }
        team.host.board.beat(post.slot as usize);
        if let Some(timeline) = team.timeline() {
            let begin = timeline.reading(model::Instant::ZERO);
            if crate::clock::Monotonic.read() < begin {
                until = until.min(begin);
            } else {
                let mut domain = enter(domain);
                if domain.ended {
                    return;
                }
                domain.step(team, here);
                let next = domain.next();
                if domain.ended {
                    // The others of the domain end too.
                    for (other, _) in team
                        .posts_of(stage)
                        .filter(|(_, p)| p.domain == post.domain)
                    {
                        team.host.call(other);
                    }
                    return;
                }
                if id == leader {
                    domain.armed = next;
                    let due = timeline.reading(model::Instant::from_nanos(next));
                    team.host.board.due(post.slot as usize, Some(due));
                    let early = domain.early(here);
                    until = until.min(due.saturating_sub(early));
                    if early > 0 && kernel::monotonic() >= until && until < due {
                        domain.foresee();
                        drop(domain);
                        spin(words, seen, due);
                        continue;
                    }
                } else if next < domain.armed {
                    team.host.call(leader);
                }
            }
        } else if team.ending.load(Ordering::Acquire) {
            return;
        }
        words.sleep(seen, until);
    }
}

/// Waits on the processor, which has nothing better to do, for a reading of the clock or a call.
fn spin(post: &PostWords, seen: u32, until: u64) {
    while post.calls() == seen && kernel::monotonic() < until {
        std::hint::spin_loop();
    }
}
