//! Which jobs give a sample (000 §3.1): those that went as in Fig. 1, cold, warm, preempted or
//! migrated once, and through their working set again. All others are counted by why they did not.
//!
//! The engine tells of preemptions, the job confirms them by its own clock: it was away about as
//! long as it is told, and it is where it is told to be. Assumes that counts only grow.

use model::CpuId;
use serde::{Deserialize, Serialize};

/// What the control page of a task says (000 §3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct News {
    /// How often the task was preempted and went on on the same processor.
    pub preemptions: u64,
    /// How often it was preempted and went on on another one.
    pub migrations: u64,
    /// How long it was away the last time, in nanoseconds.
    pub length: u64,
    /// The processor that its job was chosen for.
    pub processor: CpuId,
}

impl News {
    /// How often it was preempted, wherever it went on.
    pub fn times(&self) -> u64 {
        self.preemptions + self.migrations
    }
}

/// How a job went, as the page and its own clock tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account {
    /// The page before t0.
    pub began: News,
    /// The page at t2; `None`: the job had no time to get there.
    pub warm: Option<News>,
    /// What it found when it came back; `None`: it was not preempted while it waited for that.
    pub back: Option<Back>,
}

/// A job that came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Back {
    /// The page at t4.
    pub news: News,
    /// The page at t5.
    pub end: News,
    /// The processor at t2.
    pub left: CpuId,
    /// The processor at t4.
    pub on: CpuId,
    /// t4 − t3 by the job's own clock, in nanoseconds.
    pub away: u64,
}

/// Why a job gave no sample.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Its WCET is too short for its walks.
    TooShort,
    /// It was preempted before its working set was warm.
    Early,
    /// It was not preempted.
    NotPreempted,
    /// It was preempted again before it had walked through its working set.
    Again,
    /// Its clock, or its processor, contradicts the page.
    Unconfirmed,
    /// It came back more than 5 ms later than it is told: the machine stood still.
    Late,
}

impl Why {
    /// As the end of a sentence, "n jobs gave none because …".
    pub const fn because(self) -> &'static str {
        match self {
            Why::TooShort => "their WCET is too short for their walks",
            Why::Early => "they were preempted before their working set was warm",
            Why::NotPreempted => "they were not preempted while they waited for it",
            Why::Again => "they were preempted again before the last walk was done",
            Why::Unconfirmed => "their clock or processor contradicts what they were told",
            Why::Late => "they came back more than 5 ms later than they were told",
        }
    }
}

/// A job may be away for so much less than it is told, in nanoseconds: who is preempted from
/// another processor goes on until the interrupt comes.
pub const EARLIER: u64 = 100_000;
/// And for so much more, in nanoseconds: from the decision until the job goes on.
pub const LATER: u64 = 5_000_000;

/// Does the job give a sample?
///
/// # Errors
/// Why it does not.
pub fn decide(account: &Account) -> Result<Back, Why> {
    let Some(warm) = account.warm else {
        return Err(Why::TooShort);
    };
    if warm.times() != account.began.times() {
        return Err(Why::Early);
    }
    let Some(back) = account.back else {
        return Err(Why::NotPreempted);
    };
    let times = back.news.times().saturating_sub(warm.times());
    if times > 1 || back.end.times() != back.news.times() {
        return Err(Why::Again);
    }
    let migrated = back.news.migrations > warm.migrations;
    let is_there = back.on == back.news.processor && back.left == warm.processor;
    let is_told = times == 1 && migrated == (back.left != back.on);
    if !is_there || !is_told || back.away.saturating_add(EARLIER) < back.news.length {
        return Err(Why::Unconfirmed);
    }
    if back.away > back.news.length.saturating_add(LATER) {
        return Err(Why::Late);
    }
    Ok(back)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(preemptions: u64, migrations: u64, length: u64, processor: u32) -> News {
        News {
            preemptions,
            migrations,
            length,
            processor: CpuId(processor),
        }
    }

    /// A job that was preempted on processor 0 for 2 ms, and went on there.
    fn as_in_figure_1() -> (Account, Back) {
        let back = Back {
            news: news(5, 3, 2_000_000, 0),
            end: news(5, 3, 2_000_000, 0),
            left: CpuId(0),
            on: CpuId(0),
            away: 2_010_000,
        };
        let account = Account {
            began: news(4, 3, 700, 0),
            warm: Some(news(4, 3, 700, 0)),
            back: Some(back),
        };
        (account, back)
    }

    /// What comes of such a job once it is changed.
    fn changed(change: impl FnOnce(&mut Account, &mut Back)) -> Result<Back, Why> {
        let (mut account, mut back) = as_in_figure_1();
        change(&mut account, &mut back);
        if account.back.is_some() {
            account.back = Some(back);
        }
        decide(&account)
    }

    #[test]
    fn a_job_that_went_as_in_the_figure_is_a_sample() {
        let (account, back) = as_in_figure_1();
        assert_eq!(decide(&account), Ok(back));
        let migrated = changed(|_, back| {
            (back.news, back.end) = (news(4, 4, 2_000_000, 1), news(4, 4, 2_000_000, 1));
            back.on = CpuId(1);
        });
        assert!(migrated.is_ok(), "{migrated:?}");
    }

    #[test]
    fn jobs_that_went_otherwise_say_why() {
        assert_eq!(changed(|a, _| a.warm = None), Err(Why::TooShort));
        let early = changed(|a, _| a.warm = Some(news(5, 3, 9, 0)));
        assert_eq!(early, Err(Why::Early));
        assert_eq!(changed(|a, _| a.back = None), Err(Why::NotPreempted));
        // In the last walk, or twice before it was looked.
        let in_walk = changed(|_, b| b.end = news(6, 3, 9, 0));
        assert_eq!(in_walk, Err(Why::Again));
        let twice = changed(|_, b| (b.news, b.end) = (news(6, 3, 9, 0), news(6, 3, 9, 0)));
        assert_eq!(twice, Err(Why::Again));
    }

    #[test]
    fn what_the_clock_does_not_confirm_is_no_sample() {
        // Told to be away for 2 ms, and it was for 1.
        let present = changed(|_, b| b.away = 1_000_000);
        assert_eq!(present, Err(Why::Unconfirmed));
        assert!(changed(|_, b| b.away = 1_900_001).is_ok());
        // Somewhere else than told; a migration that ends where it began, and the other way round.
        assert_eq!(changed(|_, b| b.on = CpuId(1)), Err(Why::Unconfirmed));
        let stayed = changed(|_, b| (b.news, b.end) = (news(4, 4, 9, 0), news(4, 4, 9, 0)));
        assert_eq!(stayed, Err(Why::Unconfirmed));
        let unsaid = changed(|_, b| {
            (b.news, b.end) = (news(5, 3, 2_000_000, 1), news(5, 3, 2_000_000, 1));
            b.on = CpuId(1);
        });
        assert_eq!(unsaid, Err(Why::Unconfirmed));
        assert_eq!(changed(|_, b| b.away = 7_000_001), Err(Why::Late));
        assert!(changed(|_, b| b.away = 7_000_000).is_ok());
    }
}
