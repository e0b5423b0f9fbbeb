//! The commands. Each writes its answer into `out`.

use std::io::Write;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use clap::CommandFactory;
use kernel::drawing::export::{dot, mermaid};
use kernel::explain::diff::{Difference, export_differences, head_differences};
use kernel::hex::hex;
use kernel::prompt::kept::KeptMessage;
use kernel::prompt::record::{Document, RecordedMessage};
use kernel::verification::proof::{ProofRefusal, verify_proof};
use kernel::verification::verify::consistency;

use crate::arguments::{Arguments, DrawingFormat};
use crate::input::{at_most_one_input, read_document, read_json, read_slice, read_text};
use crate::output::{line, write_verdict};
use crate::{Failure, Outcome, svg};

const GOOD: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green))).bold();
const BAD: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red))).bold();

pub(crate) fn verify(
    out: &mut impl Write,
    document: &Path,
    proof: &Path,
    key: &Path,
    contents: Option<&Path>,
) -> Result<Outcome, Failure> {
    let files = [Some(document), Some(proof), Some(key), contents];
    at_most_one_input(&files.into_iter().flatten().collect::<Vec<_>>())?;
    let (document, proof, key) = (read_json(document)?, read_text(proof)?, read_text(key)?);
    let kept = contents.map(read_kept).transpose()?;
    match verify_proof(&document, &proof, &key, &|| {}) {
        Ok(document) => match kept {
            None => {
                write_verdict(out, "", (GOOD, "valid"), "")?;
                Ok(Outcome::Success)
            }
            Some(kept) => compare_contents(out, document, &kept),
        },
        Err(ProofRefusal::MalformedKey) => Err(explained(ProofRefusal::MalformedKey).to_owned()),
        Err(refusal) => {
            let why = format!(": {}: {}", refusal.name(), explained(refusal));
            write_verdict(out, "", (BAD, "not valid"), &why)?;
            Ok(Outcome::Negative)
        }
    }
}

/// What was kept of messages, in a file.
fn read_kept(path: &Path) -> Result<Vec<KeptMessage>, Failure> {
    KeptMessage::read_all(&read_text(path)?, &|| {})
        .map_err(|why| format!("{}: not an array of contents: {why}", path.display()))
}

/// Says which of the messages of a record are not those that were kept.
fn compare_contents(
    out: &mut impl Write,
    document: Document,
    kept: &[KeptMessage],
) -> Result<Outcome, Failure> {
    let shown = document
        .record
        .ok_or("a slice has no messages: --contents needs the record of a prompt")?;
    let (given, messages) = (kept.len(), shown.messages.len());
    if given != messages {
        let why = format!(": {given} contents are given for {messages} messages");
        write_verdict(out, "", (BAD, "not valid"), &why)?;
        return Ok(Outcome::Negative);
    }
    let pairs = (1..).zip(kept.iter().zip(&shown.messages));
    let mut others = pairs.filter(|(_, (kept, message))| !kept.matches(message)).peekable();
    if others.peek().is_none() {
        write_verdict(out, "", (GOOD, "valid"), ": the contents are those of the messages")?;
        return Ok(Outcome::Success);
    }
    for (place, (_, message)) in others {
        let why = format!(": message {place}, turn {}, is not what was shown", message.turn_id);
        write_verdict(out, "", (BAD, "not valid"), &why)?;
    }
    Ok(Outcome::Negative)
}

fn explained(refusal: ProofRefusal) -> &'static str {
    match refusal {
        ProofRefusal::MalformedKey => "the key is not an Ed25519 public key in PEM",
        ProofRefusal::MalformedProof => {
            "the proof is not a signed statement about a slice or a prompt"
        }
        ProofRefusal::BadSignature => "the signature is not that of this statement under this key",
        ProofRefusal::MalformedExport => {
            "the document is neither a slice export nor a record of a prompt"
        }
        ProofRefusal::OtherExport => "the proof is about another document",
        ProofRefusal::Inconsistent => "document and proof do not agree",
    }
}

pub(crate) fn inspect(out: &mut impl Write, file: &Path) -> Result<Outcome, Failure> {
    let document = read_document(file)?;
    let export = &document.export;
    line!(out, "anchor       {}", export.anchor);
    line!(out, "turns        {}", export.turns.len());
    line!(out, "edges        {}", export.edges.len());
    line!(out, "slice_id     {}", export.slice_id);
    line!(out, "snapshot     {}", export.graph_snapshot_hash.as_deref().unwrap_or("none"));
    line!(out, "policy       {} {}", export.policy_id, export.params_hash);
    if let Some(attestation) = &export.attestation {
        let row_security = if attestation.rls { "with" } else { "without" };
        line!(out, "             {}", attestation.policy.description());
        line!(out, "graph        {}", attestation.graph);
        line!(out, "taken for    {}, {row_security} row security", attestation.role);
        line!(out, "key          {}", attestation.kid);
        line!(out, "status       {}", attestation.status.name());
    }
    if let Some(record) = &document.record {
        let context = record.context.map_or("none".to_owned(), |hash| hex(&hash));
        line!(out, "prompt       {}", hex(&record.digest));
        line!(out, "context      {context}");
        line!(out, "messages     {}, {} tokens", record.messages.len(), record.tokens());
        for (place, message) in (1..).zip(&record.messages) {
            let RecordedMessage { turn_id, part, role, tokens, content, .. } = message;
            let content = content.map_or("none".to_owned(), |hash| hex(&hash));
            let (part, role) = (part.name(), role.name());
            line!(out, "{place:>5} {part:<8} {role:<9} {tokens:>7} {turn_id} {content}");
        }
    }
    let checks = consistency(&document, &|| {});
    for check in &checks {
        let word = if check.ok { (GOOD, "ok") } else { (BAD, "wrong") };
        let name = format!("{:<20} ", check.check.name());
        write_verdict(out, &name, word, &format!("  {}", check.detail))?;
    }
    Ok(if checks.iter().all(|check| check.ok) { Outcome::Success } else { Outcome::Negative })
}

pub(crate) fn diff(out: &mut impl Write, before: &Path, after: &Path) -> Result<Outcome, Failure> {
    at_most_one_input(&[before, after])?;
    let (was, now) = (read_slice(before)?, read_slice(after)?);
    let mut lines: Vec<String> = Vec::new();
    for found in head_differences(&was, &now) {
        lines.push(format!("{}: {} -> {}", found.field, found.was, found.now));
    }
    export_differences(&was, &now, &|| {}, &mut |found| lines.push(difference_line(found)));
    for text in &lines {
        line!(out, "{text}");
    }
    Ok(if lines.is_empty() { Outcome::Success } else { Outcome::Negative })
}

fn difference_line(found: Difference) -> String {
    match found {
        Difference::TurnGone(id) => format!("- turn {id}"),
        Difference::TurnNew(id) => format!("+ turn {id}"),
        Difference::TurnField { id, field, was, now } => {
            format!("turn {id} {field}: {was} -> {now}")
        }
        Difference::EdgeGone(edge) => {
            format!("- edge {} -> {} {}", edge.parent, edge.child, edge.edge_type.name())
        }
        Difference::EdgeNew(edge) => {
            format!("+ edge {} -> {} {}", edge.parent, edge.child, edge.edge_type.name())
        }
    }
}

pub(crate) fn draw(
    out: &mut impl Write,
    slice: &Path,
    format: DrawingFormat,
) -> Result<Outcome, Failure> {
    let export = read_slice(slice)?;
    let text = match format {
        DrawingFormat::Dot => dot(&export, &|| {}),
        DrawingFormat::Mermaid => mermaid(&export, &|| {}),
        DrawingFormat::Svg => svg::picture(&export)?,
    };
    for text in text.lines() {
        line!(out, "{text}");
    }
    Ok(Outcome::Success)
}

/// The manual page of the program, or of one of its commands; with `folder`, all of them as files in it.
pub(crate) fn man(
    out: &mut impl Write,
    command: Option<&str>,
    folder: Option<&Path>,
) -> Result<Outcome, Failure> {
    // The page of `help` would be one for each command again.
    let mut program = Arguments::command().disable_help_subcommand(folder.is_some());
    program.build(); // gives each command its whole name
    if let Some(folder) = folder {
        clap_mangen::generate_to(program, folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        return Ok(Outcome::Success);
    }
    let described = match command {
        None => program,
        Some(name) => program
            .find_subcommand(name)
            .ok_or_else(|| format!("no command {name}; graph-kernel help lists them"))?
            .clone(),
    };
    clap_mangen::Man::new(described).render(out).map_err(|error| error.to_string())?;
    Ok(Outcome::Success)
}
