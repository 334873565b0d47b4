//! Maker, model, board and firmware, as the firmware's tables (DMI) say. Serial numbers and ids of
//! a single machine are not read.

use plimsoll_model::disclosure::Setting;

use crate::parse::CpuInfo;
use crate::root::Root;

const DMI: &str = "sys/class/dmi/id";

/// Words that boards carry where nobody wrote anything.
const FILLERS: [&str; 5] =
    ["To Be Filled By O.E.M.", "Default string", "Not Specified", "None", "System Product Name"];

pub(super) fn firmware(root: &Root, cpuinfo: &CpuInfo) -> Vec<Setting> {
    let rows = [
        ("system", &["sys_vendor", "product_name", "product_version"][..]),
        ("board", &["board_vendor", "board_name", "board_version"]),
        ("BIOS", &["bios_vendor", "bios_version"]),
        ("BIOS date", &["bios_date"]),
        ("BIOS release", &["bios_release"]),
        ("firmware of the board's controller", &["ec_firmware_release"]),
    ];
    let mut found: Vec<Setting> = rows
        .iter()
        .filter_map(|(name, files)| {
            let parts = files.iter().filter_map(|file| root.line(format!("{DMI}/{file}")));
            let parts: Vec<String> =
                parts.filter(|text| !FILLERS.contains(&text.as_str())).collect();
            (!parts.is_empty()).then(|| Setting::new(*name, parts.join(" ")))
        })
        .collect();
    if root.has("sys/firmware/efi") {
        found.push(Setting::new("started by", "UEFI"));
    }
    found.extend(cpuinfo.microcode.clone().map(|text| Setting::new("microcode", text)));
    let hypervisor = root.line("sys/hypervisor/type");
    found.extend(hypervisor.map(|text| Setting::new("hypervisor", text)));
    found
}
