//! Random deviates for simulations with a known truth.

/// A small generator of normal deviates (xorshift64*, Box–Muller): the same values everywhere.
pub(crate) struct Normal(pub(crate) u64);

impl Normal {
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub(crate) fn draw(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// A first-order autoregression of mean 0, standard deviation 1 and coefficient `r`.
#[cfg(test)]
pub(crate) fn autoregression(random: &mut Normal, n: usize, r: f64) -> Vec<f64> {
    let mut last = random.draw();
    (0..n)
        .map(|_| {
            last = r * last + (1.0 - r * r).sqrt() * random.draw();
            last
        })
        .collect()
}

/// How many of `times` experiments have the truth in their interval (percent).
#[cfg(test)]
pub(crate) fn coverage(times: u32, mut holds: impl FnMut(&mut Normal) -> bool) -> f64 {
    let mut normal = Normal(0x9E37_79B9_7F4A_7C15);
    let held = (0..times).filter(|_| holds(&mut normal)).count();
    100.0 * f64::from(u32::try_from(held).unwrap()) / f64::from(times)
}
