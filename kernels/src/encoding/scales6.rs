//! Eight 6-bit scales and eight 6-bit minimums in 12 bytes, as `q4_k` and `q5_k` hold them.
//!
//! Byte j (j < 4) has scale j in its low six bits, byte 4 + j minimum j; byte 8 + j has the low four bits of scale 4 + j in its
//! low half and those of minimum 4 + j in its high half, whose upper two bits are the top bits of byte j and byte 4 + j.

/// Bytes taken.
pub const BYTES: usize = 12;

/// The scales and the minimums.
#[inline(always)]
pub fn unpack(bytes: &[u8; BYTES], scales: &mut [u8; 8], minimums: &mut [u8; 8]) {
    for j in 0..4 {
        let (s, m, both) = (bytes[j], bytes[4 + j], bytes[8 + j]);
        scales[j] = s & 63;
        minimums[j] = m & 63;
        scales[4 + j] = (both & 15) | ((s >> 6) << 4);
        minimums[4 + j] = (both >> 4) | ((m >> 6) << 4);
    }
}

/// The reverse; all numbers are below 64.
#[inline(always)]
pub fn pack(scales: &[u8; 8], minimums: &[u8; 8]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for j in 0..4 {
        bytes[j] = scales[j] | ((scales[4 + j] >> 4) << 6);
        bytes[4 + j] = minimums[j] | ((minimums[4 + j] >> 4) << 6);
        bytes[8 + j] = (scales[4 + j] & 15) | ((minimums[4 + j] & 15) << 4);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_back_from_every_place() {
        for place in 0..16 {
            for number in 0..64 {
                let mut all = [0u8; 16];
                for (i, n) in all.iter_mut().enumerate() {
                    *n = (i as u8 * 7 + number) % 64;
                }
                all[place] = number;
                let scales: [u8; 8] = all[..8].try_into().unwrap();
                let minimums: [u8; 8] = all[8..].try_into().unwrap();
                let (mut s, mut m) = ([0; 8], [0; 8]);
                unpack(&pack(&scales, &minimums), &mut s, &mut m);
                assert_eq!((s, m), (scales, minimums), "number {number} at {place}");
            }
        }
    }
}
