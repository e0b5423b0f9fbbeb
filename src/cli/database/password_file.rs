//! The password file of libpq.

use std::env;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

pub(super) struct PasswordFile(Vec<u8>);

impl PasswordFile {
    /// The file of this path, else `~/.pgpass`. One that others can read is not used, and the error stream says so.
    pub(super) fn read(path: Option<&str>) -> Option<Self> {
        let path = path.map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".pgpass")))?;
        let why = match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => error.to_string(),
            Ok(file) if !file.is_file() => "it is not a regular file".to_owned(),
            Ok(file) if !is_private(&file) => "others can read it (chmod 600)".to_owned(),
            Ok(_) => match fs::read(&path) {
                Ok(text) => return Some(PasswordFile(text)),
                Err(error) => error.to_string(),
            },
        };
        _ = writeln!(anstream::stderr(), "{}: not used: {why}", shown(&path));
        None
    }

    /// The password of the first line for this host, port, database and user; `*` stands for all, `\` escapes.
    pub(super) fn password(&self, wanted: [&str; 4]) -> Option<Vec<u8>> {
        self.0.split(|byte| *byte == b'\n').find_map(|line| {
            let mut rest = line.strip_suffix(b"\r").unwrap_or(line);
            if rest.starts_with(b"#") {
                return None;
            }
            for wanted in wanted {
                rest = match rest.strip_prefix(b"*:") {
                    Some(rest) => rest,
                    None => {
                        let (field, after) = field(rest);
                        after.filter(|_| field == wanted.as_bytes())?
                    }
                };
            }
            Some(field(rest).0).filter(|password| !password.is_empty())
        })
    }
}

/// The bytes up to a colon, and what comes after that.
fn field(text: &[u8]) -> (Vec<u8>, Option<&[u8]>) {
    let mut field = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match (byte, text.get(at + 1)) {
            (b':', _) => return (field, Some(&text[at + 1..])),
            (b'\\', Some(escaped)) => {
                field.push(*escaped);
                at += 1;
            }
            (byte, _) => field.push(*byte),
        }
        at += 1;
    }
    (field, None)
}

fn shown(path: &Path) -> String {
    crate::output::escaped(&path.display().to_string())
}

#[cfg(unix)]
/// Whether nobody but its owner can read the file.
pub(crate) fn is_private(file: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.permissions().mode() & 0o077 == 0
}

#[cfg(not(unix))]
/// The same; where there are no such rights, every file is.
pub(crate) fn is_private(_: &fs::Metadata) -> bool {
    true
}

#[cfg(unix)]
/// Whether the file is of the user that the program runs as, or of root, who can read every file.
pub(crate) fn is_of_user(file: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    [rustix::process::geteuid().as_raw(), 0].contains(&file.uid())
}

#[cfg(not(unix))]
/// The same; where there are no such users, every file is.
pub(crate) fn is_of_user(_: &fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_matches_has_the_password() {
        let file = PasswordFile(
            b"# comment\n#db:5432:*:*:no\n\nother:5432:*:*:no\ndb:*:notes:an\\:n:p\\:w\\\\d:more\r\n\
              \\*:1:*:*:no\ndb:5432:\xff:*:no\n/run/pg:1:*:*:socket\n*:5432:*:*:any\n*:7:*:*:\n"
                .to_vec(),
        );
        let password =
            |wanted| file.password(wanted).map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(password(["db", "5432", "notes", "an:n"]).as_deref(), Some("p:w\\d"));
        assert_eq!(password(["db", "5432", "notes", "bo"]).as_deref(), Some("any"));
        assert_eq!(password(["/run/pg", "1", "notes", "bo"]).as_deref(), Some("socket"));
        assert_eq!(password(["db", "1", "notes", "bo"]), None);
        assert_eq!(password(["db", "7", "notes", "bo"]), None);
        assert_eq!(PasswordFile(b"db:1:2\n".to_vec()).password(["db", "1", "2", "3"]), None);
    }
}
