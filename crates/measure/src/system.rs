//! What the system says about itself while we measure: kernel, processor time of others, time taken
//! by the hypervisor.

use model::CpuSet;

/// This moment in UTC, as provenances have it.
pub fn now() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}

/// Release and version of the kernel, as `uname` has them.
pub fn kernel() -> String {
    let read = |name: &str| {
        std::fs::read_to_string(format!("/proc/sys/kernel/{name}"))
            .map(|text| text.trim().to_owned())
            .unwrap_or_default()
    };
    format!("{} {}", read("osrelease"), read("version"))
        .trim()
        .to_owned()
}

/// The frequency governor of the processors, if there is one: all of them, each once.
pub fn governors(cpus: &CpuSet) -> Vec<String> {
    let mut names: Vec<String> = cpus
        .iter()
        .filter_map(|cpu| {
            std::fs::read_to_string(format!(
                "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"
            ))
            .ok()
        })
        .map(|text| text.trim().to_owned())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Processor time of some processors, in seconds since the system started.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Usage {
    /// All of it, idle too.
    total: f64,
    /// Programs, the kernel, interrupts: of everyone on these processors.
    busy: f64,
    /// The hypervisor's.
    steal: f64,
    /// Of this process, on any processor.
    own: f64,
}

impl Usage {
    /// As it is now; zeros where the system does not say.
    pub fn now(cpus: &CpuSet) -> Self {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let ticks = rustix::param::clock_ticks_per_second().max(1) as f64;
        let mut usage = Usage::parse(&text, cpus, ticks);
        usage.own = machine::clock::process_time().as_secs_f64();
        usage
    }

    fn parse(stat: &str, cpus: &CpuSet, ticks: f64) -> Self {
        let mut usage = Usage::default();
        for line in stat.lines() {
            let mut words = line.split_whitespace();
            let cpu = words
                .next()
                .and_then(|name| name.strip_prefix("cpu"))
                .and_then(|number| number.parse().ok())
                .map(model::CpuId);
            if !cpu.is_some_and(|cpu| cpus.contains(cpu)) {
                continue;
            }
            // user nice system idle iowait irq softirq steal (proc(5)); guest time is in user
            // already.
            let t: Vec<f64> = words
                .map(|w| w.parse().unwrap_or(0.0) / ticks)
                .take(8)
                .collect();
            if let [user, nice, system, idle, iowait, irq, softirq, steal] = t[..] {
                let busy = user + nice + system + irq + softirq;
                usage.busy += busy;
                usage.steal += steal;
                usage.total += busy + idle + iowait + steal;
            }
        }
        usage
    }

    /// What parts of the processors' time since `earlier` other programs and the hypervisor had, in
    /// [0, 1].
    pub fn since(&self, earlier: &Usage) -> (f64, f64) {
        let total = self.total - earlier.total;
        if total <= 0.0 {
            return (0.0, 0.0);
        }
        let foreign = (self.busy - earlier.busy) - (self.own - earlier.own);
        let part = |seconds: f64| (seconds / total).clamp(0.0, 1.0);
        (part(foreign), part(self.steal - earlier.steal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_others_is_what_is_busy_and_not_ours() {
        let cpus: CpuSet = "0-1".parse().unwrap();
        let before = Usage::parse(
            "cpu 1 1 1\ncpu0 100 0 0 900 0 0 0 0 0 0\ncpu1 0 0 0 1000 0 0 0 0\n",
            &cpus,
            100.0,
        );
        let mut after = Usage::parse(
            "cpu0 150 0 10 930 5 0 0 5 0 0\ncpu1 0 0 0 1100 0 0 0 0\ncpu2 9999 0 0 0 0 0 0 0\n",
            &cpus,
            100.0,
        );
        after.own = 0.4;
        let (foreign, steal) = after.since(&before);
        // Two processors for a second: 0.6 s busy, 0.4 s of them ours.
        assert!((foreign - 0.1).abs() < 1e-9, "{foreign}");
        assert!((steal - 0.025).abs() < 1e-9, "{steal}");
        assert_eq!(before.since(&before), (0.0, 0.0));
        assert_eq!(Usage::parse("", &cpus, 100.0), Usage::default());
    }

    #[test]
    fn the_kernel_names_itself() {
        assert!(!kernel().is_empty());
    }
}
