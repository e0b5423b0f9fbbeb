//! Slices side by side: this extension, the published crate in memory and over PostgreSQL, and what
//! one would write in SQL; on one machine, one server, in one run.
//!
//! `make bench` runs it. Arguments: the folder for the results, and `short` or the largest number of
//! turns for the growth of costs. PG* name the server.

mod connections;
mod graphs;
mod peer;
mod recall;
mod report;
mod sample;
mod tables;
mod work;

use std::path::Path;

use graph_kernel_tests::machine;
use report::Report;
use tables::Result;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, scale] = &arguments[..] else {
        return Err("usage: graph_kernel_bench FOLDER short|1m|10m".into());
    };
    let size = match scale.as_str() {
        "short" => work::Size {
            turns: 2_000,
            anchors: 5,
            rounds: 1,
            largest: 8_000,
            hub: 20_000,
            buffers: "128MB",
        },
        "1m" => work::Size::full(1_000_000),
        "10m" => work::Size::full(10_000_000),
        _ => return Err("the scale is short, 1m or 10m".into()),
    };
    let mut report = Report::new(machine::describe(&tables::server()?)?);
    let works = [
        work::graphs,
        connections::first_call,
        connections::throughput,
        work::bindings,
        work::policy_v2,
        work::batch,
        work::vectors,
        recall::recall,
        work::growth,
        work::hub,
        work::cold,
    ];
    for work in works {
        work(&size, &mut report)?;
        // What was measured is kept even if the next work fails.
        report.write(Path::new(folder))?;
    }
    print!("{}", report.text());
    Ok(())
}
