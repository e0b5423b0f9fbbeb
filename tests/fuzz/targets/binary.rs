#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| graph_kernel_fuzz::documents::binary(data));
