//! Storage types of GGUF tensors, turned into f32. A quantised block holds a few scales and many
//! small integers.

use half::{bf16, f16};

/// (numbers, bytes) of a block of a storage type.
fn block(kind: u32) -> Option<(usize, usize)> {
    Some(match kind {
        0 => (1, 4),      // F32
        1 | 30 => (1, 2), // F16, BF16
        2 => (32, 18),    // Q4_0
        3 => (32, 20),    // Q4_1
        6 => (32, 22),    // Q5_0
        7 => (32, 24),    // Q5_1
        8 => (32, 34),    // Q8_0
        12 => (256, 144), // Q4_K
        14 => (256, 210), // Q6_K
        _ => return None,
    })
}

/// Bytes that `count` numbers of a storage type take; none if the type is not known.
pub fn bytes(kind: u32, count: usize) -> Option<usize> {
    let (numbers, bytes) = block(kind)?;
    if count.is_multiple_of(numbers) { (count / numbers).checked_mul(bytes) } else { None }
}

fn half_at(b: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([b[at], b[at + 1]]).to_f32()
}

/// The numbers of a whole tensor of a known storage type.
pub fn numbers(kind: u32, data: &[u8]) -> Vec<f32> {
    let Some((count, size)) = block(kind) else { return Vec::new() };
    let mut out = Vec::with_capacity(data.len() / size * count);
    for b in data.chunks_exact(size) {
        match kind {
            0 => out.push(f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
            1 => out.push(half_at(b, 0)),
            30 => out.push(bf16::from_le_bytes([b[0], b[1]]).to_f32()),
            2 => nibbles(&b[2..], &mut out, |q, _| half_at(b, 0) * (f32::from(q) - 8.0)),
            3 => nibbles(&b[4..], &mut out, |q, _| half_at(b, 0) * f32::from(q) + half_at(b, 2)),
            6 => {
                let high = u32::from_le_bytes([b[2], b[3], b[4], b[5]]);
                nibbles(&b[6..], &mut out, |q, i| half_at(b, 0) * (fifth(q, high, i) - 16.0));
            }
            7 => {
                let high = u32::from_le_bytes([b[4], b[5], b[6], b[7]]);
                nibbles(&b[8..], &mut out, |q, i| {
                    half_at(b, 0) * fifth(q, high, i) + half_at(b, 2)
                });
            }
            8 => out.extend(b[2..].iter().map(|&q| half_at(b, 0) * f32::from(q as i8))),
            12 => q4_k(b, &mut out),
            _ => q6_k(b, &mut out),
        }
    }
    out
}

/// Sixteen bytes hold 32 small integers: the low halves first, then the high ones.
fn nibbles(bytes: &[u8], out: &mut Vec<f32>, number: impl Fn(u8, usize) -> f32) {
    out.extend(bytes[..16].iter().enumerate().map(|(i, b)| number(b & 15, i)));
    out.extend(bytes[..16].iter().enumerate().map(|(i, b)| number(b >> 4, i + 16)));
}

/// An integer whose fifth bit is kept apart.
fn fifth(q: u8, high: u32, i: usize) -> f32 {
    f32::from(q) + 16.0 * ((high >> i) & 1) as f32
}

/// 256 numbers in eight groups of 32, each with a six-bit scale and minimum packed into twelve
/// bytes.
fn q4_k(b: &[u8], out: &mut Vec<f32>) {
    let (d, dmin, packed) = (half_at(b, 0), half_at(b, 2), &b[4..16]);
    let scale = |j: usize| -> (f32, f32) {
        let (s, m) = if j < 4 {
            (packed[j] & 63, packed[j + 4] & 63)
        } else {
            (
                (packed[j + 4] & 15) | (packed[j - 4] >> 6 << 4),
                (packed[j + 4] >> 4) | (packed[j] >> 6 << 4),
            )
        };
        (d * f32::from(s), dmin * f32::from(m))
    };
    for (pair, q) in b[16..144].chunks_exact(32).enumerate() {
        let ((s, m), (s2, m2)) = (scale(2 * pair), scale(2 * pair + 1));
        out.extend(q.iter().map(|q| s * f32::from(q & 15) - m));
        out.extend(q.iter().map(|q| s2 * f32::from(q >> 4) - m2));
    }
}

/// 256 numbers in sixteen groups of 16 with an eight-bit scale; four low bits and two high bits are
/// kept apart.
fn q6_k(b: &[u8], out: &mut Vec<f32>) {
    let (low, high, scales, d) = (&b[..128], &b[128..192], &b[192..208], half_at(b, 208));
    for half in 0..2 {
        let (low, high, scales) = (&low[half * 64..], &high[half * 32..], &scales[half * 8..]);
        for quarter in 0..4 {
            for i in 0..32 {
                let q = (low[(quarter % 2) * 32 + i] >> (quarter / 2 * 4)) & 15;
                let q = q | (((high[i] >> (2 * quarter)) & 3) << 4);
                let scale = scales[2 * quarter + i / 16] as i8;
                out.push(d * f32::from(scale) * (f32::from(q) - 32.0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn halves(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()).collect()
    }

    #[test]
    fn blocks_of_32() {
        // The integers 0..15 in the low halves and 15..0 in the high ones.
        let q: Vec<u8> = (0..16).map(|i| i | ((15 - i) << 4)).collect();
        let number = |i: usize| if i < 16 { i as f32 } else { (31 - i) as f32 };
        let check = |kind, bytes: Vec<u8>, want: &dyn Fn(usize) -> f32| {
            assert_eq!(super::bytes(kind, 32), Some(bytes.len()));
            let got = numbers(kind, &bytes);
            assert!(got.iter().enumerate().all(|(i, g)| *g == want(i)), "{kind}: {got:?}");
        };
        check(2, [halves(&[0.5]), q.clone()].concat(), &|i| 0.5 * (number(i) - 8.0));
        check(3, [halves(&[0.5, -2.0]), q.clone()].concat(), &|i| 0.5 * number(i) - 2.0);
        let high = 0xffff_0001u32.to_le_bytes().to_vec();
        let extra = |i: usize| if i == 0 || i >= 16 { 16.0 } else { 0.0 };
        check(6, [halves(&[2.0]), high.clone(), q.clone()].concat(), &|i| {
            2.0 * (number(i) + extra(i) - 16.0)
        });
        check(7, [halves(&[2.0, 1.0]), high, q].concat(), &|i| 2.0 * (number(i) + extra(i)) + 1.0);
        let signed: Vec<u8> = (0..32).map(|i| (i as i8 - 16) as u8).collect();
        check(8, [halves(&[0.25]), signed].concat(), &|i| 0.25 * (i as f32 - 16.0));
    }

    #[test]
    fn blocks_of_256() {
        // Scales 1..8 and minima 8..1, all below 16, so that groups 4..7 use the packed low halves
        // only.
        let mut packed = [0u8; 12];
        for j in 0..4 {
            packed[j] = j as u8 + 1;
            packed[j + 4] = 8 - j as u8;
            packed[j + 8] = (j as u8 + 5) | ((4 - j as u8) << 4);
        }
        // A fifth bit on group 4's scale and group 5's minimum sits in the top bits of earlier
        // bytes.
        packed[0] |= 1 << 6;
        packed[5] |= 1 << 6;
        let q: Vec<u8> = (0..128).map(|i| (i % 16) as u8 | (((i + 3) % 16) as u8) << 4).collect();
        let got = numbers(12, &[halves(&[0.5, 0.25]), packed.to_vec(), q].concat());
        for (i, got) in got.iter().enumerate() {
            let (group, at) = (i / 32, i / 64 * 32 + i % 32);
            let q = if group % 2 == 0 { at % 16 } else { (at + 3) % 16 } as f32;
            let s = (group + 1 + if group == 4 { 16 } else { 0 }) as f32;
            let m = (8 - group + if group == 5 { 16 } else { 0 }) as f32;
            assert_eq!(*got, 0.5 * s * q - 0.25 * m, "Q4_K at {i}");
        }
        // Q6_K: every number's six bits are its index within the half, modulo 64.
        let (mut low, mut high) = (vec![0u8; 128], vec![0u8; 64]);
        for half in 0..2 {
            for at in 0..128 {
                let (q, quarter, i) = ((at % 64) as u8, at / 32, at % 32);
                low[half * 64 + (quarter % 2) * 32 + i] |= (q & 15) << (quarter / 2 * 4);
                high[half * 32 + i] |= (q >> 4) << (2 * quarter);
            }
        }
        let scales: Vec<u8> = (0..16).map(|i| (i as i8 - 8) as u8).collect();
        let got = numbers(14, &[low, high, scales, halves(&[0.5])].concat());
        for (i, got) in got.iter().enumerate() {
            assert_eq!(
                *got,
                0.5 * (i as f32 / 16.0 - 8.0).floor() * ((i % 64) as f32 - 32.0),
                "Q6_K at {i}"
            );
        }
    }
}
