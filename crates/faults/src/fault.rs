//! A fault: what is done to a run, as data with a text form that can be read back.

use crate::call;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// To which process of a run something is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// The command itself.
    Engine,
    /// The process group of the command.
    Group,
    /// The watchdog of a run.
    Watchdog,
    /// Another process that descends from the command: programs, their children, shells that
    /// guard a setting, the command before it becomes a program. The number is taken modulo how
    /// many there are, by age.
    Other(u32),
    /// A program that came in from outside.
    Outsider,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Engine => f.write_str("engine"),
            Target::Group => f.write_str("group"),
            Target::Watchdog => f.write_str("watchdog"),
            Target::Other(number) => write!(f, "other{number}"),
            Target::Outsider => f.write_str("outsider"),
        }
    }
}

impl FromStr for Target {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "engine" => Target::Engine,
            "group" => Target::Group,
            "watchdog" => Target::Watchdog,
            "outsider" => Target::Outsider,
            _ => Target::Other(
                text.strip_prefix("other")
                    .and_then(|number| number.parse().ok())
                    .ok_or_else(|| format!("`{text}` is no process of a run"))?,
            ),
        })
    }
}

/// A signal that is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signal {
    /// Its number.
    pub number: i32,
    /// Who gets it.
    pub to: Target,
    /// When.
    pub after: Duration,
    /// Since the target is there, not since the start of the command.
    pub of_its_life: bool,
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = if self.of_its_life { "+" } else { "" };
        let micros = self.after.as_micros();
        write!(f, "signal {} {} {since}{micros}us", self.number, self.to)
    }
}

impl FromStr for Signal {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split(' ').collect();
        let ["signal", number, to, after] = words[..] else {
            return Err(format!("`{text}` is not `signal NUMBER PROCESS TIMEus`"));
        };
        let (of_its_life, time) = match after.strip_prefix('+') {
            Some(time) => (true, time),
            None => (false, after),
        };
        let micros = time.strip_suffix("us").and_then(|n| n.parse().ok());
        let number: i32 = number
            .parse()
            .map_err(|_| format!("`{number}` is no signal"))?;
        if !(1..=64).contains(&number) {
            return Err(format!("`{number}` is no signal"));
        }
        Ok(Signal {
            number,
            to: to.parse()?,
            after: Duration::from_micros(micros.ok_or_else(|| format!("`{after}` is no time"))?),
            of_its_life,
        })
    }
}

/// System calls that fail.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Which.
    pub kind: &'static call::Kind,
    /// The how manieth of them in the whole run fails, from 1.
    pub nth: u32,
    /// How, by name and number.
    pub error: (&'static str, i32),
    /// All that come after it fail as well.
    pub onwards: bool,
}

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let onwards = if self.onwards { " onwards" } else { "" };
        write!(
            f,
            "call {} {} {}{onwards}",
            self.kind.name, self.nth, self.error.0
        )
    }
}

impl FromStr for Call {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split(' ').collect();
        let (words, onwards) = match words[..] {
            [.., "onwards"] => (&words[..words.len() - 1], true),
            _ => (&words[..], false),
        };
        let ["call", kind, nth, error] = words[..] else {
            return Err(format!(
                "`{text}` is not `call KIND NUMBER ERROR [onwards]`"
            ));
        };
        Ok(Call {
            kind: call::find(kind).ok_or_else(|| format!("`{kind}` is no kind of call"))?,
            nth: nth.parse().map_err(|_| format!("`{nth}` is no number"))?,
            error: call::error(error).ok_or_else(|| format!("`{error}` is no error"))?,
            onwards,
        })
    }
}

/// A limit of the process (setrlimit(2)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Open descriptors.
    Descriptors,
    /// The size of a file in bytes.
    FileSize,
    /// The address space in bytes.
    AddressSpace,
    /// The stack in bytes.
    Stack,
}

impl Limit {
    /// All, with the names that stand in trials.
    pub const ALL: [(&'static str, Limit); 4] = [
        ("descriptors", Limit::Descriptors),
        ("file-size", Limit::FileSize),
        ("address-space", Limit::AddressSpace),
        ("stack", Limit::Stack),
    ];
}

/// What is done to a run.
#[derive(Clone, PartialEq, Debug)]
pub enum Fault {
    /// Nothing.
    None,
    /// Signals, each at its moment.
    Signals(Vec<Signal>),
    /// System calls fail.
    Call(Call),
    /// The command has a limit, which its descendants inherit.
    Limit(Limit, u64),
    /// What the command writes goes to a disk of so many bytes.
    Disk(u64),
    /// Trace and standard output go to `/dev/full`.
    Device,
}

impl Fault {
    /// The kind, for tables.
    pub fn kind(&self) -> String {
        match self {
            Fault::None => "none".to_owned(),
            Fault::Signals(signals) => match &signals[..] {
                [_] => "one signal".to_owned(),
                [first, ..] if first.number == libc::SIGSTOP => "stop".to_owned(),
                _ => "two signals".to_owned(),
            },
            Fault::Call(call) => {
                let onwards = if call.onwards { ", onwards" } else { "" };
                format!("call: {}{onwards}", call.kind.name)
            }
            Fault::Limit(..) => "limit".to_owned(),
            Fault::Disk(_) | Fault::Device => "disk full".to_owned(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::None => f.write_str("none"),
            Fault::Signals(signals) => {
                let all: Vec<String> = signals.iter().map(Signal::to_string).collect();
                f.write_str(&all.join(" and "))
            }
            Fault::Call(call) => call.fmt(f),
            Fault::Limit(limit, value) => {
                let named = Limit::ALL.iter().find(|(_, l)| l == limit);
                write!(f, "limit {} {value}", named.map_or("", |(name, _)| name))
            }
            Fault::Disk(bytes) => write!(f, "disk {bytes}"),
            Fault::Device => f.write_str("device"),
        }
    }
}

impl FromStr for Fault {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.parse::<u64>()
                .map_err(|_| format!("`{text}` is no number"))
        };
        let words: Vec<&str> = text.split(' ').collect();
        Ok(match words[..] {
            ["none"] => Fault::None,
            ["device"] => Fault::Device,
            ["disk", bytes] => Fault::Disk(number(bytes)?),
            ["limit", name, value] => {
                let limit = Limit::ALL.iter().find(|(known, _)| *known == name);
                let (_, limit) = limit.ok_or_else(|| format!("`{name}` is no limit"))?;
                Fault::Limit(*limit, number(value)?)
            }
            ["call", ..] => Fault::Call(text.parse()?),
            ["signal", ..] => {
                let all: Result<_, _> = text.split(" and ").map(str::parse).collect();
                Fault::Signals(all?)
            }
            _ => return Err(format!("`{text}` is no fault")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for text in [
            "none",
            "signal 9 engine 12500us",
            "signal 9 engine 12500us and signal 9 watchdog +12500us",
            "signal 19 other3 +1000us and signal 64 group 2000us",
            "call write 17 ENOSPC",
            "call memory 1 ENOMEM onwards",
            "limit descriptors 12",
            "disk 65536",
            "device",
        ] {
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_fault_is_refused() {
        for text in [
            "",
            "signal 65 engine 1us",
            "signal 9 nobody 1us",
            "signal 9 engine 1ms",
            "call write 17 ENONE",
            "call walk 17 EIO",
            "limit luck 1",
            "disk much",
        ] {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
    }
}
