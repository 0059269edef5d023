//! Decoding against an independent decoder, bit for bit (`tools/decode_vectors.py` made the files).

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use qpx_kernels::{Encoding, encoding};
use std::path::Path;

const BLOCKS: &[&str] = &[
    "q8_0", "q4_1", "q5_1", "q6_k", "q5_k", "q4_k", "q3_k", "q2_k",
];

fn vectors(encoding: &Encoding) -> (Vec<u8>, Vec<f32>) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/vectors/{}.bin", encoding.name));
    let file = std::fs::read(&path).unwrap();
    let (count, rest) = file.split_first_chunk::<4>().unwrap();
    let (blocks, values) = rest.split_at(u32::from_le_bytes(*count) as usize * encoding.bytes);
    let values: Vec<f32> = values
        .as_chunks()
        .0
        .iter()
        .map(|&b| f32::from_le_bytes(b))
        .collect();
    assert_eq!(
        values.len() * encoding.bytes,
        blocks.len() * encoding.block,
        "{}",
        path.display()
    );
    (blocks.to_vec(), values)
}

#[test]
fn blocks_decode_to_the_bits_of_the_independent_decoder() {
    for name in BLOCKS {
        let encoding = encoding::by_name(name).unwrap();
        let (blocks, expected) = vectors(encoding);
        let mut found = vec![0.0; expected.len()];
        encoding.decode.unwrap()(&blocks, &mut found);
        let mut numbers = 0;
        for (i, (e, f)) in expected.iter().zip(&found).enumerate() {
            if e.is_nan() {
                assert!(f.is_nan(), "{name}: value {i} is {f}, not NaN");
            } else {
                numbers += 1;
                assert_eq!(
                    e.to_bits(),
                    f.to_bits(),
                    "{name}: value {i} is {f}, not {e}"
                );
            }
        }
        assert!(
            numbers * 3 > expected.len() * 2,
            "{name}: {numbers} real numbers are too few for a test"
        );
    }
}

#[test]
#[should_panic(expected = "33 bytes are not 32 values")]
fn a_cut_block_is_not_decoded() {
    encoding::q8_0::ENCODING.decode.unwrap()(&[0; 33], &mut [0.0; 32]);
}

#[test]
fn names_are_found_and_are_no_others() {
    for encoding in encoding::ENCODINGS {
        assert!(
            std::ptr::eq(*encoding, encoding::by_name(encoding.name).unwrap()),
            "{}",
            encoding.name
        );
    }
    for name in ["", "Q4_K", "q4_0", "f8"] {
        assert!(encoding::by_name(name).is_none(), "{name}");
    }
    assert_eq!(encoding::by_name("q4_k").unwrap().row_bytes(257), 288);
    assert_eq!(encoding::by_name("bf16").unwrap().row_bytes(257), 514);
}
