//! Times of rows: those that PostgreSQL writes in ISO 8601. Others that it reads follow settings or the day.

use std::ops::{Range, RangeInclusive};

use chrono::{DateTime, NaiveDate};

/// What a timestamp can be, in seconds since 1970: from 4714-11-24 BC to the end of the year 294276.
const STORABLE: Range<i64> = -210_866_803_200..9_224_318_016_000;

/// The years after which dates fall on the same days again, and their days.
const CYCLE_YEARS: i64 = 400;
const CYCLE_DAYS: i64 = 146_097;

const DAY: i64 = 86_400;

/// Whether a text is a time that a timestamp can be.
pub(super) fn is_storable(text: &str) -> bool {
    matches!(text, "infinity" | "-infinity")
        || seconds(text).is_some_and(|seconds| STORABLE.contains(&seconds))
}

/// Seconds since 1970. What is missing behind the date is 0; without a time zone it is UTC.
fn seconds(text: &str) -> Option<i64> {
    let (mut rest, is_before_christ) = match text.strip_suffix(" BC") {
        Some(text) => (text, true),
        None => (text, false),
    };
    let rest = &mut rest;
    let year = number(rest, 4..=6).filter(|year| *year > 0)?;
    let year = if is_before_christ { 1 - year } else { year };
    let month = take(rest, "-").then(|| number(rest, 2..=2)).flatten()?;
    let day = take(rest, "-").then(|| number(rest, 2..=2)).flatten()?;
    let days = days(year, month, day)?;
    let mut seconds = 0;
    if take(rest, "T") || take(rest, " ") {
        seconds = time_of_day(rest)? - offset(rest)?;
    }
    rest.is_empty().then_some(days * DAY + seconds)
}

/// Days since 1970.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let like = i32::try_from(CYCLE_YEARS + year.rem_euclid(CYCLE_YEARS)).ok()?;
    let date = NaiveDate::from_ymd_opt(like, month.try_into().ok()?, day.try_into().ok()?)?;
    let days = date.signed_duration_since(DateTime::UNIX_EPOCH.date_naive()).num_days();
    Some(days + (year - i64::from(like)) / CYCLE_YEARS * CYCLE_DAYS)
}

fn time_of_day(rest: &mut &str) -> Option<i64> {
    let hour = number(rest, 2..=2)?;
    let minute = sixtieth(rest, true)?.filter(|minute| *minute < 60)?;
    let second = sixtieth(rest, true)?.unwrap_or(0);
    if take(rest, ".") {
        number(rest, 1..=18)?;
    }
    let seconds = (hour * 60 + minute) * 60 + second;
    // A second may be a leap second, and the last of a day its end.
    (second <= 60 && seconds <= DAY && (hour < 24 || seconds == DAY)).then_some(seconds)
}

/// The offset from UTC in seconds.
fn offset(rest: &mut &str) -> Option<i64> {
    take(rest, " ");
    if rest.is_empty() || take(rest, "Z") || take(rest, "UTC") {
        return Some(0);
    }
    let sign = if take(rest, "+") { 1 } else { -1 };
    if sign < 0 && !take(rest, "-") {
        return None;
    }
    let hour = number(rest, 2..=2).filter(|hour| *hour < 16)?;
    let has_colons = rest.starts_with(':');
    let minute = sixtieth(rest, has_colons)?.unwrap_or(0);
    let second = sixtieth(rest, has_colons)?.unwrap_or(0);
    (minute < 60 && second < 60).then_some(sign * ((hour * 60 + minute) * 60 + second))
}

/// Two digits, behind a colon where one is expected; `Some(None)` where nothing of that follows.
fn sixtieth(rest: &mut &str, has_colon: bool) -> Option<Option<i64>> {
    let follows =
        if has_colon { take(rest, ":") } else { rest.starts_with(|c: char| c.is_ascii_digit()) };
    if follows { number(rest, 2..=2).map(Some) } else { Some(None) }
}

fn take(rest: &mut &str, word: &str) -> bool {
    let behind = rest.strip_prefix(word);
    *rest = behind.unwrap_or(rest);
    behind.is_some()
}

/// The number of so many digits.
fn number(rest: &mut &str, digits: RangeInclusive<usize>) -> Option<i64> {
    let end = rest.bytes().take(*digits.end()).take_while(u8::is_ascii_digit).count();
    let (number, behind) = rest.split_at(end);
    *rest = behind;
    number.parse().ok().filter(|_| digits.contains(&end))
}
