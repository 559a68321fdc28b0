//! Mount options: the wanted ones, and whether the kernel shows them.
//!
//! A kernel may take an option and drop it (btrfs: `nodatacow` beside `compress`; ext4: `nobh`),
//! show it under another name (`barrier=0` and `nobarrier`), or show nothing where it is the
//! default. Only the first is an error. An option that no rule names must be shown as it was asked.

/// How the kernel shows an option that it honours.
#[derive(Clone, Copy, Debug)]
pub(super) struct MountRule {
    /// The option as the experiment asks for it; `=*` at its end stands for any value.
    pub(super) asked: &'static str,
    /// Options by which the kernel then shows that it honours this one.
    pub(super) shown: Shown,
}

/// A condition on the options that the kernel shows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shown {
    /// One of these is shown.
    As(&'static [&'static str]),
    /// None of these is shown: the option is a default, which the kernel does not show.
    Unless(&'static [&'static str]),
}

/// Rules of the mount itself, whatever the filesystem.
const GENERAL: &[MountRule] = &[
    MountRule { asked: "defaults", shown: Shown::Unless(&[]) },
    MountRule { asked: "atime", shown: Shown::Unless(&["noatime"]) },
    MountRule { asked: "strictatime", shown: Shown::Unless(&["noatime", "relatime"]) },
    MountRule { asked: "diratime", shown: Shown::Unless(&["nodiratime"]) },
    MountRule { asked: "suid", shown: Shown::Unless(&["nosuid"]) },
    MountRule { asked: "dev", shown: Shown::Unless(&["nodev"]) },
    MountRule { asked: "exec", shown: Shown::Unless(&["noexec"]) },
    MountRule { asked: "async", shown: Shown::Unless(&["sync"]) },
    MountRule { asked: "nolazytime", shown: Shown::Unless(&["lazytime"]) },
];

/// Options about access times, of which the last one counts.
const ACCESS_TIMES: &[&str] = &["noatime", "relatime", "strictatime", "atime"];

/// Returns the subject of an option: that of `noatime` and `relatime` is `atime`, that of
/// `nodiscard` and `discard=async` is `discard`.
fn subject(option: &str) -> &str {
    if ACCESS_TIMES.contains(&option) {
        return "atime";
    }
    let name = option.split_once('=').map_or(option, |(name, _)| name);
    name.strip_prefix("no").unwrap_or(name)
}

/// Returns pgdyno's defaults and the user's options, one at a time. A default yields to a user's
/// option about the same subject.
pub(super) fn merged(defaults: &[&str], user: &[String]) -> Vec<String> {
    let user: Vec<String> = user
        .iter()
        .flat_map(|list| list.split(','))
        .filter(|o| !o.is_empty())
        .map(str::to_owned)
        .collect();
    let overridden = |option: &str| user.iter().any(|u| subject(u) == subject(option));
    let kept = defaults.iter().filter(|o| !overridden(o)).map(|&o| o.to_owned());
    kept.chain(user.iter().cloned()).collect()
}

/// Returns the first option of `asked` that `shown` does not bear out.
pub(super) fn first_missing<'a>(
    asked: &'a [String],
    shown: &[String],
    rules: &[MountRule],
) -> Option<&'a str> {
    let last_access_time = asked.iter().rposition(|o| ACCESS_TIMES.contains(&o.as_str()));
    asked
        .iter()
        .enumerate()
        .filter(|(at, o)| !ACCESS_TIMES.contains(&o.as_str()) || Some(*at) == last_access_time)
        .map(|(_, option)| option.as_str())
        .find(|option| !is_shown(option, shown, rules))
}

/// Describes the options that the kernel shows in place of `option`: those of `shown` about the
/// same subject, else all of the table of mounts, `mounted`.
pub(super) fn instead(option: &str, shown: &[String], mounted: &[String]) -> String {
    let same: Vec<&str> =
        shown.iter().map(String::as_str).filter(|s| subject(s) == subject(option)).collect();
    if same.is_empty() {
        format!("the kernel took it and shows nothing of the kind, but {}", mounted.join(","))
    } else {
        format!("the kernel took it and shows {}", same.join(","))
    }
}

fn is_shown(option: &str, shown: &[String], rules: &[MountRule]) -> bool {
    let any = |patterns: &[&str]| shown.iter().any(|s| patterns.iter().any(|p| matches(s, p)));
    // Verbatim is always right.
    if shown.iter().any(|s| same(s, option)) {
        return true;
    }
    match rules.iter().chain(GENERAL).find(|rule| matches(option, rule.asked)) {
        Some(MountRule { shown: Shown::As(patterns), .. }) => any(patterns),
        Some(MountRule { shown: Shown::Unless(patterns), .. }) => !any(patterns),
        None => false,
    }
}

/// Tells whether `option` is `pattern`, which may end in `=*`.
fn matches(option: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => option.starts_with(prefix),
        None => same(option, pattern),
    }
}

/// Tells whether two options say the same: letter by letter, or in values that are the same size
/// (`256k`, `262144`), or where the kernel adds a level that was left to it (`compress=zstd`,
/// `compress=zstd:3`).
fn same(shown: &str, asked: &str) -> bool {
    if shown == asked {
        return true;
    }
    let (Some((key, a)), Some((asked_key, b))) = (shown.split_once('='), asked.split_once('='))
    else {
        return false;
    };
    let sizes = || Some(size(a)? == size(b)?);
    key == asked_key
        && (sizes().unwrap_or(false)
            || (!b.contains(':') && a.split_once(':').is_some_and(|(a, _)| a == b)))
}

/// Returns a number with the kernel's suffixes, which are powers of 1024.
pub(super) fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &[MountRule] = &[
        MountRule { asked: "barrier=0", shown: Shown::As(&["nobarrier"]) },
        MountRule { asked: "barrier=1", shown: Shown::Unless(&["nobarrier"]) },
        MountRule { asked: "commit=30", shown: Shown::Unless(&["commit=*"]) },
    ];

    fn list(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    fn missing(asked: &str, shown: &str) -> Option<String> {
        first_missing(&list(asked), &list(shown), RULES).map(str::to_owned)
    }

    #[test]
    fn an_option_under_another_name_or_shown_by_nothing_is_obtained() {
        for (asked, shown) in [
            ("noatime,barrier=0", "rw,noatime,nobarrier"),
            ("barrier=1", "rw,relatime"),
            ("commit=30", "rw"),
            ("logbsize=262144", "rw,logbsize=256k"),
            ("compress=zstd", "rw,compress=zstd:3"),
            ("strictatime", "rw"),
            ("noatime,relatime", "rw,relatime"),
        ] {
            assert_eq!(missing(asked, shown), None, "{asked} as {shown}");
        }
    }

    #[test]
    fn an_option_that_is_not_borne_out_is_missing() {
        for (asked, shown, first) in [
            ("noatime,nobh", "rw,noatime", "nobh"),
            ("barrier=0", "rw", "barrier=0"),
            ("barrier=1", "rw,nobarrier", "barrier=1"),
            ("commit=30", "rw,commit=5", "commit=30"),
            ("commit=7", "rw", "commit=7"),
            ("compress=zstd:9", "rw,compress=zstd:3", "compress=zstd:9"),
            ("compress=zstd", "rw,compress=lzo", "compress=zstd"),
            ("logbsize=256k", "rw,logbsize=32k", "logbsize=256k"),
            ("relatime,noatime", "rw,relatime", "noatime"),
        ] {
            assert_eq!(missing(asked, shown).as_deref(), Some(first), "{asked} as {shown}");
        }
    }

    #[test]
    fn what_is_there_instead_is_named() {
        let shown = list("rw,noatime,delalloc,commit=5");
        let told = |option| instead(option, &shown, &list("rw,noatime"));
        assert_eq!(told("commit=7"), "the kernel took it and shows commit=5");
        assert_eq!(told("nodelalloc"), "the kernel took it and shows delalloc");
        assert_eq!(
            told("nobh"),
            "the kernel took it and shows nothing of the kind, but rw,noatime"
        );
    }

    #[test]
    fn what_the_user_says_takes_the_place_of_the_default() {
        assert_eq!(merged(&["noatime"], &list("relatime")), ["relatime"]);
        assert_eq!(
            merged(&["noatime"], &["data=journal,commit=60".into()]),
            ["noatime", "data=journal", "commit=60"]
        );
        assert_eq!(merged(&["noatime"], &list("noatime")), ["noatime"]);
        assert_eq!(
            merged(&["noatime", "nodiscard"], &list("discard=async")),
            ["noatime", "discard=async"]
        );
    }
}
