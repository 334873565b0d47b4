use plimsoll_model::disclosure::Host;

use super::*;

#[test]
fn dates_and_prices_are_read_strictly() {
    for (text, good) in [
        ("2026-11", true),
        ("2026-11-30", true),
        ("2026-11-31", false),
        ("2026-13", false),
        ("11/2026", false),
        ("soon", false),
        ("", false),
    ] {
        assert_eq!(is_date(text), good, "{text}");
    }
    for (text, good) in [
        ("EUR 12345.00", true),
        ("USD 0", true),
        ("eur 1", false),
        ("EUR 12,345", false),
        ("EUR -1", false),
        ("EUR inf", false),
        ("12345", false),
    ] {
        assert_eq!(is_price(text), good, "{text}");
    }
}

#[test]
fn an_inventory_belongs_to_the_targets_on_its_addresses() {
    let target = |address: &str, same_host| TargetDisclosure {
        target: format!("http://{address}/"),
        address: address.to_owned(),
        same_host,
        ..TargetDisclosure::default()
    };
    let of_host = |name: &str, address: &str| SystemInventory {
        inventory: Inventory {
            host: Host {
                name: Some(name.into()),
                addresses: vec![address.into()],
                ..Host::default()
            },
            ..Inventory::default()
        },
        age_s: 7_200,
        file: format!("{name}.json"),
        ..SystemInventory::default()
    };
    let systems = Systems {
        inventories: vec![of_host("far", "192.0.2.7"), of_host("near", "192.0.2.1")],
        ..Systems::default()
    };
    let near = Host { name: Some("near".into()), ..Host::default() };
    let targets = [target("192.0.2.7:80", false), target("127.0.0.1:80", true)];
    let inventories = systems.with_targets(&near, &targets);
    assert_eq!(inventories[0].of_targets, ["http://192.0.2.7:80/"]);
    assert_eq!(inventories[1].of_targets, ["http://127.0.0.1:80/"]);
    let elsewhere = systems.with_targets(&near, &[target("unix:/run/x", false)]);
    let unverified = not_verified(&elsewhere[..1]);
    assert!(unverified[0].contains("no target lies on one of its addresses"), "{unverified:?}");
    let unverified = not_verified(&inventories[..1]);
    assert_eq!(unverified, ["far.json was made 2 hours before the run: what has changed since"]);
}

#[test]
fn ages_are_told_in_the_largest_unit_that_fits_twice() {
    assert_eq!(age_text(59), "59 s");
    assert_eq!(age_text(119), "119 s");
    assert_eq!(age_text(7_200), "2 hours");
    assert_eq!(age_text(3 * 86_400), "3 days");
}
