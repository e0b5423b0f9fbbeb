#![no_main]
use graph_kernel_fuzz::import::{self, Format};
libfuzzer_sys::fuzz_target!(|data: &[u8]| import::check(Format::Chatgpt, data));
