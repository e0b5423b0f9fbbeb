//! What figures were measured on.

use std::fs::read_to_string;
use std::io;

/// Processor, cores, memory, kernel, the server as the caller describes it, and the load, in one line each.
///
/// # Errors
///
/// Where Linux's `/proc` cannot be read.
pub fn describe(server: &str) -> io::Result<Vec<String>> {
    let cpus = read_to_string("/proc/cpuinfo")?;
    let field = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.starts_with(key));
        line.and_then(|line| line.split_once(':'))
            .map_or("unknown", |(_, value)| value.trim())
            .to_owned()
    };
    let cores = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let kib: u64 = field(&read_to_string("/proc/meminfo")?, "MemTotal")
        .trim_end_matches(" kB")
        .parse()
        .unwrap_or_default();
    let load = read_to_string("/proc/loadavg")?;
    Ok(vec![
        format!("{}, {cores} logical processors", field(&cpus, "model name")),
        format!(
            "{} GiB memory, Linux {}",
            kib >> 20,
            read_to_string("/proc/sys/kernel/osrelease")?.trim()
        ),
        server.to_owned(),
        format!("load average at the start: {}", load.split(' ').next().unwrap_or("unknown")),
    ])
}
