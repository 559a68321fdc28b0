//! Values of settings as `SHOW` prints them.

/// Sizes by their names, the largest first, in bytes.
const SIZES: [(&str, u64); 5] =
    [("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10), ("B", 1)];

/// Times by their names, the longest first, in microseconds.
const TIMES: [(&str, u64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1000),
    ("us", 1),
];

/// Returns `value`, a number of `unit`s of `pg_settings`, as `SHOW` prints it: 16384 of 8kB are
/// `128MB`.
///
/// The unit is the largest of which it is a whole number. Values without a unit, those that are not
/// above zero, and units that PostgreSQL does not know stay as they are (PostgreSQL documentation,
/// Parameter Names and Values; tried with PostgreSQL 15).
pub fn as_shown(value: &str, unit: Option<&str>) -> String {
    let shown = || {
        let number: f64 = value.parse().ok().filter(|number| *number > 0.0)?;
        let unit = unit?;
        let name = unit.trim_start_matches(|c: char| c.is_ascii_digit());
        let several: u64 = unit[..unit.len() - name.len()].parse().unwrap_or(1);
        [&SIZES[..], &TIMES].into_iter().find_map(|units| {
            let (_, of_unit) = units.iter().find(|(known, _)| *known == name)?;
            let in_units = |size: u64| number * (several * of_unit) as f64 / size as f64;
            let (name, size) = units.iter().find(|(_, size)| in_units(*size).fract() == 0.0)?;
            Some(format!("{}{name}", in_units(*size)))
        })
    };
    let beyond = || match unit {
        Some(unit) if value.parse::<f64>().is_ok_and(|number| number > 0.0) => {
            format!("{value}{unit}")
        }
        _ => value.to_owned(),
    };
    shown().unwrap_or_else(beyond)
}

#[cfg(test)]
mod tests {
    use super::as_shown;

    #[test]
    fn a_value_is_shown_in_the_largest_unit_of_which_it_is_a_whole_number() {
        // As `SHOW` of PostgreSQL 15 printed them.
        for (value, unit, shown) in [
            ("16384", Some("8kB"), "128MB"),
            ("16385", Some("8kB"), "131080kB"),
            ("1024", Some("MB"), "1GB"),
            ("1025", Some("MB"), "1025MB"),
            ("4096", Some("kB"), "4MB"),
            ("-1", Some("kB"), "-1"),
            ("0", Some("ms"), "0"),
            ("300", Some("s"), "5min"),
            ("90", Some("s"), "90s"),
            ("86400000", Some("ms"), "1d"),
            ("60000", Some("ms"), "1min"),
            ("0.5", Some("ms"), "500us"),
            ("2", Some("ms"), "2ms"),
            ("1048576", Some("B"), "1MB"),
            ("60", Some("min"), "1h"),
            ("on", None, "on"),
            ("100", None, "100"),
            ("minimal", Some(""), "minimal"),
            ("3", Some("parsecs"), "3parsecs"),
        ] {
            assert_eq!(as_shown(value, unit), shown, "{value} {unit:?}");
        }
    }
}
