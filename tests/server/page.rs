//! A page of documentation: its examples, of SQL or of commands, and the output printed below them.

use std::path::{Path, PathBuf};

/// What precedes an example that is not to be run.
const NOT_RUN: &str = "<!-- not run -->";

/// A page in Markdown.
pub struct Page {
    pub path: PathBuf,
    lines: Vec<String>,
    pub examples: Vec<Example>,
}

/// A fenced block of SQL or, of a page of commands, of the shell.
pub struct Example {
    /// Where its fence is, counted from 1.
    pub line: usize,
    pub text: String,
    pub runs: bool,
    /// The lines of the fenced text directly below it, between its fences.
    output: Option<std::ops::Range<usize>>,
}

/// A fenced block: its kind and the lines between the fences, counted from 0.
struct Fenced<'a> {
    kind: &'a str,
    content: std::ops::Range<usize>,
}

impl Page {
    /// A page with its blocks of SQL.
    pub fn read(path: &Path) -> Self {
        Self::read_blocks(path, "sql")
    }

    /// A page with its blocks of one kind.
    pub fn read_blocks(path: &Path, kind: &str) -> Self {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::parse(path, &text, kind)
    }

    fn parse(path: &Path, text: &str, kind: &str) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let blocks = fenced_blocks(path, &lines);
        let mut examples = Vec::new();
        for (index, block) in blocks.iter().enumerate() {
            if block.kind != kind {
                continue;
            }
            let fence = block.content.start - 1;
            let before = lines[..fence].iter().rev().find(|line| !is_blank(line));
            let output = blocks.get(index + 1).filter(|next| {
                let between = block.content.end + 1..next.content.start - 1;
                next.kind == "text" && lines[between].iter().all(|line| is_blank(line))
            });
            examples.push(Example {
                line: fence + 1,
                text: lines[block.content.clone()].join("\n"),
                runs: before.is_none_or(|line| line.trim() != NOT_RUN),
                output: output.map(|block| block.content.clone()),
            });
        }
        Page { path: path.to_owned(), lines, examples }
    }

    /// The output that the page shows for an example.
    pub fn output(&self, example: &Example) -> Option<&[String]> {
        Some(&self.lines[example.output.clone()?])
    }

    /// The page's text with outputs it shows replaced: for each example the new one, if any.
    pub fn with_outputs(&self, outputs: &[Option<Vec<String>>]) -> String {
        let mut lines = Vec::new();
        let mut copied = 0;
        for (example, output) in self.examples.iter().zip(outputs) {
            if let (Some(shown), Some(output)) = (&example.output, output) {
                lines.extend_from_slice(&self.lines[copied..shown.start]);
                lines.extend_from_slice(output);
                copied = shown.end;
            }
        }
        lines.extend_from_slice(&self.lines[copied..]);
        lines.join("\n") + "\n"
    }
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn fenced_blocks<'a>(path: &Path, lines: &'a [String]) -> Vec<Fenced<'a>> {
    const FENCE: &str = "```";
    let mut blocks = Vec::new();
    let mut lines = lines.iter().enumerate();
    while let Some((opening, line)) = lines.next() {
        let Some(kind) = line.strip_prefix(FENCE) else {
            continue;
        };
        let closing = lines.find(|(_, line)| line.trim_end() == FENCE);
        let (closing, _) = closing
            .unwrap_or_else(|| panic!("{}:{}: no closing fence", path.display(), opening + 1));
        blocks.push(Fenced { kind: kind.trim(), content: opening + 1..closing });
    }
    blocks
}

mod tests {
    use super::{Page, Path};

    const TEXT: &str = "\
A page.

```sql
SELECT 1;
```

```text
old
```

<!-- not run -->
```sql
DROP TABLE t;
```

```sh
ls
```

```sql
SELECT 2,
       3;
```

No output of it:

```text
kept
```
";

    fn page() -> Page {
        Page::parse(Path::new("page.md"), TEXT, "sql")
    }

    #[test]
    fn examples_are_found_with_their_outputs() {
        let page = page();
        let found: Vec<_> = page
            .examples
            .iter()
            .map(|example| {
                let output = page.output(example).map(<[String]>::concat);
                (example.line, example.text.as_str(), example.runs, output)
            })
            .collect();
        let expected = [
            (3, "SELECT 1;", true, Some("old".to_owned())),
            (12, "DROP TABLE t;", false, None),
            (20, "SELECT 2,\n       3;", true, None),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn outputs_are_replaced_in_place() {
        let output = |text: &str| Some(vec![text.to_owned()]);
        let outputs = [output("new"), None, output("shown nowhere")];
        assert_eq!(page().with_outputs(&outputs), TEXT.replace("old", "new"));
        assert_eq!(page().with_outputs(&[None, None, None]), TEXT);
    }
}
