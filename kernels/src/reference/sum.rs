//! Sums over sixteen partial sums.

/// Partial sums, and the number of the next element.
#[derive(Default)]
pub(super) struct Sixteen {
    sums: [f32; 16],
    next: usize,
}

impl Sixteen {
    /// The next element is a product.
    pub(super) fn product(&mut self, a: f32, b: f32) {
        let s = &mut self.sums[self.next % 16];
        *s = a.mul_add(b, *s);
        self.next += 1;
    }

    /// The next element is a number.
    pub(super) fn number(&mut self, a: f32) {
        self.sums[self.next % 16] += a;
        self.next += 1;
    }

    /// Zeros up to a multiple of `n` elements.
    pub(super) fn pad(&mut self, n: usize) {
        while !self.next.is_multiple_of(n) {
            self.product(0.0, 0.0);
        }
    }

    /// Adds the partial sums of `other` to these.
    pub(super) fn merge(mut self, other: &Self) -> Self {
        for (a, b) in self.sums.iter_mut().zip(other.sums) {
            *a += b;
        }
        self
    }

    /// The whole sum.
    pub(super) fn total(self) -> f32 {
        let mut s = self.sums;
        for n in [8, 4, 2, 1] {
            for i in 0..n {
                s[i] += s[i + n];
            }
        }
        s[0]
    }
}

/// The sum of products.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let mut sum = Sixteen::default();
    for (a, b) in a.iter().zip(b) {
        sum.product(*a, *b);
    }
    sum.pad(16);
    sum.total()
}
