//! Numbers are compared by value: other spellings of the signed number verify, numbers near it do not.

use crate::claim::{Claim, reason_of};

/// The export's text with another spelling of a number of the first turn.
fn spelled(key: &str, spelling: &str) -> String {
    let text = Claim::genuine().signed().text();
    let start = text.find(&format!(r#""{key}":"#)).unwrap() + key.len() + 3;
    let end = start + text[start..].find([',', '}']).unwrap();
    format!("{}{spelling}{}", &text[..start], &text[end..])
}

fn verify(key: &str, spelling: &str) -> &'static str {
    reason_of(&spelled(key, spelling))
}

/// The value of a key of the first turn, as the export writes it.
fn written(key: &str) -> String {
    let text = Claim::genuine().signed().text();
    let start = text.find(&format!(r#""{key}":"#)).unwrap() + key.len() + 3;
    text[start..start + text[start..].find([',', '}']).unwrap()].to_owned()
}

#[test]
fn another_spelling_of_a_number_verifies() {
    assert_eq!([written("salience"), written("trajectory_temporal")], ["0.1", "0.2"]);
    for (key, spellings) in [
        // Widened to binary64, in exponents, with zeros.
        ("salience", &["0.10000000149011612", "1e-1", "1E-1", "0.1000", "0.01e+1", "10e-2"][..]),
        ("trajectory_temporal", &["0.20000000298023224", "2e-1", "0.20"]),
        ("trajectory_homogeneity", &["0.50", "5e-1", "0.5e0"]),
        ("trajectory_complexity", &["1.50", "15e-1", "0.15e1"]),
        ("trajectory_depth", &["1", "1.0", "1e0", "10e-1", "0.1e1"]),
        ("trajectory_sibling_order", &["9.0", "9e0"]),
        ("created_at", &["1704067260.0", "1.70406726e9", "170406726e1", "1704067260.000"]),
    ] {
        for spelling in spellings {
            assert_eq!(verify(key, spelling), "ok", "{key} {spelling}");
        }
    }
}

#[test]
fn what_is_no_binary32_is_malformed() {
    for spelling in [
        "0.100000001",
        "0.1000000014901161",
        "0.10000000000000002",
        "0.10000000000000001",
        "0.1000000000000000000000000000000001",
        "0.100000001490116119384765625",
        "0.100000001490116120000000000000000001",
        "0.09999999999999999",
        "1e39",
        "-1e39",
        "3.5e38",
        "1e400",
        "-1e400",
        "1e-400000000000",
        "1e99999999999999999999",
        "123456789012345678901",
        "123456789012345678901234567890123456789012345678901234567890",
        "NaN",
        "nan",
        "Infinity",
        "-Infinity",
        "inf",
        "0x1",
        "0.1f",
        ".1",
        "1.",
        "+0.1",
        "00.1",
        "0,1",
        "1_0",
        "\"0.1\"",
        "\"NaN\"",
        "null",
        "[0.1]",
        "{}",
        "",
    ] {
        for key in ["salience", "trajectory_homogeneity", "trajectory_complexity"] {
            assert_eq!(verify(key, spelling), "malformed", "{key} {spelling}");
        }
    }
}

#[test]
fn what_is_no_integer_is_malformed() {
    for key in ["trajectory_depth", "trajectory_sibling_order", "created_at"] {
        for spelling in [
            "1.5",
            "1e-1",
            "1e400",
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551615",
            "340282366920938463463374607431768211456",
            "NaN",
            "\"1\"",
            "null",
            "true",
            "[]",
        ] {
            assert_eq!(verify(key, spelling), "malformed", "{key} {spelling}");
        }
    }
    for spelling in ["-1", "4294967296", "4294967297", "1e10"] {
        assert_eq!(verify("trajectory_depth", spelling), "malformed", "{spelling}");
    }
    // As binary64 these equal the integer.
    for spelling in ["1704067260.00000000000000000000001", "170406725999999999999999999999e-20"] {
        assert_eq!(verify("created_at", spelling), "malformed", "{spelling}");
    }
    assert_eq!(verify("trajectory_depth", "1.00000000000000000000001"), "malformed");
    for spelling in ["9007199254740993.0", "9007199254740994.0", "9007199254740994"] {
        assert_eq!(verify("created_at", spelling), "digest_mismatch", "{spelling}");
    }
}

#[test]
fn a_number_nearby_is_another_number() {
    for (key, spellings) in [
        ("salience", &["0.10000001", "0.099999994", "0.10000000894069672", "0", "1", "-0.1"][..]),
        ("trajectory_depth", &["0", "2", "4294967295"]),
        ("created_at", &["1704067261", "1704067259", "-1704067260", "0", "9223372036854775807"]),
    ] {
        for spelling in spellings {
            assert_eq!(verify(key, spelling), "digest_mismatch", "{key} {spelling}");
        }
    }
}

#[test]
fn minus_zero_is_another_number_than_zero() {
    let mut claim = Claim::genuine();
    claim.turn(1).trajectory_complexity = 0.0;
    let text = claim.signed().text();
    let (zero, minus_zero) =
        (r#""trajectory_complexity":0.0,"#, r#""trajectory_complexity":-0.0,"#);
    assert!(text.contains(zero));
    assert_eq!(reason_of(&text.replacen(zero, r#""trajectory_complexity":0,"#, 1)), "ok");
    assert_eq!(reason_of(&text.replacen(zero, minus_zero, 1)), "digest_mismatch");
}

#[test]
fn numbers_that_are_hard_to_read_survive() {
    // Where reading as binary64 and narrowing rounds twice, at the ends of the range, subnormal, and far from 1, where
    // an inexact reader is off by a bit.
    let hard = [
        7.038531e-26f32,
        1.1754942e-38,
        1.1754944e-38,
        1e-45,
        f32::MIN_POSITIVE,
        f32::MAX,
        f32::MIN,
        f32::EPSILON,
        1e-7,
        9.999999e-5,
        2.6542484e-33,
        -2.6052983e30,
        1.829961e-31,
        16_777_217.0,
        8.589973e9,
        1e10,
        1e15,
        1e16,
        1e21,
        1e22,
        1e23,
        std::f32::consts::PI,
    ];
    let failed: Vec<f32> = hard
        .into_iter()
        .filter(|complexity| {
            let mut claim = Claim::genuine();
            claim.turn(1).trajectory_complexity = *complexity;
            reason_of(&claim.signed().text()) != "ok"
        })
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
}
