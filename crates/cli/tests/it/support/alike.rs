//! Documents of `show --json` side by side.

use serde_json::Value;

/// Asserts that a run's document after thinning differs from the one before in what the notice of
/// thinning names, and in nothing else.
pub fn assert_alike_but_for_thinning(mut before: Value, mut after: Value) {
    for view in [&mut before, &mut after] {
        for named in ["thinned", "notes", "cautions"] {
            view[named].take();
        }
        for trial in view["trials"].as_array_mut().unwrap() {
            trial["telemetry"].take();
            let changes = trial["steadiness"]["changes"].as_array_mut();
            changes.into_iter().flatten().for_each(|change| drop(change["with"].take()));
        }
    }
    assert_alike(&before, &after, "");
}

/// Asserts that two documents are equal; figures but for the order in which their parts were added.
fn assert_alike(a: &Value, b: &Value, at: &str) {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => {
            let (x, y) = (x.as_f64().unwrap(), y.as_f64().unwrap());
            assert!((x - y).abs() <= 1e-9 * x.abs().max(y.abs()), "{at}: {x} {y}");
        }
        (Value::Array(x), Value::Array(y)) => {
            assert_eq!(x.len(), y.len(), "{at}");
            (0..).zip(x.iter().zip(y)).for_each(|(i, (x, y)): (usize, _)| {
                assert_alike(x, y, &format!("{at}[{i}]"));
            });
        }
        (Value::Object(x), Value::Object(y)) => {
            assert!(x.keys().eq(y.keys()), "{at}");
            x.iter().for_each(|(key, value)| assert_alike(value, &y[key], &format!("{at}.{key}")));
        }
        _ => assert_eq!(a, b, "{at}"),
    }
}
