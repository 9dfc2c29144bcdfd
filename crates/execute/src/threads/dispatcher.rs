//! A dispatcher: the thread of a processor that carries the decisions of its domain out, above all jobs.
//!
//! It sleeps until it is called (a job has finished on its processor, mail has come) or, as the leader of its domain, until
//! something is due. The leader alone looks after timers, so that one processor of a domain takes all releases
//! (the release master of 002 §5.1.1).

use crate::clock::Timestamps;
use crate::colored::{self, Provider, Who};
use crate::domain::Core;
use crate::kernel::{self, Thread};
use crate::team::{MORE_THREADS, Team};
use crate::threads::panics;
use model::{Duration, Error, Result};
use policy::Policy;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;

/// How often a dispatcher gives a sign of life although nothing happens.
const BEAT: Duration = Duration::from_millis(50);
/// How often it tries to get the lock before it sleeps for it: whoever has it runs on another processor and is quick.
const TRIES: u32 = 2_000;

/// How the names of their threads begin; the processor follows.
const NAME: &str = "dispatcher ";

/// Is this the name of a dispatcher's thread, of this run or another?
pub(crate) fn is_name(name: &str) -> bool {
    let cpu = name.strip_prefix(NAME);
    cpu.is_some_and(|cpu| !cpu.is_empty() && cpu.bytes().all(|b| b.is_ascii_digit()))
}

/// Starts the dispatcher of a post for a stage. It begins its work once the stage rules, the team knows its timeline and it is
/// called.
pub(crate) fn start<P: Policy + Send + 'static>(
    team: &Arc<Team>,
    core: &Arc<Mutex<Core<P>>>,
    (stage, place): (u32, u32),
    provider: Option<Arc<dyn Provider>>,
) -> Result<JoinHandle<()>> {
    let (team, core) = (Arc::clone(team), Arc::clone(core));
    let cpu = team.posts[place as usize].cpu;
    std::thread::Builder::new()
        .name(format!("{NAME}{cpu}").chars().take(15).collect())
        .stack_size(512 << 10)
        .spawn(move || {
            colored::on_its_stack(provider.as_ref(), Who::Dispatcher, || {
                dispatch(&team, &core, stage, place)
            });
        })
        .map_err(|e| {
            Error::new(format!("cannot start the dispatcher of processor {cpu}: {e}")).remedy(MORE_THREADS)
        })
}

fn enter<P>(core: &Mutex<Core<P>>) -> MutexGuard<'_, Core<P>> {
    for _ in 0..TRIES {
        match core.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
        }
    }
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

fn dispatch<P: Policy>(team: &Arc<Team>, core: &Mutex<Core<P>>, stage: u32, place: u32) {
    let post = &team.posts[place as usize];
    panics::lower_on_panic(team, panics::Who::Dispatcher(post.beat));
    let Ok(_entry) = team.board.enter().map_err(|e| team.fail(e)) else {
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
    post.taken.store(true, Ordering::Release);
    let is_leader = team.inboxes[post.domain as usize].leader == place;
    // A policy that panics ends the run ([`panics`]).
    let work = std::panic::AssertUnwindSafe(|| {
        serve(team, core, stage, place, is_leader);
        team.leave_stage(stage);
    });
    // What it says has been said.
    let _ = std::panic::catch_unwind(work);
    team.board.rest(post.beat as usize);
    // It fails only where the kernel has lost the thread.
    let _ = thread.lower();
}

fn serve<P: Policy>(team: &Team, core: &Mutex<Core<P>>, stage: u32, place: u32, is_leader: bool) {
    let post = &team.posts[place as usize];
    loop {
        let seen = post.calls();
        let mut until = kernel::monotonic() + BEAT.nanos();
        if team.ruling() < stage && !team.ending.load(Ordering::Acquire) {
            // Its time has not come; the watchdog does not miss it.
            post.sleep(seen, until);
            continue;
        }
        team.board.beat(post.beat as usize);
        if let Some(timeline) = team.timeline() {
            let begin = timeline.reading(model::Instant::ZERO);
            if crate::clock::Monotonic.read() < begin {
                until = until.min(begin);
            } else {
                let mut core = enter(core);
                if core.ended {
                    return;
                }
                let here = place - core.ground.first_post;
                core.step(team, timeline, here);
                let next = core.next();
                if core.ended {
                    // The others of the domain end too.
                    for other in team.posts.iter().filter(|p| p.domain == post.domain) {
                        other.call();
                    }
                    return;
                }
                if is_leader {
                    core.armed = next;
                    let due = timeline.reading(model::Instant::from_nanos(next));
                    team.board.due(post.beat as usize, Some(due));
                    let early = core.early(here);
                    until = until.min(due.saturating_sub(early));
                    if early > 0 && kernel::monotonic() >= until && until < due {
                        core.foresee();
                        drop(core);
                        spin(post, seen, due);
                        continue;
                    }
                } else if next < core.armed {
                    let leader = team.inboxes[post.domain as usize].leader;
                    team.posts[leader as usize].call();
                }
            }
        } else if team.ending.load(Ordering::Acquire) {
            return;
        }
        post.sleep(seen, until);
    }
}

/// Waits on the processor, which has nothing better to do, for a reading of the clock or a call.
fn spin(post: &crate::team::Post, seen: u32, until: u64) {
    while post.calls() == seen && kernel::monotonic() < until {
        std::hint::spin_loop();
    }
}
