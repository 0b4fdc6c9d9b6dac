//! Comparing quantiles of two sets of rounds by a bootstrap over rounds: a round is drawn as a whole, because samples within one are alike.
use crate::stats::Rng;
use capture::quantile::rank;

/// Work per estimate at most, in values visited; sets how many repetitions are made.
const WORK: usize = 100_000_000;
const SEED: u64 = 0x5eed_0f5c;

/// How two quantiles are set against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// `b - a`.
    Difference,
    /// `b / a`.
    Ratio,
}

/// An estimate and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// From all rounds.
    pub value: f64,
    /// 2.5 % and 97.5 % of the repetitions; `None` with fewer than two rounds in one of the sets, where a bootstrap over rounds says nothing.
    pub interval: Option<(f64, f64)>,
}

/// Rounds of samples, one of the two that are compared: the values sorted, each with its round.
#[derive(Debug)]
pub struct Rounds {
    sorted: Vec<(u64, u32)>,
    count: u32,
}

impl Rounds {
    /// From the values of each round; empty rounds are left out.
    pub fn new<'a>(rounds: impl IntoIterator<Item = &'a [u64]>) -> Rounds {
        let mut sorted = Vec::new();
        let mut count = 0;
        for values in rounds.into_iter().filter(|values| !values.is_empty()) {
            sorted.extend(values.iter().map(|value| (*value, count)));
            count += 1;
        }
        sorted.sort_unstable();
        Rounds { sorted, count }
    }

    /// Rounds with values.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Values of all rounds.
    pub fn len(&self) -> u64 {
        self.sorted.len() as u64
    }

    /// No values at all?
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Quantile when round `r` counts `weights[r]` times.
    fn quantile(&self, weights: &[u32], q: f64) -> f64 {
        let n: u64 = self.sorted.iter().map(|(_, round)| u64::from(weights[*round as usize])).sum();
        let wanted = rank(n.max(1), q);
        let mut seen = 0;
        for (value, round) in &self.sorted {
            seen += u64::from(weights[*round as usize]);
            if seen >= wanted {
                return *value as f64;
            }
        }
        self.sorted.last().map_or(0.0, |(value, _)| *value as f64)
    }

    fn draw(&self, rng: &mut Rng) -> Vec<u32> {
        let mut weights = vec![0; self.count as usize];
        for _ in 0..self.count {
            weights[rng.below(self.count.into()) as usize] += 1;
        }
        weights
    }
}

/// Sets quantile `q` of `b` against that of `a`. `None` when one of them has no values (or the ratio's base is 0).
pub fn compare(a: &Rounds, b: &Rounds, q: f64, how: Compare) -> Option<Estimate> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let set = |of_a: f64, of_b: f64| match how {
        Compare::Difference => Some(of_b - of_a),
        Compare::Ratio => (of_a > 0.0).then(|| of_b / of_a),
    };
    let all = |rounds: &Rounds| rounds.quantile(&vec![1; rounds.count as usize], q);
    let value = set(all(a), all(b))?;
    if a.count < 2 || b.count < 2 {
        return Some(Estimate { value, interval: None });
    }
    let repetitions = (WORK / (a.sorted.len() + b.sorted.len())).clamp(100, 1000);
    let mut rng = Rng::new(SEED);
    let mut drawn: Vec<f64> = (0..repetitions)
        .filter_map(|_| {
            let (for_a, for_b) = (a.draw(&mut rng), b.draw(&mut rng));
            set(a.quantile(&for_a, q), b.quantile(&for_b, q))
        })
        .collect();
    drawn.sort_unstable_by(f64::total_cmp);
    let at = |share| drawn.get((rank(drawn.len() as u64, share) - 1) as usize).copied();
    Some(Estimate { value, interval: at(0.025).zip(at(0.975)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(count: u32, base: u64, seed: u64) -> Rounds {
        let mut rng = Rng::new(seed);
        let values: Vec<Vec<u64>> = (0..count).map(|_| (0..500).map(|_| base + rng.below(1000)).collect()).collect();
        Rounds::new(values.iter().map(Vec::as_slice))
    }

    #[test]
    fn a_difference_is_found_and_its_absence_too() {
        let found = compare(&made(8, 1000, 1), &made(8, 3000, 2), 0.5, Compare::Difference).expect("values");
        let (low, high) = found.interval.expect("rounds");
        assert!(low > 1900.0 && high < 2100.0 && low <= found.value && found.value <= high, "{found:?}");
        let none = compare(&made(8, 1000, 1), &made(8, 1000, 3), 0.5, Compare::Ratio).expect("values");
        let (low, high) = none.interval.expect("rounds");
        assert!(low < 1.0 && high > 1.0, "{none:?}");
    }

    #[test]
    fn one_round_gives_a_value_without_an_interval() {
        let it = compare(&made(1, 1000, 1), &made(4, 3000, 2), 0.5, Compare::Ratio).expect("values");
        assert!(it.interval.is_none() && it.value > 1.5);
        assert!(compare(&Rounds::new([]), &made(2, 5, 1), 0.5, Compare::Ratio).is_none());
    }
}
