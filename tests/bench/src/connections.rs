//! What depends on connections: the first call in one, and many of them at a time.

use std::process::Command;
use std::time::Instant;

use postgres::Client;
use uuid::Uuid;

use crate::report::{Goal, Report};
use crate::sample::{Times, anchors};
use crate::tables::{Result, connect};
use crate::work::Size;

/// S11: the first statement of a connection and the one after it, as the server comes and with the library preloaded;
/// and what the first one is made of: loading the library, and reading the same tables for the first time, which the
/// recursive CTE does too.
pub fn first_call(size: &Size, report: &mut Report) -> Result<()> {
    let mut client = connect("sessions")?;
    let anchors = anchors(&ids(&mut client)?, size.anchors.min(100));
    drop(client);
    let slice = |anchor: Uuid| format!("SELECT graph_slice('{anchor}')::text");
    let ball = |anchor: Uuid| format!("SELECT * FROM radius_ball('{anchor}')");
    let rows = |anchor: Uuid| {
        format!(
            "SELECT parent_turn_id, edge_type FROM memory_turn_edges WHERE child_turn_id = ANY ('{{{anchor}}}')
             UNION ALL SELECT child_turn_id, edge_type FROM memory_turn_edges \
             WHERE parent_turn_id = ANY ('{{{anchor}}}');
             SELECT * FROM memory_turns WHERE id = ANY ('{{{anchor}}}')"
        )
    };
    let load = |_: Uuid| "LOAD 'graph_kernel'".to_owned();
    let mut times = first_and_second(
        &anchors,
        &[
            (["first graph_slice", "second graph_slice"], &slice),
            (["first recursive CTE", "second recursive CTE"], &ball),
            (["loading the library", "loading it again"], &load),
            (["first edges and row of a turn", "second edges and row of a turn"], &rows),
        ],
    )?;
    restart("SET shared_preload_libraries = 'graph_kernel'")?;
    let names = ["first graph_slice, preloaded", "second graph_slice, preloaded"];
    let preloaded = first_and_second(&anchors, &[(names, &slice)]);
    restart("RESET shared_preload_libraries")?;
    times.extend(preloaded?);
    let [first, second, ball, _, _, _, _, _, preloaded, _] = &times[..] else { unreachable!() };
    for (ours, other) in [(first, second), (first, ball), (preloaded, ball), (preloaded, first)] {
        report.compare("S11", "sessions", ours, other, Goal::none());
    }
    report.times("first calls", &times);
    Ok(())
}

/// What is asked at an anchor.
type Ask<'a> = &'a dyn Fn(Uuid) -> String;

/// The first and the second time of each way to ask: at each anchor, in a connection of its own.
fn first_and_second(anchors: &[Uuid], ways: &[([&'static str; 2], Ask<'_>)]) -> Result<Vec<Times>> {
    let mut times: Vec<Times> = ways.iter().flat_map(|(names, _)| names.map(Times::new)).collect();
    for round in 0..4 {
        times.iter_mut().for_each(Times::begin_round);
        for anchor in anchors {
            for ((_, ask), times) in ways.iter().zip(times.chunks_mut(2)) {
                let mut client = connect("sessions")?;
                let statement = ask(*anchor);
                for times in times {
                    let start = Instant::now();
                    client.simple_query(&statement)?;
                    times.push(start.elapsed());
                }
            }
        }
        if round == 0 {
            times.iter_mut().for_each(Times::forget);
        }
    }
    Ok(times)
}

/// S12: slices a second by 1, 8 and 50 connections at a time, by pgbench with prepared statements.
pub fn throughput(size: &Size, report: &mut Report) -> Result<()> {
    let Some(pgbench) = pgbench() else {
        report.note("S12: not measured, the server has no pgbench".to_owned());
        return Ok(());
    };
    let mut client = connect("sessions")?;
    let anchors = anchors(&ids(&mut client)?, size.anchors);
    client.batch_execute("CREATE TABLE anchors (number int PRIMARY KEY, id uuid NOT NULL)")?;
    client.execute(
        "INSERT INTO anchors SELECT n, id FROM unnest($1::uuid[]) WITH ORDINALITY AS a(id, n)",
        &[&anchors],
    )?;
    client.batch_execute("VACUUM ANALYZE anchors")?;
    drop(client);
    let seconds = if size.anchors < 200 { 1 } else { 6 };
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for connections in [1, 8, 50] {
        let (mut slices, mut balls) = (Vec::new(), Vec::new());
        for _ in 0..size.rounds {
            for (statement, rates) in [
                ("graph_slice(id)::text FROM anchors", &mut slices),
                ("ball.* FROM anchors, radius_ball(id) AS ball", &mut balls),
            ] {
                rates.push(rate(&pgbench, statement, anchors.len(), connections, seconds)?);
            }
        }
        let [slices, balls] = [slices, balls].map(median);
        report.value(
            "S12",
            "sessions",
            &format!("slices a second, {connections} connections"),
            slices,
            Goal::none(),
        );
        report.value(
            "S12",
            "sessions",
            &format!("recursive CTEs a second, {connections} connections"),
            balls,
            Goal::none(),
        );
        ours.push(slices);
        theirs.push(balls);
    }
    let kept = |rates: &[f64]| rates[2] / rates[1];
    report.value(
        "S12",
        "sessions",
        "what 50 connections keep of the rate of 8, against what the recursive CTE keeps",
        kept(&ours) / kept(&theirs),
        Goal::at_least(1.0, 1.0),
    );
    Ok(())
}

fn pgbench() -> Option<String> {
    let pgbench = format!("{}/pgbench", std::env::var("GRAPH_KERNEL_BINDIR").ok()?);
    Command::new(&pgbench).arg("--version").output().is_ok().then_some(pgbench)
}

/// Transactions a second.
fn rate(
    pgbench: &str,
    statement: &str,
    anchors: usize,
    connections: usize,
    seconds: usize,
) -> Result<f64> {
    let script = std::env::temp_dir().join(format!("graph_kernel_bench.{}", std::process::id()));
    std::fs::write(
        &script,
        format!("\\set n random(1, {anchors})\nSELECT {statement} WHERE number = :n;\n"),
    )?;
    let output = Command::new(pgbench)
        .args(["--no-vacuum", "--protocol=prepared", "--jobs=2"])
        .arg(format!("--client={connections}"))
        .arg(format!("--time={seconds}"))
        .arg(format!("--file={}", script.display()))
        .arg("sessions")
        .output()?;
    std::fs::remove_file(script)?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let rate = text.lines().find_map(|line| line.strip_prefix("tps = "));
    let rate = rate.and_then(|rate| rate.split(' ').next());
    Ok(rate.ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())?.parse()?)
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn ids(client: &mut Client) -> Result<Vec<Uuid>> {
    let rows = client.query("SELECT id FROM memory_turns ORDER BY id", &[])?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Restarts the server after `ALTER SYSTEM` and this.
pub fn restart(change: &str) -> Result<()> {
    connect("postgres")?.batch_execute(&format!("ALTER SYSTEM {change}"))?;
    let status = Command::new("tests/harness/server.sh").args(["restart", "bench"]).status()?;
    if status.success() { Ok(()) } else { Err("the server did not restart".into()) }
}
