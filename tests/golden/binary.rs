//! Documents in few bytes: worked ones of each version stay readable, and what is written is read by another program,
//! the reader in docs/binary.md (clients/python/tests/test_documents.py).

use graph_kernel_tests::data::read_text;
use kernel::binary::{pack, to_cbor, unpack};
use kernel::prompt::record::Document;
use serde::Deserialize;
use serde_json::Value;

use crate::{bytes, data, last_members, without_white_space};

#[derive(Deserialize)]
struct Worked {
    name: String,
    bytes: String,
    json: String,
}

#[test]
fn worked_bytes_are_read_to_the_byte() {
    let worked: Vec<Worked> = serde_json::from_str(&read_text(&data("binary.json.gz"))).unwrap();
    assert!(worked.len() > 10);
    for case in worked {
        let document = unpack(&bytes(&case.bytes), &|| {}).unwrap();
        assert_eq!(document.canonical_text(&|| {}), case.json, "{}", case.name);
    }
}

/// Every signed document of the worked vectors, as its text stands in the file.
fn signed() -> Vec<String> {
    let texts =
        |file: &str, name: &str| last_members(&without_white_space(&read_text(&data(file))), name);
    let proofs: Vec<Value> = serde_json::from_str(&read_text(&data("proof.json"))).unwrap();
    let proven = proofs.iter().map(|case| case["export_text"].as_str().unwrap().to_owned());
    [texts("attestation.json", "export"), texts("prompt.json.gz", "record"), proven.collect()]
        .concat()
}

#[test]
fn signed_documents_come_back_to_the_byte() {
    let documents = signed();
    assert!(documents.len() > 8);
    for text in documents {
        let document = Document::parse(&text, &|| {}).unwrap();
        let packed = pack(&document, &|| {}).unwrap();
        assert_eq!(unpack(&packed, &|| {}).unwrap().canonical_text(&|| {}), text);
        assert!(
            packed.len() * 2 < text.len() && to_cbor(&document, &|| {}).unwrap().len() < text.len()
        );
    }
}
