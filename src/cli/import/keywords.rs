//! Phase and salience of a turn by the phrases in it: a heuristic, which is used only when it is asked for.

/// The phrases, by phase; `decision` stands for a salience.
const KEYWORDS: &str = include_str!("keywords.txt");

/// The salience of a turn in which something is decided.
const DECISION_SALIENCE: f32 = 0.8;

/// How much of a text is looked at, in bytes.
const MAX_TEXT_BYTES: usize = 20_000;

/// What the phrases of a text say.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Labels {
    pub(super) phase: Option<&'static str>,
    pub(super) salience: Option<f32>,
}

/// Kinds and phrases, with spaces around them.
pub(super) struct Keywords(Vec<(&'static str, String)>);

impl Keywords {
    pub(super) fn new() -> Self {
        let entries = KEYWORDS.lines().filter(|line| !line.starts_with('#'));
        Keywords(
            entries
                .filter_map(|line| line.split_once(": "))
                .map(|(kind, phrase)| (kind, words(phrase)))
                .collect(),
        )
    }

    pub(super) fn labels(&self, text: &str) -> Labels {
        let text = words(&text[..text.floor_char_boundary(MAX_TEXT_BYTES)]);
        let mut phases: Vec<(&'static str, usize)> = Vec::new();
        let mut salience = None;
        for (kind, phrase) in &self.0 {
            let count = occurrences(&text, phrase);
            if count == 0 {
                continue;
            }
            if *kind == "decision" {
                salience = Some(DECISION_SALIENCE);
            } else if let Some(phase) = phases.iter_mut().find(|(name, _)| name == kind) {
                phase.1 += count;
            } else {
                phases.push((kind, count));
            }
        }
        let most = phases.iter().map(|(_, count)| *count).max();
        let mut first = phases.iter().filter(|(_, count)| Some(*count) == most);
        let phase = match (first.next(), first.next()) {
            (Some((phase, _)), None) => Some(*phase),
            _ => None,
        };
        Labels { phase, salience }
    }
}

/// How often a phrase is in a text; both have a space before and after each word.
fn occurrences(text: &str, phrase: &str) -> usize {
    // Phrases that follow each other share a space.
    text.match_indices(phrase.trim_end()).filter(|(at, _)| text[*at..].starts_with(phrase)).count()
}

/// The words of a text in lower case, with a space before and behind each.
fn words(text: &str) -> String {
    let text = text.to_lowercase().replace('\u{2019}', "'");
    let mut words = String::with_capacity(text.len() + 2);
    words.push(' ');
    for word in text.split(|c: char| !c.is_alphanumeric() && c != '\'') {
        if !word.is_empty() {
            words.push_str(word);
            words.push(' ');
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::graph::turn::Phase;

    #[test]
    fn every_phase_has_keywords_and_nothing_else_has() {
        let keywords = Keywords::new();
        for phase in Phase::ALL {
            assert!(keywords.0.iter().any(|(kind, _)| *kind == phase.name()), "{}", phase.name());
        }
        let known = |kind: &str| kind == "decision" || Phase::from_name(kind).is_some();
        assert!(keywords.0.iter().all(|(kind, phrase)| known(kind) && phrase.trim() != ""));
    }

    #[test]
    fn most_phrases_decide_and_equals_do_not() {
        let keywords = Keywords::new();
        let phase = |text| keywords.labels(text).phase;
        assert_eq!(
            phase("The test FAILED: an error in line 4. What if it is the clock?"),
            Some("debugging")
        );
        assert_eq!(phase("An error. What if"), None);
        assert_eq!(phase("error error what if"), Some("debugging"));
        assert_eq!(phase("Let’s plan"), Some("planning"));
        assert_eq!(phase("terror and debugger"), None);
        let salience = |text| keywords.labels(text).salience;
        assert_eq!((salience("We decided: UTC."), salience("Hello.")), (Some(0.8), None));
    }
}
