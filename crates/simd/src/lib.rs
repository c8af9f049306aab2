//! Plain loops, compiled once per instruction set and chosen at run time.
//!
//! Every version computes the same numbers: no machine's compiler may reorder sums of a fixed
//! number of lanes, or fuse a product and a sum that are not written as one.

use std::sync::OnceLock;

/// Compiles a function's body for AVX-512, for AVX2 with FMA, and for the target's baseline; calls
/// the best one. What the body calls is compiled along with it where it is `#[inline(always)]`.
#[macro_export]
macro_rules! simd {
    (
        $(#[$meta:meta])*
        $visibility:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block
    ) => {
        $(#[$meta])*
        #[inline]
        $visibility fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn body($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn avx512($($arg: $ty),*) $(-> $ret)? {
                    body($($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn avx2($($arg: $ty),*) $(-> $ret)? {
                    body($($arg),*)
                }
                match $crate::level() {
                    // SAFETY: the features were detected.
                    $crate::Level::Avx512 => unsafe { avx512($($arg),*) },
                    // SAFETY: the features were detected.
                    $crate::Level::Avx2 => unsafe { avx2($($arg),*) },
                    $crate::Level::Baseline => body($($arg),*),
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            body($($arg),*)
        }
    };
}

/// The instruction sets code is compiled for, from the plainest to the widest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Whatever the target guarantees.
    Baseline,
    /// 256-bit vectors with fused multiply-add.
    Avx2,
    /// 512-bit vectors.
    Avx512,
}

/// The best instruction set this machine has, or the one that `CATAMOUNT_SIMD` (`avx512`, `avx2`,
/// `baseline`) asks for if it is no better than that: to see what another machine computes, which
/// is the same.
#[inline]
pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let wanted = match std::env::var("CATAMOUNT_SIMD").as_deref() {
            Ok("baseline") => Level::Baseline,
            Ok("avx2") => Level::Avx2,
            _ => Level::Avx512,
        };
        wanted.min(best())
    })
}

fn best() -> Level {
    #[cfg(target_arch = "x86_64")]
    {
        use std::is_x86_feature_detected as has;
        if has!("avx512f")
            && has!("avx512vl")
            && has!("avx512dq")
            && has!("avx512bw")
            && has!("fma")
        {
            return Level::Avx512;
        }
        if has!("avx2") && has!("fma") {
            return Level::Avx2;
        }
    }
    Level::Baseline
}

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
