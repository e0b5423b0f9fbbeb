//! What the figures were measured on.

use std::fs::read_to_string;

use crate::tables::{Result, connect};

/// Processor, cores, memory, kernel, server and its settings, in one line each.
pub fn describe() -> Result<Vec<String>> {
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
    let mut lines = vec![
        format!("{}, {cores} logical processors", field(&cpus, "model name")),
        format!(
            "{} GiB memory, Linux {}",
            kib >> 20,
            read_to_string("/proc/sys/kernel/osrelease")?.trim()
        ),
    ];
    let mut client = connect("postgres")?;
    let version: String = client.query_one("SHOW server_version", &[])?.get(0);
    let buffers: String = client.query_one("SHOW shared_buffers", &[])?.get(0);
    lines.push(format!(
        "PostgreSQL {version}, shared_buffers {buffers}, clients on its unix socket, data warm"
    ));
    let load = read_to_string("/proc/loadavg")?;
    lines.push(format!(
        "load average at the start: {}",
        load.split(' ').next().unwrap_or("unknown")
    ));
    Ok(lines)
}
