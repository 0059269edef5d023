//! Encodes f32 rows from standard input and writes the blocks to standard output: this side of `encode_reference.py`.
//!
//! Usage: encode_rows ENCODING COLUMNS scalar|avx2 REPEATS; the seconds of the fastest repeat go to standard error.

use qpx_kernels::{Level, encoding};
use std::error::Error;
use std::io::{Read, Write, stderr, stdin, stdout};
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, columns, level, repeats] = arguments.as_slice() else {
        return Err("usage: encode_rows ENCODING COLUMNS scalar|avx2 REPEATS".into());
    };
    let encoding = encoding::by_name(name).ok_or("unknown encoding")?;
    let columns: usize = columns.parse()?;
    let level = match level.as_str() {
        "scalar" => Level::Scalar,
        "avx2" => Level::Avx2,
        _ => return Err("unknown level".into()),
    };
    let mut bytes = Vec::new();
    stdin().read_to_end(&mut bytes)?;
    let values: Vec<f32> = bytes
        .as_chunks()
        .0
        .iter()
        .map(|&b| f32::from_le_bytes(b))
        .collect();
    let mut blocks = vec![0; values.len() / columns * encoding.row_bytes(columns)];
    let mut fastest = f64::INFINITY;
    for _ in 0..repeats.parse::<usize>()?.max(1) {
        let start = Instant::now();
        encoding.encode_rows(level, &values, columns, &mut blocks);
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    stdout().write_all(&blocks)?;
    writeln!(stderr(), "{fastest}")?;
    Ok(())
}
