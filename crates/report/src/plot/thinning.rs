//! Leaving out marks that the eye could not tell apart.
//!
//! A long transfer has a hundred thousand segments and a figure less than a thousand columns of
//! pixels. Marks that fall on each other are drawn once; if what remains is still too much, the
//! grid on which they fall is coarsened until it fits the budget. Counts in legends and
//! descriptions are always those of the data, never of the marks drawn.

use std::collections::BTreeSet;

/// Half a pixel: marks closer than this look the same.
const FINEST: f64 = 0.5;

/// At most `budget` of `points`, no two of them in the same cell of a grid, in the order given.
pub(crate) fn points(points: &[(f64, f64)], spacing: f64, budget: usize) -> Vec<(f64, f64)> {
    let mut grid = spacing.max(FINEST);
    loop {
        let mut taken = BTreeSet::new();
        let kept: Vec<(f64, f64)> = points
            .iter()
            .copied()
            .filter(|&(x, y)| taken.insert((cell(x, grid), cell(y, grid))))
            .collect();
        if kept.len() <= budget {
            return kept;
        }
        grid *= 2.0;
    }
}

/// An upright line from `top` to `bottom` at `x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stem {
    pub(crate) x: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

/// At most `budget` stems that cover the same pixels as `stems`: those in the same column that
/// touch become one.
pub(crate) fn stems(stems: &[Stem], budget: usize) -> Vec<Stem> {
    let mut grid = FINEST;
    loop {
        let merged = merge(stems, grid);
        if merged.len() <= budget {
            return merged;
        }
        grid *= 2.0;
    }
}

fn merge(stems: &[Stem], grid: f64) -> Vec<Stem> {
    let mut sorted: Vec<Stem> = stems.to_vec();
    sorted.sort_by(|a, b| {
        cell(a.x, grid)
            .cmp(&cell(b.x, grid))
            .then(a.top.total_cmp(&b.top))
    });
    let mut merged: Vec<Stem> = Vec::new();
    for stem in sorted {
        match merged.last_mut() {
            Some(last)
                if cell(last.x, grid) == cell(stem.x, grid) && stem.top <= last.bottom + grid =>
            {
                last.bottom = last.bottom.max(stem.bottom);
            }
            _ => merged.push(stem),
        }
    }
    merged
}

fn cell(position: f64, grid: f64) -> i64 {
    (position / grid).floor() as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However many points there are: within the budget, all from the input, and each input
        /// point has a kept one in its cell (checked for the finest grid, where nothing but
        /// coincidence may be lost).
        #[test]
        fn only_coinciding_points_go_while_there_is_room(
            input in prop::collection::vec((0.0..50.0f64, 0.0..50.0f64), 0..400)
        ) {
            let kept = points(&input, FINEST, 10_000);
            for point in &kept {
                prop_assert!(input.contains(point));
            }
            for (x, y) in input {
                let same = |&&(a, b): &&(f64, f64)| {
                    (a - x).abs() <= FINEST && (b - y).abs() <= FINEST
                };
                prop_assert!(kept.iter().any(|kept| same(&kept)), "nothing near {x}, {y}");
            }
        }

        #[test]
        fn the_budget_holds(
            input in prop::collection::vec((0.0..800.0f64, 0.0..400.0f64), 0..400),
            budget in 1usize..50,
        ) {
            prop_assert!(points(&input, FINEST, budget).len() <= budget);
            let upright = |&(x, y): &(f64, f64)| Stem { x, top: y, bottom: y + 3.0 };
            let upright: Vec<Stem> = input.iter().map(upright).collect();
            prop_assert!(stems(&upright, budget).len() <= budget);
        }

        /// Merged stems cover every pixel that the input covered.
        #[test]
        fn nothing_that_was_covered_is_bare(
            input in prop::collection::vec((0.0..20.0f64, 0.0..100.0f64, 0.0..9.0f64), 1..200)
        ) {
            let upright: Vec<Stem> =
                input.iter().map(|&(x, top, length)| Stem { x, top, bottom: top + length }).collect();
            let merged = stems(&upright, 10_000);
            for stem in upright {
                let covers = |kept: &Stem| {
                    (kept.x - stem.x).abs() <= FINEST
                        && kept.top <= stem.top
                        && kept.bottom >= stem.bottom
                };
                prop_assert!(merged.iter().any(covers), "{stem:?} is not covered");
            }
        }
    }
}
