//! Writes the inputs that fuzzing begins with, of the golden vectors and the tests' files, and a dictionary of each
//! target: FOLDER/TARGET/NUMBER and FOLDER/TARGET.dict.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;

use graph_kernel_fuzz::genuine;
use graph_kernel_tests::data::{read_json_lines, read_text};
use graph_kernel_tests::messages::message_cases;
use graph_kernel_tests::recorder::chunk_cases;
use kernel::binary::{pack, to_cbor};
use kernel::chunking::policy::ChunkingPolicy;
use kernel::evidence::sufficiency::SufficiencyPolicy;
use kernel::policy::SlicePolicy;
use kernel::prompt::record::Document;
use serde_json::Value;
use zip::write::SimpleFileOptions;

/// Longer inputs make fuzzing slow and find no more.
const MAX_SEED_BYTES: usize = 16 * 1024;

/// How many seeds a target has at most.
const MAX_SEEDS: usize = 100;

/// Pieces that are likely to break a reader of JSON.
const PIECES: [&str; 25] = [
    "\\u0000",
    "\\ud800",
    "\\udc00",
    "\\ud83d\\ude00",
    "null",
    "true",
    "-0.0",
    "1e400",
    "1e-400",
    "1E+38",
    "1e39",
    "18446744073709551616",
    "9223372036854775807",
    "-9223372036854775808",
    "4294967296",
    "2147483648",
    "NaN",
    "\u{feff}",
    "\u{2028}",
    "😀",
    "[[[[[[[[",
    "[{},{},{},{}]",
    "gk3.",
    "gk3r.",
    "gkp1.",
];

type Seeds = BTreeMap<&'static str, Vec<Vec<u8>>>;

fn main() {
    let folder = std::env::args().nth(1).expect("usage: seeds FOLDER");
    let mut seeds = Seeds::new();
    policies(&mut seeds);
    documents(&mut seeds);
    events(&mut seeds);
    add(&mut seeds, "messages", message_cases().into_iter().map(|case| case.stored));
    imports(&mut seeds);
    for (target, inputs) in seeds {
        write(Path::new(&folder), target, &inputs);
    }
}

fn tests() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn add(
    seeds: &mut Seeds,
    target: &'static str,
    texts: impl IntoIterator<Item = impl Into<String>>,
) {
    seeds.entry(target).or_default().extend(texts.into_iter().map(|text| text.into().into_bytes()));
}

fn policies(seeds: &mut Seeds) {
    let mut slice: BTreeSet<String> = BTreeSet::new();
    for name in SlicePolicy::PRESETS {
        let preset = SlicePolicy::preset(name).unwrap();
        slice.extend([name.to_owned(), preset.canonical_text(), preset.quantized_text()]);
        slice.insert(format!(r#"{{"preset":"{name}","max_nodes":3}}"#));
    }
    for file in ["small-graphs.jsonl.gz", "small-graphs-v2.jsonl.gz"] {
        let cases: Vec<Value> = read_json_lines(&tests().join("golden/data").join(file));
        slice.extend(cases.iter().take(MAX_SEEDS / 3).map(|case| case["policy"].to_string()));
    }
    add(seeds, "slice_policy", slice);
    let sufficiency = SufficiencyPolicy::PRESETS
        .map(|name| serde_json::to_string(&SufficiencyPolicy::preset(name).unwrap()).unwrap());
    add(seeds, "sufficiency_policy", sufficiency);
    add(seeds, "sufficiency_policy", SufficiencyPolicy::PRESETS.map(|name| format!("{name:?}")));
    add(
        seeds,
        "chunking_policy",
        ["default".to_owned(), ChunkingPolicy::default().canonical_text()],
    );
    add(seeds, "chunking_policy", chunk_cases().iter().map(|case| case.policy.to_string()));
}

fn documents(seeds: &mut Seeds) {
    let golden: Value =
        serde_json::from_str(&read_text(&tests().join("golden/data/attestation.json"))).unwrap();
    let exports: Vec<String> =
        golden.as_array().unwrap().iter().map(|case| case["export"].to_string()).collect();
    genuine::with(|genuine| {
        for case in &genuine.cases {
            let attestation: Value = serde_json::from_str(&case.export_text).unwrap();
            add(seeds, "attestation", [attestation["attestation"].to_string()]);
            add(seeds, "export", [&case.export_text]);
            add(seeds, "proof", [&case.proof_text]);
            add(seeds, "statement", [&case.statement_text]);
        }
        add(seeds, "record", genuine.records.iter());
        let exports = genuine.cases.iter().map(|case| &case.export_text);
        for text in genuine.records.iter().chain(exports) {
            let document = Document::parse(text, &|| {}).unwrap();
            let bytes = [pack(&document, &|| {}), to_cbor(&document, &|| {})].map(Result::unwrap);
            seeds.entry("binary").or_default().extend(bytes);
        }
        add(seeds, "record", [&genuine.cases[0].export_text]);
        add(seeds, "public_key", [genuine.pem()]);
        add(seeds, "provenance", [genuine.provenance.to_json()]);
        add(seeds, "json", [genuine.provenance.to_json(), genuine.cases[0].statement_text.clone()]);
    });
    add(seeds, "export", exports);
    add(
        seeds,
        "contents",
        [r#"["a", null, {"content": "b\u00e9"}, {"payload": {"b": [1.50, 1e2], "aa": null}, "content": null}]"#],
    );
    add(seeds, "export", [read_text(&tests().join("server/recorded/service_export.json"))]);
    add(
        seeds,
        "json",
        [r#"{"a":[1,-0.5e+3,true,null,"x\"\\\u00e9\ud83d\ude00é"],"b":{"c":{}, "d":[ ]}}"#],
    );
}

fn events(seeds: &mut Seeds) {
    add(
        seeds,
        "events",
        chunk_cases().iter().map(|case| Value::from(case.events.clone()).to_string()),
    );
}

fn imports(seeds: &mut Seeds) {
    let exports = tests().join("server/exports");
    for (target, file) in [
        ("import_chatgpt", "chatgpt.json"),
        ("import_claude", "claude.json"),
        ("import_claude_code", "claude-code.jsonl"),
        ("import_claude_code", "agent-01.jsonl"),
        ("import_librechat", "librechat.json"),
        ("import_librechat", "librechat-recursive.json"),
        ("import_openwebui", "openwebui.json"),
        ("import_rows", "rows.jsonl"),
    ] {
        let text = read_text(&exports.join(file));
        if target == "import_chatgpt" {
            seeds.entry("import_archive").or_default().extend([
                archive(&[("conversations.json", &text)]),
                archive(&[
                    ("a/conversations-1.json", &text),
                    ("a/conversations-2.json", "[]"),
                    ("chat.html", ""),
                ]),
            ]);
        }
        add(seeds, target, [text]);
    }
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in files {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn write(folder: &Path, target: &str, inputs: &[Vec<u8>]) {
    let seeds = folder.join(target);
    fs::create_dir_all(&seeds).unwrap();
    let mut words: BTreeSet<String> = PIECES.iter().map(|piece| (*piece).to_owned()).collect();
    let short = inputs.iter().filter(|input| input.len() <= MAX_SEED_BYTES);
    for (number, input) in short.take(MAX_SEEDS).enumerate() {
        fs::write(seeds.join(number.to_string()), input).unwrap();
        for line in String::from_utf8_lossy(input).lines() {
            if let Ok(value) = serde_json::from_str(line) {
                collect(&value, &mut words);
            }
        }
        if let Ok(value) = serde_json::from_slice(input) {
            collect(&value, &mut words);
        }
    }
    let entries: String = words.iter().map(|word| format!("\"{}\"\n", entry(word))).collect();
    fs::write(folder.join(format!("{target}.dict")), entries).unwrap();
}

/// The keys and short texts of a value, in quotes.
fn collect(value: &Value, words: &mut BTreeSet<String>) {
    const MAX_WORD_BYTES: usize = 40;
    match value {
        Value::String(text) if text.len() <= MAX_WORD_BYTES => {
            words.insert(Value::from(text.as_str()).to_string());
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
        Value::Object(entries) => {
            for (key, value) in entries {
                words.insert(format!("{}:", Value::from(key.as_str())));
                collect(value, words);
            }
        }
        _ => {}
    }
}

/// A word as dictionaries of libFuzzer have it.
fn entry(word: &str) -> String {
    word.bytes()
        .map(|byte| match byte {
            b'"' | b'\\' => format!("\\{}", char::from(byte)),
            b' '..=b'~' => char::from(byte).to_string(),
            _ => format!("\\x{byte:02X}"),
        })
        .collect()
}
