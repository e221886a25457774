//! Downhill with a remembered curvature (BFGS), in five dimensions.
//!
//! The inverse curvature starts as the identity, is scaled by the first step, and is updated from each step's change of the
//! gradient; a line search halves the step until it goes down enough. Source: Nocedal and Wright, chapter 6.

type Vector = [f64; 5];
type Matrix = [[f64; 5]; 5];

/// The bottom near `start`, and the value there.
pub fn minimum(start: Vector, f: &dyn Fn(&Vector) -> (f64, Vector)) -> (Vector, f64) {
    let mut x = start;
    let (mut value, mut gradient) = f(&x);
    let mut h = identity(1.0);
    let mut fresh = true;
    for _ in 0..2_000 {
        let mut direction = times(&h, &gradient).map(|d| -d);
        if dot(&direction, &gradient) >= 0.0 {
            (h, direction, fresh) = (identity(1.0), gradient.map(|g| -g), true);
        }
        let slope = dot(&direction, &gradient);
        let Some((next, next_value, next_gradient)) = step(&x, value, &direction, slope, f) else {
            // Along a stale curvature nothing goes down; along the gradient nothing does at the bottom.
            if fresh {
                break;
            }
            (h, fresh) = (identity(1.0), true);
            continue;
        };
        let s: Vector = std::array::from_fn(|i| next[i] - x[i]);
        let y: Vector = std::array::from_fn(|i| next_gradient[i] - gradient[i]);
        let sy = dot(&s, &y);
        if sy > 1e-300 {
            if fresh {
                h = identity(sy / dot(&y, &y));
            }
            update(&mut h, &s, &y, sy);
            fresh = false;
        }
        let gained = value - next_value;
        (x, value, gradient) = (next, next_value, next_gradient);
        if gained <= 1e-15 * value && !fresh {
            break;
        }
    }
    (x, value)
}

fn step(
    x: &Vector,
    value: f64,
    direction: &Vector,
    slope: f64,
    f: &dyn Fn(&Vector) -> (f64, Vector),
) -> Option<(Vector, f64, Vector)> {
    // No coordinate moves by more than two at once: logarithms and exponents of plausible laws lie close together.
    let longest = direction.iter().fold(0.0f64, |m, d| m.max(d.abs()));
    let mut length = (2.0 / longest).min(1.0);
    for _ in 0..60 {
        let next: Vector = std::array::from_fn(|i| x[i] + length * direction[i]);
        let (v, g) = f(&next);
        if v.is_finite() && v < value + 1e-4 * length * slope {
            return Some((next, v, g));
        }
        length /= 2.0;
    }
    None
}

/// H <- (I - s y'/sy) H (I - y s'/sy) + s s'/sy.
fn update(h: &mut Matrix, s: &Vector, y: &Vector, sy: f64) {
    let hy = times(h, y);
    let yhy = dot(y, &hy);
    for i in 0..5 {
        for j in 0..5 {
            h[i][j] += (1.0 + yhy / sy) * s[i] * s[j] / sy - (hy[i] * s[j] + s[i] * hy[j]) / sy;
        }
    }
}

fn identity(scale: f64) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| if i == j { scale } else { 0.0 }))
}

fn dot(a: &Vector, b: &Vector) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn times(m: &Matrix, v: &Vector) -> Vector {
    std::array::from_fn(|i| dot(&m[i], v))
}

pub fn product(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..5).map(|k| a[i][k] * b[k][j]).sum()))
}

/// The inverse by elimination with pivots; nothing when there is none.
pub fn inverse(m: &Matrix) -> Option<Matrix> {
    let (mut a, mut out) = (*m, identity(1.0));
    for column in 0..5 {
        let pivot = (column..5).max_by(|i, j| a[*i][column].abs().total_cmp(&a[*j][column].abs()))?;
        if a[pivot][column].abs() < 1e-300 {
            return None;
        }
        a.swap(column, pivot);
        out.swap(column, pivot);
        let scale = a[column][column];
        for j in 0..5 {
            a[column][j] /= scale;
            out[column][j] /= scale;
        }
        for i in (0..5).filter(|i| *i != column) {
            let factor = a[i][column];
            for j in 0..5 {
                a[i][j] -= factor * a[column][j];
                out[i][j] -= factor * out[column][j];
            }
        }
    }
    Some(out)
}
