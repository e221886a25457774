//! Every catalogue model's computed parameter count against its published one.

use rackmath_spec::model::{Body, Counts};
use rackmath_theory::count::count;

#[test]
fn computed_parameter_counts_equal_the_published_ones() {
    let catalog = rackmath_catalog::embedded();
    let (mut checked, mut exact) = (0, 0);
    let mut wrong = Vec::new();
    for id in catalog.ids(rackmath_spec::Kind::Models) {
        let model = match catalog.model(id) {
            Ok(model) => model,
            Err(error) => {
                wrong.push(error.to_string());
                continue;
            }
        };
        if matches!(model.body, Body::Lump(_)) {
            continue;
        }
        let published = model.published.as_ref().unwrap_or_else(|| panic!("{id}: no published count"));
        let count = count(&model);
        let ours = count.total() + if published.counts == Counts::WithMtp { count.mtp } else { 0 };
        let theirs = u128::from(published.total - published.towers);
        checked += 1;
        exact += i32::from(published.exact);
        let agree = if published.exact { ours == theirs } else { (ours as f64 / theirs as f64 - 1.0).abs() <= 0.005 };
        if !agree {
            wrong.push(format!(
                "{id}: computed {ours}, published {theirs}, differ by {}",
                ours as i128 - theirs as i128
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked >= 30 && exact >= 30, "{checked} checked, {exact} exactly");
}
