//! What the processor is: cores, sockets, nodes, caches, and what a container leaves of them. Read from where Linux keeps it; elsewhere
//! only the number of threads is known.

use super::team::Team;
use rackmath_spec::probe::{CacheLevel, Processor};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Bytes of a cache, and the threads that share each of its kind.
type Alike = (f64, BTreeSet<Vec<usize>>);

/// A logical processor.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cpu {
    id: usize,
    core: usize,
    socket: usize,
}

#[derive(Debug)]
pub struct Machine {
    root: PathBuf,
    cpus: Vec<Cpu>,
    allowed: BTreeSet<usize>,
}

impl Machine {
    pub fn found() -> Self {
        Self::below(Path::new("/"), &allowed())
    }

    /// The same with its files below another folder.
    fn below(root: &Path, allowed: &[usize]) -> Self {
        let folder = root.join("sys/devices/system/cpu");
        let online = text(&folder.join("online")).map_or_else(Vec::new, |list| numbers(&list));
        let number = |id: usize, name: &str| {
            text(&folder.join(format!("cpu{id}/topology/{name}"))).and_then(|t| t.parse::<usize>().ok())
        };
        let mut cpus: Vec<Cpu> = online
            .into_iter()
            .map(|id| Cpu {
                id,
                core: number(id, "core_id").unwrap_or(id),
                socket: number(id, "physical_package_id").unwrap_or(0),
            })
            .collect();
        if cpus.is_empty() {
            let n = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            cpus = (0..n).map(|id| Cpu { id, core: id, socket: 0 }).collect();
        }
        let mut allowed: BTreeSet<usize> = allowed.iter().copied().collect();
        if allowed.is_empty() {
            allowed = cpus.iter().map(|c| c.id).collect();
        }
        Self { root: root.to_owned(), cpus, allowed }
    }

    /// One thread for each core that may be used, by socket.
    fn usable(&self) -> BTreeMap<usize, Vec<usize>> {
        let mut cores = BTreeSet::new();
        let mut sockets: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for cpu in self.cpus.iter().filter(|cpu| self.allowed.contains(&cpu.id)) {
            if cores.insert((cpu.socket, cpu.core)) {
                sockets.entry(cpu.socket).or_default().push(cpu.id);
            }
        }
        sockets
    }

    /// One thread, half of a socket, a socket, all sockets; no more than a container's share of time keeps busy.
    pub fn teams(&self) -> Vec<Team> {
        let sockets = self.usable();
        let most = self.quota().map_or(usize::MAX, |cores| (cores.ceil() as usize).max(1));
        let first: Vec<usize> = sockets.values().next().cloned().unwrap_or_default();
        let all: Vec<usize> = sockets.values().flatten().copied().collect();
        let mut teams: Vec<Team> = Vec::new();
        for (cpus, n, sockets) in
            [(&first, 1, 1), (&first, first.len() / 2, 1), (&first, first.len(), 1), (&all, all.len(), sockets.len())]
        {
            let n = n.min(most).min(cpus.len()).max(1);
            let team = Team {
                cpus: cpus.iter().copied().take(n).collect(),
                sockets: if n == cpus.len() { sockets } else { 1 },
            };
            if teams.iter().all(|t| t.cpus.len() < team.cpus.len()) {
                teams.push(team);
            }
        }
        teams
    }

    fn quota(&self) -> Option<f64> {
        let groups = text(&self.root.join("proc/self/cgroup")).unwrap_or_default();
        let own = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
        let base = self.root.join("sys/fs/cgroup");
        let new = above(own).filter_map(|folder| quota(&text(&base.join(folder).join("cpu.max"))?)).reduce(f64::min);
        new.or_else(|| {
            let old = |name: &str| text(&base.join("cpu").join(name))?.parse::<f64>().ok();
            let (quota, period) = (old("cpu.cfs_quota_us")?, old("cpu.cfs_period_us")?);
            (quota > 0.0 && period > 0.0).then(|| quota / period)
        })
    }

    fn memory_limit(&self) -> Option<f64> {
        let groups = text(&self.root.join("proc/self/cgroup")).unwrap_or_default();
        let own = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
        let base = self.root.join("sys/fs/cgroup");
        let new = above(own).filter_map(|folder| text(&base.join(folder).join("memory.max"))?.parse::<f64>().ok());
        // The old files write a number near 2^63 for no limit.
        let old = || text(&base.join("memory/memory.limit_in_bytes"))?.parse::<f64>().ok().filter(|b| *b < 1e18);
        new.reduce(f64::min).or_else(old)
    }

    /// Without figures.
    pub fn card(&self) -> Processor {
        let about = text(&self.root.join("proc/cpuinfo")).unwrap_or_default();
        let said = |key: &str| {
            let line = about.lines().find(|line| line.split(':').next().is_some_and(|k| k.trim() == key))?;
            Some(line.split_once(':')?.1.trim().to_owned()).filter(|word| !word.is_empty())
        };
        let meminfo = text(&self.root.join("proc/meminfo")).unwrap_or_default();
        let total =
            meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        let distinct = |f: fn(&Cpu) -> (usize, usize)| self.cpus.iter().map(f).collect::<BTreeSet<_>>().len();
        let cores = distinct(|c| (c.socket, c.core));
        let nodes =
            text(&self.root.join("sys/devices/system/node/online")).map_or(1, |list| numbers(&list).len().max(1));
        let huge = text(&self.root.join("sys/kernel/mm/transparent_hugepage/enabled")).unwrap_or_default();
        let chosen = huge.split_whitespace().find_map(|w| w.strip_prefix('[')?.strip_suffix(']')).unwrap_or("unknown");
        let vendor = match said("vendor_id").as_deref() {
            Some("AuthenticAMD") => "AMD".to_owned(),
            Some("GenuineIntel") => "Intel".to_owned(),
            Some(other) => other.to_owned(),
            None if cfg!(target_vendor = "apple") => "Apple".to_owned(),
            None => "unknown".to_owned(),
        };
        Processor {
            name: said("model name")
                .or_else(|| said("Model"))
                .unwrap_or_else(|| format!("{} processor", std::env::consts::ARCH)),
            vendor,
            architecture: std::env::consts::ARCH.to_owned(),
            kernel: text(&self.root.join("proc/sys/kernel/osrelease")).map_or_else(
                || std::env::consts::OS.to_owned(),
                |release| format!("{} {release}", std::env::consts::OS),
            ),
            sockets: distinct(|c| (c.socket, 0)),
            cores,
            threads: self.cpus.len(),
            threads_per_core: self.cpus.len().div_ceil(cores.max(1)),
            numa_nodes: nodes,
            allowed_threads: self.allowed.len(),
            quota_cores: self.quota(),
            memory_bytes: total.map_or(0.0, |kib| kib * 1024.0),
            memory_limit_bytes: self.memory_limit(),
            caches: self.caches(),
            huge_pages: chosen.to_owned(),
            ..Processor::default()
        }
    }

    /// Caches by level and kind, each counted once however many threads share it.
    fn caches(&self) -> Vec<CacheLevel> {
        let mut found: BTreeMap<(u32, String), Alike> = BTreeMap::new();
        for cpu in &self.cpus {
            for index in 0..16 {
                let folder = self.root.join(format!("sys/devices/system/cpu/cpu{}/cache/index{index}", cpu.id));
                let Some(level) = text(&folder.join("level")).and_then(|t| t.parse().ok()) else { break };
                let (Some(kind), Some(bytes)) =
                    (text(&folder.join("type")), text(&folder.join("size")).and_then(|t| size(&t)))
                else {
                    continue;
                };
                let sharers = text(&folder.join("shared_cpu_list")).map_or_else(|| vec![cpu.id], |list| numbers(&list));
                let entry = found.entry((level, kind)).or_default();
                entry.0 = bytes;
                entry.1.insert(sharers);
            }
        }
        let card = |((level, kind), (bytes, sets)): ((u32, String), Alike)| CacheLevel {
            level,
            kind,
            bytes,
            shared_by: sets.iter().map(Vec::len).max().unwrap_or(1),
            count: sets.len(),
        };
        found.into_iter().map(card).collect()
    }
}

/// A folder of groups and those above it, the root first written as nothing.
fn above(own: &str) -> impl Iterator<Item = &str> {
    let own = own.trim_matches('/');
    std::iter::successors(Some(own), |folder| {
        if folder.is_empty() { None } else { Some(folder.rsplit_once('/').map_or("", |(up, _)| up)) }
    })
}

fn text(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// "0-3,8" as numbers.
fn numbers(list: &str) -> Vec<usize> {
    let part = |part: &str| -> Option<std::ops::RangeInclusive<usize>> {
        let (from, to) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        Some(from.parse().ok()?..=to.parse().ok()?)
    };
    // A slip of the kernel must not become a list of billions.
    list.split(',').filter_map(part).flat_map(|range| range.take(65_536)).collect()
}

/// "32768K" in bytes.
fn size(text: &str) -> Option<f64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let factor = match unit {
        "" => 1.0,
        "K" => 1024.0,
        "M" => 1_048_576.0,
        "G" => 1_073_741_824.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

/// "150000 100000" is one and a half; "max 100000" none.
fn quota(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
    (period > 0.0).then(|| quota / period)
}

/// Processors this process may run on; empty where that is not known.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn allowed() -> Vec<usize> {
    // SAFETY: the set is ours and as large as the call is told.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &set)).collect()
    }
}

#[cfg(not(target_os = "linux"))]
fn allowed() -> Vec<usize> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets of two cores of two threads, in a container of one and a half processors.
    fn made(name: &str, quota: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("rackmath-host-{name}-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sys/devices/system/cpu/online", "0-7\n");
        write("sys/devices/system/node/online", "0-1\n");
        for cpu in 0..8 {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}");
            write(&format!("{folder}/topology/core_id"), &format!("{}\n", cpu % 2));
            write(&format!("{folder}/topology/physical_package_id"), &format!("{}\n", cpu / 2 % 2));
            write(&format!("{folder}/cache/index0/level"), "3\n");
            write(&format!("{folder}/cache/index0/type"), "Unified\n");
            write(&format!("{folder}/cache/index0/size"), "32768K\n");
            let sharers = if cpu / 2 % 2 == 0 { "0-1,4-5\n" } else { "2-3,6-7\n" };
            write(&format!("{folder}/cache/index0/shared_cpu_list"), sharers);
        }
        write("proc/self/cgroup", "0::/jobs/mine\n");
        write("sys/fs/cgroup/jobs/cpu.max", quota);
        write("sys/fs/cgroup/jobs/mine/memory.max", "1073741824\n");
        write("proc/cpuinfo", "processor : 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\n");
        write("proc/meminfo", "MemTotal:       16384 kB\n");
        write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        root
    }

    #[test]
    fn a_machine_is_read_from_its_files() {
        let root = made("read", "max 100000\n");
        let machine = Machine::below(&root, &[]);
        let card = machine.card();
        assert_eq!((card.sockets, card.cores, card.threads, card.threads_per_core, card.numa_nodes), (2, 4, 8, 2, 2));
        assert_eq!(
            (card.vendor.as_str(), card.name.as_str(), card.huge_pages.as_str()),
            ("AMD", "AMD EPYC", "madvise")
        );
        assert_eq!((card.quota_cores, card.memory_limit_bytes), (None, Some(1_073_741_824.0)));
        assert_eq!(card.memory_bytes, 16_777_216.0);
        let [cache] = &card.caches[..] else { panic!("{:?}", card.caches) };
        assert_eq!((cache.bytes, cache.count, cache.shared_by), (33_554_432.0, 2, 4));
        let threads: Vec<(usize, usize)> = machine.teams().iter().map(|t| (t.cpus.len(), t.sockets)).collect();
        assert_eq!(threads, [(1, 1), (2, 1), (4, 2)]);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_container_limits_threads_by_its_own_group_and_by_those_above() {
        let root = made("quota", "150000 100000\n");
        let machine = Machine::below(&root, &[]);
        assert_eq!(machine.card().quota_cores, Some(1.5));
        assert_eq!(machine.teams().last().map(|t| t.cpus.len()), Some(2));
        // Only what the process may run on is used.
        let pinned = Machine::below(&root, &[3, 7]);
        assert_eq!(pinned.teams(), [Team { cpus: vec![3], sockets: 1 }]);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn lists_sizes_and_quotas_are_read() {
        assert_eq!(numbers("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(numbers("x,3"), [3]);
        assert_eq!((size("512K"), size("1M"), size("1X")), (Some(524_288.0), Some(1_048_576.0), None));
        assert_eq!((quota("50000 100000"), quota("max 100000"), quota("1 0")), (Some(0.5), None, None));
        assert_eq!(above("/a/b").collect::<Vec<_>>(), ["a/b", "a", ""]);
    }

    #[test]
    fn a_machine_without_such_files_has_its_threads() {
        let machine = Machine::below(Path::new("/nowhere"), &[]);
        assert!(machine.card().threads >= 1 && !machine.teams().is_empty());
    }
}
