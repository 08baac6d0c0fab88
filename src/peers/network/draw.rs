//! Drawing in proportions that are known beforehand, by zipf's law or by any weights.
//!
//! One random number and one look into a table for each draw, however many there are to draw from
//! (alias method, M. D. Vose 1991). Samplers of the law itself take a logarithm or a power for each
//! draw, which is more than all else that a message costs here.

/// Draws places from 0 on.
#[derive(Clone, Debug)]
pub(super) struct Draw {
    count: u32,
    /// Empty where all places are equally likely.
    columns: Box<[Column]>,
}

/// A place, which gives what it has too little of to another.
#[derive(Clone, Copy, Debug)]
struct Column {
    /// Its own share of itself, in parts of 2^32.
    own: u32,
    other: u32,
}

impl Draw {
    /// Of so many, each as likely as the others.
    pub(super) fn evenly(count: usize) -> Self {
        Self { count: u32::try_from(count).unwrap_or(u32::MAX), columns: Box::default() }
    }

    /// By zipf's law: the `n`th is as likely as the first divided by `n` to the power of `skew`.
    pub(super) fn zipf(count: usize, skew: f64) -> Self {
        if skew == 0.0 {
            return Self::evenly(count);
        }
        let weights: Vec<f64> = (1..=count).map(|place| (place as f64).powf(-skew)).collect();
        Self::weighted(&weights)
    }

    /// In proportion to weights, none of them negative. All alike where none is above zero.
    pub(super) fn weighted(weights: &[f64]) -> Self {
        let even = Self::evenly(weights.len());
        let sum: f64 = weights.iter().sum();
        if sum <= 0.0 {
            return even;
        }
        // Each share in parts of an even share.
        let parts = weights.len() as f64 / sum;
        let mut left: Vec<f64> = weights.iter().map(|weight| weight * parts).collect();
        let mut columns: Vec<Column> =
            (0..even.count).map(|place| Column { own: u32::MAX, other: place }).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..even.count).partition(|place| left.get(*place as usize).is_some_and(|l| *l < 1.0));
        while let (Some(poor), Some(rich)) = (small.pop(), large.last().copied()) {
            let (Some(has), Some(column)) =
                (left.get(poor as usize).copied(), columns.get_mut(poor as usize))
            else {
                break;
            };
            *column = Column { own: (has * 2_f64.powi(32)) as u32, other: rich };
            if let Some(rest) = left.get_mut(rich as usize) {
                *rest -= 1.0 - has;
                if *rest < 1.0 {
                    large.pop();
                    small.push(rich);
                }
            }
        }
        Self { columns: columns.into(), ..even }
    }

    /// A place. With nothing to draw from it is 0.
    #[inline]
    pub(super) fn draw(&self, rng: &mut fastrand::Rng) -> u32 {
        let luck = rng.u64(..);
        let place = (((luck >> 32) * u64::from(self.count)) >> 32) as u32;
        let Some(Column { own, other }) = self.columns.get(place as usize) else { return place };
        // A choice that no branch predictor can know, so there is to be no branch.
        std::hint::select_unpredictable((luck as u32) < *own, place, *other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 200_000;

    fn counts(draw: &Draw, places: usize) -> Vec<f64> {
        let mut rng = fastrand::Rng::with_seed(11);
        let mut counts = vec![0_u32; places];
        (0..DRAWS).for_each(|_| counts[draw.draw(&mut rng) as usize] += 1);
        counts.into_iter().map(|count| f64::from(count) / f64::from(DRAWS)).collect()
    }

    fn assert_about(drawn: &[f64], expected: &[f64]) {
        assert_eq!(drawn.len(), expected.len());
        for (drawn, expected) in drawn.iter().zip(expected) {
            assert!((drawn - expected).abs() < 0.005, "{drawn} of {expected}");
        }
    }

    #[test]
    fn places_come_in_proportion_to_their_weights() {
        for weights in [
            &[44.0, 32.0, 4.0, 6.0, 6.0, 6.0, 2.0][..],
            &[1.0],
            &[0.0, 1.0, 0.0, 3.0],
            &[0.000_1, 1_000.0],
            &[0.5; 7],
        ] {
            let sum: f64 = weights.iter().sum();
            let expected: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
            assert_about(&counts(&Draw::weighted(weights), weights.len()), &expected);
        }
        let only = Draw::weighted(&[0.0, 1.0, 0.0]);
        let mut rng = fastrand::Rng::with_seed(1);
        assert!((0..10_000).all(|_| only.draw(&mut rng) == 1));
    }

    #[test]
    fn zipf_is_the_law_of_its_name() {
        for skew in [0.0, 0.8, 1.0, 1.5] {
            let weights: Vec<f64> = (1..=50).map(|place| f64::from(place).powf(-skew)).collect();
            let sum: f64 = weights.iter().sum();
            let expected: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
            assert_about(&counts(&Draw::zipf(50, skew), 50), &expected);
        }
    }

    #[test]
    fn nothing_to_draw_from_is_place_zero() {
        let mut rng = fastrand::Rng::with_seed(1);
        assert_eq!(Draw::evenly(0).draw(&mut rng), 0);
        assert_eq!(Draw::weighted(&[]).draw(&mut rng), 0);
        assert!((0..100).all(|_| Draw::weighted(&[0.0; 3]).draw(&mut rng) < 3));
    }
}
