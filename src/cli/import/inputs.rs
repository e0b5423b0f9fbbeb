//! The files that are read: those that were named, and the transcripts in folders, each once.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use walkdir::WalkDir;

use super::formats::Stop;
use super::formats::agents::AgentFile;
use super::formats::claude_code::Transcripts;
use super::formats::codex;
use super::json::value_in;
use super::likeness::{MAX_HEAD_BYTES, looks_like};
use super::lines::{Line, each_line};
use super::source::{CountedFile, WholeCharacters};
use crate::arguments::ImportFormat;

/// The largest `agent-ID.meta.json` that is read, in bytes.
const MAX_META_BYTES: u64 = 64 << 10;

/// A file to be read.
pub(super) struct Input {
    pub(super) path: PathBuf,
    /// Whether it was named, and not found in a folder.
    pub(super) is_named: bool,
    /// What its place says of the subagent whose transcript it is.
    pub(super) agent: AgentFile,
}

/// The files in the order in which they are read, and what else is in folders.
#[derive(Default)]
pub(super) struct Inputs {
    pub(super) files: Vec<Input>,
    /// Whether a folder was named.
    pub(super) has_folder: bool,
    /// How many files of folders are not transcripts.
    pub(super) others: u64,
    /// Which of these cannot be read, and why.
    pub(super) unread: Vec<String>,
    /// Folders that cannot be read, or have no transcripts.
    pub(super) failed: Vec<String>,
}

/// A file that may be a transcript.
struct Candidate {
    path: PathBuf,
    /// Which of the folders it is in.
    folder: Option<usize>,
}

/// A folder that was named.
struct Folder<'a> {
    path: &'a Path,
    has_transcripts: bool,
    /// What a file in it looks like.
    like: Option<ImportFormat>,
}

impl Inputs {
    /// The files of the arguments. Of a folder, the transcripts in it and below; links are followed.
    pub(super) fn new(
        format: ImportFormat,
        paths: &[PathBuf],
        transcripts: &mut Transcripts,
    ) -> Self {
        let mut inputs = Inputs::default();
        let mut candidates = Vec::new();
        let mut folders: Vec<Folder> = Vec::new();
        let mut seen = HashSet::new();
        let takes_folders = matches!(format, ImportFormat::ClaudeCode | ImportFormat::Codex);
        for path in paths {
            if takes_folders && path.is_dir() {
                let number = folders.len();
                let has_transcripts = inputs.walk(path, number, &mut seen, &mut candidates);
                folders.push(Folder { path, has_transcripts, like: None });
            } else {
                candidates.push(Candidate { path: path.clone(), folder: None });
            }
        }
        inputs.has_folder = !folders.is_empty();
        // Sessions in the order of their first files; of each, first the files that are not of subagents.
        let mut sessions: HashMap<String, usize> = HashMap::new();
        let mut files: Vec<(usize, bool, Input)> = Vec::new();
        for Candidate { path, folder } in candidates {
            let mut agent = AgentFile::default();
            let session = match format {
                ImportFormat::ClaudeCode if path.is_file() => {
                    agent = agent_of(&path);
                    agent.is_scanned = true;
                    scan(&path, |source| transcripts.scan(source, &agent))
                }
                ImportFormat::Codex if folder.is_some() => scan(&path, first_record),
                _ => Ok(Some(String::new())),
            };
            let session = session.unwrap_or_else(|why| {
                // A file that was named is read, which says so again.
                if folder.is_some() {
                    inputs.unread.push(format!("{}: {why}", path.display()));
                }
                None
            });
            match (&session, folder) {
                (None, Some(folder)) => {
                    inputs.others += 1;
                    let folder = &mut folders[folder];
                    if !folder.has_transcripts && folder.like.is_none() {
                        folder.like = looks_like(&head(&path)).filter(|other| *other != format);
                    }
                    continue;
                }
                (Some(_), Some(folder)) => folders[folder].has_transcripts = true,
                _ => {}
            }
            let next = sessions.len();
            let session = *sessions.entry(session.unwrap_or_default()).or_insert(next);
            let is_named = folder.is_none();
            files.push((session, agent.agent.is_some(), Input { path, is_named, agent }));
        }
        if format == ImportFormat::ClaudeCode {
            files.sort_by(|a, b| (a.0, a.1, &a.2.path).cmp(&(b.0, b.1, &b.2.path)));
        }
        inputs.files = files.into_iter().map(|(_, _, input)| input).collect();
        for folder in folders.iter().filter(|folder| !folder.has_transcripts) {
            let name = format.name();
            let other = folder.like.map(|other| format!("; this looks like {}", other.name()));
            inputs.failed.push(format!(
                "{}: no transcript in the format {name} is in it{}",
                folder.path.display(),
                other.unwrap_or_default()
            ));
        }
        inputs
    }

    /// Finds what may be transcripts in a folder and below, each file once. Returns whether a part of it was found
    /// before.
    fn walk(
        &mut self,
        folder: &Path,
        number: usize,
        seen: &mut HashSet<Identity>,
        found: &mut Vec<Candidate>,
    ) -> bool {
        let mut was_seen = false;
        let mut is_new = |path: &Path| {
            let is_new = identity(path).is_none_or(|folder| seen.insert(folder));
            was_seen |= !is_new;
            is_new
        };
        let walk = WalkDir::new(folder).follow_links(true).sort_by_file_name().into_iter();
        // Each folder once as well: links could multiply them.
        for entry in walk.filter_entry(|entry| !entry.file_type().is_dir() || is_new(entry.path()))
        {
            let entry = match entry {
                Ok(entry) => entry,
                // A link to a folder above it.
                Err(error) if error.loop_ancestor().is_some() => continue,
                Err(error) => {
                    let path = error.path().unwrap_or(folder).display().to_string();
                    let why = error.io_error().map_or(error.to_string(), ToString::to_string);
                    let is_link = error.path().is_some_and(Path::is_symlink);
                    if is_link {
                        self.others += 1;
                        self.unread.push(format!("{path}: a link that leads nowhere: {why}"));
                    } else {
                        self.failed.push(format!("{path}: {why}"));
                    }
                    continue;
                }
            };
            let (path, kind) = (entry.path(), entry.file_type());
            if kind.is_dir() || is_meta(path) {
                continue;
            }
            if !kind.is_file() {
                self.others += 1;
                self.unread.push(format!("{}: not a regular file", path.display()));
            } else if path.extension().is_some_and(|name| name == "jsonl") {
                found.push(Candidate { path: entry.into_path(), folder: Some(number) });
            } else {
                self.others += 1;
            }
        }
        let before = found.len();
        found.retain(|file| {
            file.folder != Some(number) || identity(&file.path).is_none_or(|file| seen.insert(file))
        });
        was_seen || found.len() < before
    }
}

/// What tells a file or a folder from others, by whatever name it is found.
#[cfg(unix)]
type Identity = (u64, u64);

/// None where it cannot be had.
#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
type Identity = PathBuf;

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<Identity> {
    fs::canonicalize(path).ok()
}

/// The beginning of a file, as far as it can be read.
fn head(path: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    if let Ok(file) = File::open(path) {
        _ = file.take(MAX_HEAD_BYTES as u64).read_to_end(&mut head);
    }
    head
}

/// Looks at a file before it is read. A file of which no line can be read is an error.
fn scan(
    path: &Path,
    look: impl FnOnce(BufReader<WholeCharacters<CountedFile>>) -> Result<Option<String>, Stop>,
) -> Result<Option<String>, String> {
    let open = || {
        let file = CountedFile::open(path, Rc::new(Cell::new(0)));
        file.map(|file| BufReader::new(WholeCharacters::new(file)))
    };
    let in_words = |stop| match stop {
        Stop::Unreadable(_, why) | Stop::Failed(why) => why,
    };
    let found = look(open().map_err(|error| error.to_string())?).map_err(in_words)?;
    if found.is_some() {
        return Ok(found);
    }
    let mut wrong = None;
    let mut has_json = false;
    let look = each_line(open().map_err(|error| error.to_string())?, &mut |_, line| {
        match line {
            Line::TooLong(why) => wrong = Some(why),
            Line::Text(bytes) => match value_in(bytes) {
                Ok(_) => has_json = true,
                Err(why) => wrong = Some(why),
            },
        }
        // One line tells.
        Err(Stop::Failed(String::new()))
    });
    drop(look);
    match wrong.filter(|_| !has_json) {
        Some(why) => Err(format!("not a transcript: {why}")),
        None => Ok(None),
    }
}

/// Something where a record of Codex is in the file.
fn first_record(source: BufReader<WholeCharacters<CountedFile>>) -> Result<Option<String>, Stop> {
    let mut found = None;
    let result = each_line(source, &mut |_, line| {
        let Line::Text(bytes) = line else { return Ok(()) };
        if value_in(bytes).is_ok_and(|record| codex::is_record(&record)) {
            found = Some(String::new());
            return Err(Stop::Failed(String::new()));
        }
        Ok(())
    });
    match result {
        Err(stop @ Stop::Unreadable(..)) => Err(stop),
        _ => Ok(found),
    }
}

/// Whether a file belongs to the transcript of a subagent.
fn is_meta(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.is_some_and(|name| name.starts_with("agent-") && name.ends_with(".meta.json"))
}

/// What the place of a transcript says.
fn agent_of(path: &Path) -> AgentFile {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let agent = name.as_deref().and_then(|name| name.strip_prefix("agent-"));
    let Some(agent) = agent.and_then(|name| name.strip_suffix(".jsonl")) else {
        return AgentFile::default();
    };
    let mut text = Vec::new();
    let meta = path.with_file_name(format!("agent-{agent}.meta.json"));
    let is_read = meta.is_file()
        && File::open(meta)
            .and_then(|file| file.take(MAX_META_BYTES).read_to_end(&mut text))
            .is_ok();
    let call = is_read.then(|| value_in(&text).ok()).flatten().and_then(|meta| {
        let call = ["toolUseId", "toolUseID", "tool_use_id"].map(|key| meta[key].as_str());
        call.into_iter().flatten().next().map(str::to_owned)
    });
    let folder = path.parent().and_then(Path::file_name);
    AgentFile {
        agent: Some(agent.to_owned()),
        call,
        folder: folder.map(|name| name.to_string_lossy().into_owned()),
        is_scanned: false,
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn each_file_and_each_folder_is_found_once_however_many_links_lead_there() {
        let folder = std::env::temp_dir().join(format!("gk_inputs_{}", std::process::id()));
        let names: Vec<PathBuf> = (0..8).map(|n| folder.join(format!("d{n}"))).collect();
        for name in &names {
            fs::create_dir_all(name).unwrap();
        }
        for name in &names {
            for (n, other) in names.iter().enumerate() {
                symlink(other, name.join(format!("l{n}"))).unwrap();
            }
        }
        let rollout = format!(
            "{}/../../tests/server/exports/rollout-codex.jsonl",
            env!("CARGO_MANIFEST_DIR")
        );
        fs::copy(rollout, folder.join("d3/a.jsonl")).unwrap();
        fs::hard_link(folder.join("d3/a.jsonl"), folder.join("d5/b.jsonl")).unwrap();
        symlink("d5/b.jsonl", folder.join("c.jsonl")).unwrap();
        symlink("circle", folder.join("circle")).unwrap();
        symlink(".", folder.join("itself")).unwrap();
        let named = [folder.clone(), folder.join("d3/l1"), folder.join("d3")];
        let inputs = Inputs::new(ImportFormat::Codex, &named, &mut Transcripts::default());
        let found: Vec<&Path> = inputs.files.iter().map(|input| input.path.as_path()).collect();
        let unread = inputs.unread;
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, [folder.join("c.jsonl")]);
        assert_eq!((inputs.failed.len(), unread.len()), (0, 1), "{unread:?}");
    }
}
