use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, expected: &[(&str, u64)]) {
    let counts = parse_interrupts(text);
    let counts: Vec<(&str, u64)> =
        counts.iter().filter(|it| *it.1 > 0).map(|it| (it.0.as_str(), *it.1)).collect();
    assert_eq!(counts, expected);
}

#[test]
fn queues_of_virtio_devices_are_summed() {
    // Linux 6.18 in a virtual machine.
    let text = "           CPU0       CPU1       \n \
         24:          1          0  IO-APIC   5-edge      ACPI:Ged\n \
         32:       6705          0 PCI-MSIX-0000:00:01.0   4-edge      virtio0-reporting_vq\n \
         36:          0    6158379 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n \
         38:          0      63653 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n \
         39:      50960          0 PCI-MSIX-0000:00:03.0   2-edge      virtio2-output.0\n\
        LOC:   29690145   23467472   Local timer interrupts\n\
        RES:    9112335          1   Rescheduling interrupts\n\
        ERR:          3\nMIS:          0\n";
    check(
        text,
        &[
            ("ACPI:Ged", 1),
            ("ERR", 3),
            ("Local timer interrupts", 53_157_617),
            ("Rescheduling interrupts", 9_112_336),
            ("virtio0", 6_705),
            ("virtio1", 6_158_379),
            ("virtio2", 114_613),
        ],
    );
}

#[test]
fn queues_of_adapters_are_summed_and_shared_lines_name_all() {
    // Linux 2.6.32 on metal, with lines of later kernels and of other drivers.
    let text = "            CPU0       CPU1\n  \
          0:         46          0   IR-IO-APIC-edge      timer\n \
         16:          2          0   IO-APIC  16-fasteoi   ehci_hcd:usb1, uhci_hcd:usb2\n \
         65:          1          0   IR-PCI-MSI-edge      eth0\n \
         66:  863649703          0   IR-PCI-MSI-edge      eth0-TxRx-0\n \
         67:  986285573          5   IR-PCI-MSI-edge      eth0-TxRx-1\n \
         70:          1          1   PCI-MSI 1572868-edge      ens5-Tx-Rx-0\n \
         71:          2          0   PCI-MSI 524288-edge      nvme0q0\n \
         72:          0          7   PCI-MSI 524289-edge      nvme0q12\n \
         73:          0          4   IR-PCI-MSIX-0000:3b:00.0  1-edge  mlx5_comp0@pci:0000:3b:00.0\n \
         74:          5          0   IR-PCI-MSIX-0000:3b:00.0  2-edge  mlx5_async0@pci:0000:3b:00.0\n \
         75:          8          0   PCI-MSI 1048576-edge      megasas0-msix3\n \
         76:          9          0   IR-PCI-MSI 333826-edge      iwlwifi: queue 2\n";
    check(
        text,
        &[
            ("ehci_hcd:usb1, uhci_hcd:usb2", 2),
            ("ens5", 2),
            ("eth0", 1_849_935_282),
            ("iwlwifi", 9),
            ("megasas0", 8),
            ("nvme0", 9),
            ("pci:0000:3b:00.0", 9),
            ("timer", 46),
        ],
    );
}

#[test]
fn xen_and_arm_have_names_of_their_own() {
    let xen = "           CPU0       CPU1\n \
         48:     131658          0   xen-percpu-ipi       resched0\n \
         49:          0       1000   xen-percpu    -ipi       resched1\n \
        113:       8536          0   xen-dyn-event     blkif\n \
        114:  749775929          0   xen-dyn    -event     eth0-q0-tx\n \
        115:          1          0   xen-dyn-lateeoi  -event     eth0-q0-rx\n";
    check(xen, &[("blkif", 8_536), ("eth0", 749_775_930), ("resched", 132_658)]);
    let arm = "           CPU0       CPU1\n \
         11:       4928       3938     GICv3  27 Level     arch_timer\n \
         37:         17          0   ITS-MSI 524288 Edge      nvme0q0\n\
        IPI0:        30        101       Rescheduling interrupts\nErr:          0\n";
    check(arm, &[("Rescheduling interrupts", 131), ("arch_timer", 8_866), ("nvme0", 17)]);
}

#[test]
fn soft_interrupts_are_summed_over_processors() {
    let text = "                    CPU0       CPU1       \n          HI:          0          0\n      \
        NET_RX:   96869219   73999860\n";
    let counts = parse_softirqs(text);
    assert_eq!((counts["HI"], counts["NET_RX"], counts.len()), (0, 170_869_079, 2));
    assert!(parse_softirqs("NET_RX: 1 2\n").is_empty(), "without a head nobody knows the columns");
}

proptest! {
    #[test]
    fn no_text_is_too_odd(
        lines in prop::collection::vec("([ A-Z0-9]{0,6}:)?( [0-9]{0,21}){0,4}[ a-z0-9,@:._-]{0,24}|.{0,20}", 0..20),
    ) {
        let text = format!(" CPU0 CPU1\n{}", lines.join("\n"));
        for name in parse_interrupts(&text).keys().chain(parse_softirqs(&text).keys()) {
            prop_assert!(name.len() <= NAME_BYTES_MAX);
        }
        parse_interrupts(&lines.join("\n"));
    }
}
