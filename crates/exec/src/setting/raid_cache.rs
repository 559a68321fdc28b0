//! A RAID controller's write cache, set by its manufacturer's program.
//!
//! Sources: Broadcom, *StorCLI Reference Manual* (`/cx/vx set wrcache`, `/cx/vx show`); LSI,
//! *MegaRAID SAS Software User Guide* (`-LDSetProp`, `-LDGetProp -Cache`); HPE, *Smart Storage
//! Administrator User Guide* (`modify caching`); Microchip, *ARCCONF Command Line Utility User's
//! Guide* (SETCACHE, GETCONFIG).

use pgdyno_model::raid::{RaidTool, RaidVolume, WritePolicy};

use super::error::SettingError;
use crate::error::StepError;
use crate::program::locate;
use crate::tool::run_words;

/// Names under which each program is installed, the usual one first.
fn names(tool: RaidTool) -> &'static [&'static str] {
    match tool {
        RaidTool::Storcli => &["storcli64", "storcli", "perccli64", "perccli"],
        RaidTool::Megacli => &["MegaCli64", "MegaCli", "megacli"],
        RaidTool::Ssacli => &["ssacli", "hpssacli"],
        RaidTool::Arcconf => &["arcconf"],
    }
}

/// Returns the name under which the program is installed here; none if it is not.
pub fn installed(tool: RaidTool) -> Option<&'static str> {
    names(tool).iter().copied().find(|name| locate(name).is_some())
}

/// Returns the command that sets the policy of `volume`.
pub(super) fn set_command(volume: &RaidVolume, policy: WritePolicy) -> Vec<String> {
    let RaidVolume { controller, volume: drive, .. } = volume;
    let is_back = policy == WritePolicy::WriteBack;
    let (small, capital) = if is_back { ("wb", "WB") } else { ("wt", "WT") };
    let words = match volume.tool {
        RaidTool::Storcli => format!("/c{controller}/v{drive} set wrcache={small}"),
        RaidTool::Megacli => format!("-LDSetProp {capital} -L{drive} -a{controller} -NoLog"),
        RaidTool::Ssacli => {
            let caching = if is_back { "enable" } else { "disable" };
            format!("ctrl slot={controller} ld {drive} modify caching={caching}")
        }
        RaidTool::Arcconf => format!("setcache {controller} logicaldrive {drive} {small} noprompt"),
    };
    command(volume.tool, &words)
}

/// Returns the command that shows the policy of `volume`.
pub(super) fn show_command(volume: &RaidVolume) -> Vec<String> {
    let RaidVolume { controller, volume: drive, .. } = volume;
    let words = match volume.tool {
        RaidTool::Storcli => format!("/c{controller}/v{drive} show J"),
        RaidTool::Megacli => format!("-LDGetProp -Cache -L{drive} -a{controller} -NoLog"),
        RaidTool::Ssacli => format!("ctrl slot={controller} ld {drive} show"),
        RaidTool::Arcconf => format!("getconfig {controller} ld {drive}"),
    };
    command(volume.tool, &words)
}

fn command(tool: RaidTool, words: &str) -> Vec<String> {
    let name = installed(tool).or(names(tool).first().copied()).unwrap_or_default();
    std::iter::once(name).chain(words.split(' ')).map(String::from).collect()
}

/// Asks the controller for the policy of `volume`.
///
/// # Errors
/// The program fails, or its answer names no policy that [`set_command`] could put back.
pub(super) fn read(volume: &RaidVolume) -> Result<WritePolicy, StepError> {
    let asked = show_command(volume);
    let answer = run_words(&asked)?;
    Ok(policy(volume.tool, &answer).ok_or_else(|| SettingError::NotUnderstood {
        device: volume.to_string(),
        program: asked.join(" "),
        answer: answer.trim().into(),
    })?)
}

/// Sets the policy of `volume` and reads it back.
///
/// # Errors
/// The program fails, or the controller shows another policy: without a battery, for example, many
/// do not write back.
pub(super) fn write(volume: &RaidVolume, policy: WritePolicy) -> Result<(), StepError> {
    run_words(&set_command(volume, policy))?;
    let shown = read(volume)?;
    if shown == policy {
        return Ok(());
    }
    Err(SettingError::NotObtained {
        of: format!("the write cache of {volume}"),
        asked: policy.name().into(),
        shown: shown.name().into(),
    }
    .into())
}

/// Reads the policy in a program's answer.
///
/// None if there is no such line, if lines differ, or if the policy is a third one, such as writing
/// back without a battery: it could not be put back.
fn policy(tool: RaidTool, answer: &str) -> Option<WritePolicy> {
    let mut found = match tool {
        RaidTool::Storcli => vec![of_storcli(answer)?],
        RaidTool::Megacli => values(answer, &["Cache Policy:"], &of_megacli),
        RaidTool::Ssacli => values(answer, &["Caching:", "Array Accelerator:"], &of_ssacli),
        RaidTool::Arcconf => {
            values(answer, &["Write-cache setting", "Write-cache mode"], &of_arcconf)
        }
    };
    let first = found.pop()??;
    found.iter().all(|other| *other == Some(first)).then_some(first)
}

/// Applies `read` to what follows each of `keys` in its line.
fn values(
    answer: &str,
    keys: &[&str],
    read: &dyn Fn(&str) -> Option<WritePolicy>,
) -> Vec<Option<WritePolicy>> {
    let value = |line: &str| keys.iter().find_map(|key| Some(line.split_once(key)?.1.to_owned()));
    answer.lines().filter_map(value).map(|value| read(value.trim())).collect()
}

/// `"Cache" : "NRWBD"`: read-ahead or not, the write policy, direct or cached.
fn of_storcli(answer: &str) -> Option<Option<WritePolicy>> {
    let answer: serde_json::Value = serde_json::from_str(answer).ok()?;
    let cache = answer.pointer("/Controllers/0/Response Data/Virtual Drives/0/Cache")?.as_str()?;
    Some(match cache.trim_start_matches('N').trim_start_matches('R').trim_end_matches(['C', 'D']) {
        "WB" => Some(WritePolicy::WriteBack),
        "WT" => Some(WritePolicy::WriteThrough),
        _ => None,
    })
}

/// `WriteBack, ReadAheadNone, Direct, No Write Cache if bad BBU`
fn of_megacli(value: &str) -> Option<WritePolicy> {
    match value.split(',').next()?.trim() {
        "WriteBack" => Some(WritePolicy::WriteBack),
        "WriteThrough" => Some(WritePolicy::WriteThrough),
        _ => None,
    }
}

fn of_ssacli(value: &str) -> Option<WritePolicy> {
    match value {
        "Enabled" => Some(WritePolicy::WriteBack),
        "Disabled" => Some(WritePolicy::WriteThrough),
        _ => None,
    }
}

/// `: Enabled (write-back)`; with `when protected by battery` where it depends on one.
fn of_arcconf(value: &str) -> Option<WritePolicy> {
    match value.trim_start_matches([':', ' ']) {
        v if v.contains("write-back") => Some(WritePolicy::WriteBack),
        v if v.contains("write-through") => Some(WritePolicy::WriteThrough),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use WritePolicy::{WriteBack, WriteThrough};

    use super::*;

    #[test]
    fn the_answers_of_all_programs_are_understood() {
        let storcli = |cache: &str| {
            let drive =
                format!(r#"{{"DG/VD":"0/0","TYPE":"RAID1","State":"Optl","Cache":"{cache}"}}"#);
            format!(
                r#"{{"Controllers":[{{"Command Status":{{"Controller":0,"Status":"Success"}},
                "Response Data":{{"Virtual Drives":[{drive}]}}}}]}}"#
            )
        };
        for (cache, expected) in [
            ("NRWBD", Some(WriteBack)),
            ("RWBC", Some(WriteBack)),
            ("RWTD", Some(WriteThrough)),
            ("RAWBD", None),
            ("RFWBD", None),
        ] {
            assert_eq!(policy(RaidTool::Storcli, &storcli(cache)), expected, "{cache}");
        }
        assert_eq!(policy(RaidTool::Storcli, "CLI Version = 007.2508"), None);

        let megacli = "                                     \n\
                       Adapter 0-VD 0(target id: 0): Cache Policy:WriteBack, ReadAheadNone, \
                       Direct, Write Cache OK if bad BBU\n\
                       \n\
                       Exit Code: 0x00\n";
        assert_eq!(policy(RaidTool::Megacli, megacli), Some(WriteBack));
        let through = megacli.replace("WriteBack", "WriteThrough");
        assert_eq!(policy(RaidTool::Megacli, &through), Some(WriteThrough));

        let ssacli = concat!(
            "      Logical Drive: 1\n",
            "         Size: 931.5 GB\n",
            "         Status: OK\n",
            "         Caching:  Enabled\n",
        );
        assert_eq!(policy(RaidTool::Ssacli, ssacli), Some(WriteBack));
        let earlier = "         Array Accelerator: Disabled\n";
        assert_eq!(policy(RaidTool::Ssacli, earlier), Some(WriteThrough));

        let arcconf = concat!(
            "   Read-cache mode                          : Enabled\n",
            "   Write-cache mode                         : Enabled (write-back)\n",
            "   Write-cache setting                      : Enabled (write-back) when protected by \
             battery/ZMM\n",
        );
        assert_eq!(policy(RaidTool::Arcconf, arcconf), Some(WriteBack));
        let flat = arcconf.replacen("Enabled (write-back)", "Disabled (write-through)", 1);
        assert_eq!(
            policy(RaidTool::Arcconf, &flat),
            None,
            "the battery is flat: asked is not obtained"
        );
        for tool in [RaidTool::Megacli, RaidTool::Ssacli, RaidTool::Arcconf] {
            assert_eq!(policy(tool, "Invalid command"), None);
        }
    }
}
