//! Searching the bound graph by words.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use kernel::graph::turn::{Turn, TurnId};
use kernel::retrieval::ranking::Ranking;
use kernel::retrieval::search::SearchFilter;
use kernel::retrieval::words::{
    MAX_MATCHES, TooManyMatches, WordHit, WordPass, WordRanking, WordScorer,
};
use kernel::slicing::slicer::SliceError;
use pgrx::PgSqlErrorCode;

use crate::pg::access::search::{Narrowing, Searcher, Sought};
use crate::pg::error::{SqlError, Word};
use crate::pg::interrupts::check_interrupts;
use crate::pg::private::word_counts;
use crate::pg::query::{Argument, ColumnType, Lexemes, Planning, Row, Statement, Template};
use crate::pg::shortage::memory;
use crate::pg::tables::words::WordsColumn;
use crate::pg::text::checked;

const WORDS: Template = Template::new(
    include_str!("../../../sql/queries/words.sql"),
    &[ColumnType::Id, ColumnType::Words],
    Planning::EachTime,
);

const ALL_WORDS: Template = Template::new(
    include_str!("../../../sql/queries/all_words.sql"),
    &[ColumnType::Id, ColumnType::Words],
    Planning::EachTime,
);

const WORDS_OF: Template = Template::new(
    include_str!("../../../sql/queries/words_of.sql"),
    &[ColumnType::Id, ColumnType::Words],
    Planning::Probing,
);

const LEXEMES: Template = Template::new(
    include_str!("../../../sql/queries/lexemes.sql"),
    &[ColumnType::Text],
    Planning::EachTime,
);

/// The turns whose words fit a question.
pub struct WordMatches {
    /// The best of them, the best first.
    pub best: Vec<WordHit>,
    /// The scores of those that were asked for beside; none for one that has none of the question's lexemes.
    pub others: HashMap<TurnId, f64>,
}

/// How often each lexeme occurs in turns that have words.
#[derive(Default)]
pub struct WordCounts {
    /// How many turns have words.
    pub turns: u64,
    /// The numbers of their different lexemes, together.
    pub lengths: u64,
    /// How many turns have each lexeme.
    pub with: HashMap<String, u64>,
}

impl Searcher<'_> {
    /// The turns that are sought and whose words fit this text best, so many; beside them the scores of others that are
    /// sought.
    ///
    /// Where row security applies, the index does not serve: whether a turn has a word is asked of turns that may be
    /// seen alone. They are counted as well, so that what is hidden does not show in a score. Nor is what others say
    /// counted for one owner or for some sessions: a name that all of these have tells little about them.
    ///
    /// # Errors
    /// 54000 where more than [`MAX_MATCHES`] turns are held.
    pub fn words(
        &self,
        column: &WordsColumn,
        text: &str,
        limit: u32,
        others: &HashSet<TurnId>,
        sought: &Sought,
    ) -> Result<WordMatches, SqlError> {
        let lexemes = self.lexemes(column, text)?;
        let (mut ranking, mut scores) = (WordRanking::new(limit), HashMap::new());
        let mut offer = |id, score| {
            ranking.offer(id, score);
            if others.contains(&id) {
                scores.insert(id, score);
            }
        };
        if self.counts_what_is_sought(sought) {
            for (id, score) in self.scores_of_sought(column, lexemes, sought)? {
                offer(id, score);
            }
            return Ok(WordMatches { best: ranking.into_hits(), others: scores });
        }
        let scorer = self.scorer(column, lexemes);
        let any = any_of(scorer.lexemes());
        if !any.is_empty() {
            let narrowing = self.narrowing_with_salience(sought, 1)?;
            let condition = narrowing.condition();
            let names = [("words", column.expression.as_str()), ("is_sought", &condition)];
            let statement = self.graph.statement(&WORDS, &names);
            let arguments = [Argument::Text(Some(&any))].into_iter().chain(narrowing.arguments());
            self.each(&statement, &arguments.collect::<Vec<_>>(), |id, words| {
                offer(id, score(&scorer, words));
                ControlFlow::Continue(())
            })?;
        }
        Ok(WordMatches { best: ranking.into_hits(), others: scores })
    }

    /// Ranks these turns, every one of them that is sought, by their words.
    ///
    /// # Errors
    /// 54000 where more than [`MAX_MATCHES`] turns are held; else as [`Searcher::rank`].
    pub fn rank_by_words(
        &self,
        column: &WordsColumn,
        text: &str,
        turns: &[&Turn],
        sought: &Sought,
        mut ranking: Ranking,
    ) -> Result<Ranking, SqlError> {
        let lexemes = self.lexemes(column, text)?;
        let scores: HashMap<TurnId, f64> = if self.counts_what_is_sought(sought) {
            self.scores_of_sought(column, lexemes, sought)?.into_iter().collect()
        } else {
            let scorer = self.scorer(column, lexemes);
            let ids: Vec<TurnId> = turns.iter().map(|turn| turn.id).collect();
            self.scores_of(column, &scorer, &ids, &self.narrowing(sought, 1)?)?
        };
        for turn in turns {
            if let Some(score) = scores.get(&turn.id).filter(|score| **score > 0.0) {
                ranking.offer(turn.id, turn.salience, Some(*score as f32));
            }
        }
        Ok(ranking)
    }

    /// Whether words are counted among the turns that are sought, not among all.
    fn counts_what_is_sought(&self, sought: &Sought) -> bool {
        let SearchFilter { owner, sessions, .. } = &sought.filter;
        self.caller.rls || owner.is_some() || sessions.is_some()
    }

    /// What scores words by the counts of all turns.
    fn scorer(&self, column: &WordsColumn, lexemes: Vec<String>) -> WordScorer {
        let (table, number) = (self.graph.turns_table(), column.number);
        let corpus = word_counts::corpus(table, number).unwrap_or_default();
        WordScorer::new(corpus, word_counts::counted(table, number, lexemes))
    }

    /// The scores of those of these turns that are sought.
    fn scores_of(
        &self,
        column: &WordsColumn,
        scorer: &WordScorer,
        ids: &[TurnId],
        narrowing: &Narrowing,
    ) -> Result<HashMap<TurnId, f64>, SqlError> {
        let (mut scores, mut twice) = (HashMap::with_capacity(ids.len()), None);
        let condition = narrowing.condition();
        let names = [("words", column.expression.as_str()), ("is_sought", &condition)];
        let statement = self.graph.statement(&WORDS_OF, &names);
        let arguments = [Argument::Ids(ids)].into_iter().chain(narrowing.arguments());
        self.each(&statement, &arguments.collect::<Vec<_>>(), |id, words| {
            twice = twice.or(scores.insert(id, score(scorer, words)).map(|_| id));
            ControlFlow::Continue(())
        })?;
        match twice {
            Some(id) => Err(SliceError::<SqlError>::DuplicateTurn(id).into()),
            None => Ok(scores),
        }
    }

    /// Counts the words of all turns.
    ///
    /// # Errors
    /// As any reading.
    pub fn count_words(&self, column: &WordsColumn) -> Result<WordCounts, SqlError> {
        let mut counts = WordCounts::default();
        let names = [("words", column.expression.as_str()), ("is_sought", "true")];
        let statement = self.graph.statement(&ALL_WORDS, &names);
        self.each(&statement, &[], |_, words| {
            counts.turns += 1;
            counts.lengths += u64::from(words.len());
            for lexeme in words.iter() {
                // No question has another one, which could be too long for the key with what would stand for its bytes.
                let Ok(lexeme) = checked(lexeme) else { continue };
                if let Some(with) = counts.with.get_mut(lexeme) {
                    *with += 1;
                } else {
                    memory::assure(2 * lexeme.len());
                    counts.with.insert(lexeme.to_owned(), 1);
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(counts)
    }

    /// The scores of the turns that are sought and have any of these lexemes, by counts of what is sought.
    fn scores_of_sought(
        &self,
        column: &WordsColumn,
        lexemes: Vec<String>,
        sought: &Sought,
    ) -> Result<Vec<(TurnId, f64)>, SqlError> {
        if lexemes.is_empty() {
            return Ok(Vec::new());
        }
        let narrowing = self.narrowing_with_salience(sought, 0)?;
        let condition = narrowing.condition();
        let names = [("words", column.expression.as_str()), ("is_sought", &condition)];
        let statement = self.graph.statement(&ALL_WORDS, &names);
        let mut pass = WordPass::new(lexemes);
        let mut too_many = false;
        self.each(&statement, &narrowing.arguments().collect::<Vec<_>>(), |id, words| match pass
            .offer(id, words.len(), |lexeme| words.count(lexeme), words.iter())
        {
            Ok(()) => ControlFlow::Continue(()),
            Err(TooManyMatches) => {
                too_many = true;
                ControlFlow::Break(())
            }
        })?;
        if too_many {
            let message = format!("more than {MAX_MATCHES} turns have words of the question");
            return Err(SqlError::new(PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED, message)
                .word(Word::SearchTooLarge)
                .hint("Narrow the search by the owner or the sessions of turns."));
        }
        Ok(pass.into_scores(&check_interrupts))
    }

    /// The lexemes of a text by the column's configuration.
    fn lexemes(&self, column: &WordsColumn, text: &str) -> Result<Vec<String>, SqlError> {
        let literal = column.configuration_literal();
        let statement = LEXEMES.text.replace("{configuration}", &literal);
        let statement = Statement::new(&LEXEMES, statement, Vec::new());
        let mut lexemes = Vec::new();
        self.ask(&statement, &[Argument::Text(Some(text))], |row| {
            lexemes.extend(row.text(0, |text| text.map(str::to_owned)));
            ControlFlow::Continue(())
        })?;
        Ok(lexemes)
    }

    /// Runs a statement whose columns are a turn's id and its words.
    fn each(
        &self,
        statement: &Statement,
        arguments: &[Argument<'_>],
        mut sink: impl FnMut(TurnId, &Lexemes<'_>) -> ControlFlow<()>,
    ) -> Result<(), SqlError> {
        let each = |row: Row| {
            let Some(id) = row.id(0) else { return ControlFlow::Continue(()) };
            row.words(1, |words| words.map_or(ControlFlow::Continue(()), |words| sink(id, &words)))
        };
        self.ask(statement, arguments, each)
    }
}

fn score(scorer: &WordScorer, words: &Lexemes<'_>) -> f64 {
    scorer.score(words.len(), |lexeme| words.count(lexeme))
}

/// A query for any of these lexemes, as a `tsquery` is written.
fn any_of<'l>(lexemes: impl Iterator<Item = &'l str>) -> String {
    let quote = |lexeme: &str| format!("'{}'", lexeme.replace('\\', "\\\\").replace('\'', "''"));
    lexemes.map(quote).collect::<Vec<_>>().join(" | ")
}
