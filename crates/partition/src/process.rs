//! Which process has a number: numbers are given anew when a process has ended, the moment of its beginning tells it apart
//! (proc(5), `/proc/PID/stat`, field 22).

/// When a process began, in ticks since the machine did; `None` where there is none, or it has ended and waits to be reaped.
pub fn began(pid: u32) -> Option<u64> {
    began_in(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name, in parentheses, may hold anything; what follows the last one is plain.
fn began_in(stat: &str) -> Option<u64> {
    let mut rest = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    match rest.next()? {
        "Z" | "X" | "x" => None,
        _ => rest.nth(18)?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_there_until_it_ends() {
        assert!(began(std::process::id()).is_some());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        assert!(began(pid).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(began(pid), None);
    }

    #[test]
    fn names_may_hold_anything() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(began_in(&format!("12 (a) b) {rest}")), Some(4711));
        assert_eq!(
            began_in("12 (a) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711"),
            None
        );
        assert_eq!(began_in("12 (a"), None);
    }
}
