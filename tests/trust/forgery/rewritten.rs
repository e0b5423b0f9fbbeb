//! Exports that other programs have rewritten verify, with any order of keys, white space, and spelling of numbers and
//! texts.

use fastrand::Rng;
use kernel::graph::edge::{Edge, EdgeType};
use kernel::graph::turn::{Phase, Role, Turn, TurnId};
use kernel::policy::SlicePolicy;
use kernel::slicing::slice::Slice;
use kernel::trust::attestation::{Circumstances, Status};
use proptest::prelude::*;

use crate::claim::{Claim, reason_of, selected};
use crate::document::{Document, Json, quoted};

/// A claim over a random slice: any ids, texts and numbers that a turn can have.
fn random_claim(random: &mut Rng) -> Claim {
    let mut turns: Vec<Turn> = (0..random.usize(1..8)).map(|_| random_turn(random)).collect();
    turns.sort_by_key(|turn| turn.id);
    turns.dedup_by_key(|turn| turn.id);
    let ids: Vec<TurnId> = turns.iter().map(|turn| turn.id).collect();
    let mut any = || ids[random.usize(..ids.len())];
    let mut edges: Vec<Edge> = (0..6)
        .map(|n| Edge { parent: any(), child: any(), edge_type: EdgeType::ALL[n % 4] })
        .collect();
    edges.sort();
    edges.dedup();
    let anchor = any();
    let policies = [
        "default",
        "broad",
        r#"{"phase_weights":{"debugging":-0.000001},"distance_decay":1e-6}"#,
        r#"{"phase_weights":{"synthesis":1e6},"max_radius":2147483647}"#,
    ];
    let policy: SlicePolicy = policies[random.usize(..policies.len())].parse().unwrap();
    Claim {
        slice: Slice {
            anchor,
            turns: turns.into_iter().map(selected).collect(),
            edges,
            pins_left_out: Vec::new(),
        },
        policy,
        circumstances: Circumstances {
            graph: "default".to_owned(),
            role: random_text(random),
            rls: random.bool(),
            status: Status::Attested,
        },
    }
}

fn random_turn(random: &mut Rng) -> Turn {
    let unit = |random: &mut Rng| match random.u8(..4) {
        0 => 0.0,
        1 => 1.0,
        2 => random.f32(),
        _ => f32::from_bits(random.u32(..=1.0f32.to_bits())),
    };
    let hashed = random.bool().then(|| format!("{:032x}{:032x}", random.u128(..), random.u128(..)));
    Turn {
        id: TurnId::from_u128(random.u128(..)),
        session_id: random_text(random),
        role: Role::ALL[random.usize(..Role::ALL.len())],
        phase: Phase::ALL[random.usize(..Phase::ALL.len())],
        salience: unit(random),
        trajectory_depth: random.u32(..=i32::MAX as u32),
        trajectory_sibling_order: random.u32(..3),
        trajectory_homogeneity: unit(random),
        trajectory_temporal: unit(random),
        trajectory_complexity: random_finite(random),
        created_at: random.i64(-210_866_803_200..=9_224_318_015_999),
        content_hash: hashed,
    }
}

/// Any binary32 that an export can have: finite, and not −0.
fn random_finite(random: &mut Rng) -> f32 {
    let number = f32::from_bits(random.u32(..));
    if number.is_finite() { number + 0.0 } else { 1.0 }
}

fn random_text(random: &mut Rng) -> String {
    const PIECES: [&str; 12] =
        ["", "s", "\"", "\\", "/", "\n", "\u{1}", "\u{7f}", "é", "\u{2028}", "😀", "a|b,c:{}"];
    (0..random.usize(..4)).map(|_| PIECES[random.usize(..PIECES.len())]).collect()
}

/// How a program writes JSON.
pub trait Writer {
    fn number(&mut self, number: f64) -> String;

    fn text(&mut self, text: &str) -> String {
        quoted(text)
    }

    /// The order in which an object's entries are written.
    fn arrange(&mut self, _entries: &mut Vec<(String, Json)>) {}

    /// The white space around tokens.
    fn space(&mut self) -> &'static str {
        ""
    }

    fn write(&mut self, json: &Json) -> String {
        let space = self.space();
        match json {
            Json::Integer(n) => n.to_string(),
            Json::Float(n) => self.number(*n),
            Json::String(text) => self.text(text),
            Json::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.write(item)).collect();
                format!("{space}[{space}{}]", items.join(&format!(",{space}")))
            }
            Json::Object(entries) => {
                let mut entries = entries.clone();
                self.arrange(&mut entries);
                let entries: Vec<String> = entries
                    .iter()
                    .map(|(key, value)| {
                        format!("{}{space}:{space}{}", self.text(key), self.write(value))
                    })
                    .collect();
                format!("{space}{{{}{space}}}", entries.join(&format!("{space},{space}")))
            }
            Json::Null | Json::Bool(_) => json.to_string(),
        }
    }
}

/// `JSON.stringify(JSON.parse(text))`: 1.0 is 1, exponents from 1e21 and below 1e-6.
pub struct JavaScript;

impl Writer for JavaScript {
    fn number(&mut self, number: f64) -> String {
        if number == 0.0 || (1e-6..1e21).contains(&number.abs()) {
            return number.to_string();
        }
        let text = format!("{number:e}");
        if text.contains("e-") { text } else { text.replace('e', "e+") }
    }
}

/// `text::jsonb::text`: no exponents, keys by length, a space after `:` and `,`.
pub struct Jsonb;

impl Writer for Jsonb {
    fn number(&mut self, number: f64) -> String {
        // Display writes all digits of the shortest decimal form.
        if number.fract() == 0.0 && number.abs() < 1e15 {
            format!("{number:.1}")
        } else {
            number.to_string()
        }
    }

    fn arrange(&mut self, entries: &mut Vec<(String, Json)>) {
        entries.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then(a.cmp(b)));
    }

    fn space(&mut self) -> &'static str {
        " "
    }
}

/// A program that keeps binary32 numbers in binary64.
struct Widening;

impl Writer for Widening {
    fn number(&mut self, number: f64) -> String {
        format!("{:?}", f64::from(number as f32))
    }
}

/// A random choice of everything that is free.
pub struct Wild<'a>(pub &'a mut Rng);

impl Writer for Wild<'_> {
    fn number(&mut self, number: f64) -> String {
        match self.0.u8(..5) {
            0 => format!("{number:?}"),
            1 => format!("{number:e}"),
            2 => format!("{number:E}"),
            3 => number.to_string(),
            _ => JavaScript.number(number),
        }
    }

    fn text(&mut self, text: &str) -> String {
        if self.0.bool() {
            return quoted(text);
        }
        let escape = |unit: u16| format!("\\u{unit:04x}");
        format!("\"{}\"", text.encode_utf16().map(escape).collect::<String>())
    }

    fn arrange(&mut self, entries: &mut Vec<(String, Json)>) {
        self.0.shuffle(entries);
    }

    fn space(&mut self) -> &'static str {
        ["", " ", "\n", "\t", "\r\n  "][self.0.usize(..5)]
    }
}

#[test]
fn javascript_writes_numbers_as_it_does() {
    let written = [1.0, 0.1, 1e-7, 1.5e-7, 0.000001, 1e20, 1e21, 3.4e38, -2.5, 123456.79];
    let expected = "1 0.1 1e-7 1.5e-7 0.000001 100000000000000000000 1e+21 3.4e+38 -2.5 123456.79";
    assert_eq!(written.map(|number| JavaScript.number(number)).join(" "), expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rewritten_exports_verify(seed in any::<u64>()) {
        let mut random = Rng::with_seed(seed);
        let genuine = random_claim(&mut random).signed();
        prop_assert_eq!(reason_of(&genuine.text()), "ok");
        for text in [
            JavaScript.write(&genuine.0),
            Jsonb.write(&genuine.0),
            Widening.write(&genuine.0),
            Wild(&mut random).write(&genuine.0),
        ] {
            prop_assert_eq!(reason_of(&text), "ok", "{}", text);
        }
    }

    #[test]
    fn a_digit_more_makes_another_number(seed in any::<u64>()) {
        let mut random = Rng::with_seed(seed);
        let genuine = random_claim(&mut random).signed();
        let numbers = genuine.scalars().into_iter().filter(|path| {
            matches!(genuine.clone().at(path), Json::Integer(_) | Json::Float(_))
        });
        let numbers: Vec<_> = numbers.collect();
        let path = &numbers[random.usize(..numbers.len())];
        let mut marked = genuine.clone();
        let number = std::mem::replace(marked.at(path), Json::String("here".to_owned()));
        let spelling = match number {
            Json::Integer(n) => format!("{n}."),
            Json::Float(n) if random.bool() => n.to_string(),
            Json::Float(n) => f64::from(n as f32).to_string(),
            _ => unreachable!("a number"),
        };
        let point = if spelling.contains('.') { "" } else { "." };
        let zeros = "0".repeat(random.usize(..30));
        let spelled = |digit: u8| {
            let spelling = format!("{spelling}{point}{zeros}{digit}");
            marked.text().replace("\"here\"", &spelling)
        };
        prop_assert_eq!(reason_of(&spelled(0)), "ok", "{}", spelled(0));
        let text = spelled(random.u8(1..=9));
        prop_assert_ne!(reason_of(&text), "ok", "{}", text);
    }

    #[test]
    fn rewritten_forgeries_do_not_verify(seed in any::<u64>()) {
        let mut random = Rng::with_seed(seed);
        let genuine = random_claim(&mut random).signed();
        let scalars = genuine.scalars();
        let mut forged: Document = genuine.clone();
        let value = forged.at(&scalars[random.usize(..scalars.len())]);
        *value = match value {
            Json::Null => Json::String("0".repeat(64)),
            Json::Bool(on) => Json::Bool(!*on),
            Json::Integer(n) => Json::Integer(*n ^ 1),
            Json::Float(n) => Json::Float(f64::from((*n as f32).next_up())),
            Json::String(text) => Json::String(format!("{text}x")),
            _ => unreachable!("a scalar"),
        };
        prop_assert_ne!(reason_of(&Wild(&mut random).write(&forged.0)), "ok");
    }
}
