use super::*;
use crate::suite::SuiteError;

const TWO: &str = r#"
format = 1
currency = "EUR"

[[systems]]
name = "bought"
total = 12910.50

[[systems.items]]
name = "server"
part_number = "S-1"
source = "quote of a reseller"
date = 2026-11-01
available = 2026-12-01
quantity = 2
unit_price = 6000
discount_percent = 7.5
price = 11100.00
maintenance_years = 3
maintenance_price = 1800

[[systems.items]]
name = "cable"
source = "list price"
date = "2026-11-02"
unit_price = 10.50

[[systems]]
name = "rented"

[[systems.items]]
name = "instance"
source = "price page"
date = 2026-11-02
price_per_hour = 0.0928
"#;

fn refusal(change: (&str, &str)) -> SuiteError {
    assert!(TWO.contains(change.0), "{}", change.0);
    PriceList::parse("p.toml", &TWO.replacen(change.0, change.1, 1)).expect_err(change.1)
}

fn check(change: (&str, &str), message: &str) {
    let error = refusal(change);
    let help = error.help.as_deref().unwrap_or_default();
    let printed = format!("{error} | {help}");
    assert!(printed.contains(message), "{printed}");
}

#[test]
fn lines_maintenance_and_rent_add_up_to_the_smallest_unit() {
    let list = PriceList::parse("p.toml", TWO).unwrap();
    assert_eq!((list.currency.code(), list.period_years), ("EUR", 3));
    let [bought, rented] = &list.systems[..] else { panic!("two systems") };
    assert_eq!(bought.items[0].price.to_string(), "EUR 11,100.00");
    assert_eq!(bought.items[0].total.to_string(), "EUR 12,900.00");
    assert_eq!(bought.total.to_string(), "EUR 12,910.50");
    // 3 × 8,760 hours at 0.0928 are 2,438.784.
    assert_eq!(rented.total.to_string(), "EUR 2,438.78");
    assert_eq!(list.system("rented").map(|s| s.items.len()), Some(1));
}

#[test]
fn the_example_of_the_documentation_is_read() {
    let text = include_str!("../../../../docs/examples/prices.toml");
    let list = PriceList::parse("prices.toml", text).unwrap();
    let totals: Vec<String> = list.systems.iter().map(|it| it.total.to_string()).collect();
    // 26,280 hours at 0.768.
    assert_eq!(totals, ["EUR 11,230.50", "EUR 20,183.04"]);
}

#[test]
fn a_stated_sum_that_is_not_the_sum_is_an_error_that_names_both() {
    check(
        ("total = 12910.50", "total = 12910.49"),
        "p.toml:7: `total` is EUR 12,910.49, but its lines come to EUR 12,910.50",
    );
    check(
        ("price = 11100.00", "price = 11000"),
        "p.toml:18: `price` is EUR 11,000.00, but 2 × 6000 less 7.5 % are EUR 11,100.00",
    );
}

#[test]
fn currencies_are_known_and_never_mixed() {
    check(("\"EUR\"", "\"Eur\""), "p.toml:3: `currency` is \"Eur\", not the ISO 4217 code");
    check(("\"EUR\"", "\"Eur\""), "did you mean \"EUR\"?");
    check(
        ("unit_price = 10.50", "unit_price = 10.50\ncurrency = \"USD\""),
        "p.toml:27: a price in \"USD\" among prices in EUR; currencies are never mixed",
    );
    let code = |code| Currency::of_code(code).unwrap();
    let [euro, yen] = [code("EUR"), code("JPY")].map(|c| Money::new(1_234.5, c).unwrap());
    assert_eq!((euro.to_string(), yen.to_string()), ("EUR 1,234.50".into(), "JPY 1,235".into()));
    assert_eq!(euro.plus(yen), None);
}

#[test]
fn a_mistake_has_its_line_and_the_next_move() {
    check(("unit_price = 6000", "unit_prise = 6000"), "p.toml:16: unknown key");
    check(("unit_price = 6000", "unit_prise = 6000"), "did you mean `unit_price`?");
    check(("unit_price = 6000", "unit_price = \"6000\""), "not a number");
    check(("quantity = 2", "quantity = 0"), "it must be from 1 to 1000000");
    check(("discount_percent = 7.5", "discount_percent = 101"), "it must be from 0 to 100");
    check(("2026-12-01", "2026-13-01"), "p.toml:14: invalid date");
    check(("\"2026-11-02\"", "\"2025-02-29\""), "not a day such as 2026-11-01");
    check(("maintenance_years = 3\n", ""), "`maintenance_years` of \"server\" is missing");
    check(("price_per_hour = 0.0928\n", ""), "\"instance\" has no price");
    check(("price_per_hour", "unit_price = 1\nprice_per_hour"), "both a unit price and a price");
    check(("name = \"rented\"", "name = \"bought\""), "a second system is called \"bought\"");
    check(("format = 1", "format = 2"), "this program reads 1");
    check(("source = \"list price\"\n", ""), "`systems.items.source` is missing");
    check(("unit_price = 6000", "unit_price = 1e12"), "the amount is above EUR 1,000,000,000,000");
}

#[test]
fn every_code_of_a_currency_is_there_once_and_has_three_capitals() {
    let codes: Vec<&str> = Currency::all().map(Currency::code).collect();
    let mut once = codes.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), codes.len());
    assert!(
        codes.iter().all(|code| code.len() == 3 && code.bytes().all(|b| b.is_ascii_uppercase()))
    );
}

proptest::proptest! {
    #[test]
    fn a_price_times_a_number_is_within_half_a_cent(
        cents in 0u32..100_000_000, times in 1u64..10_000, discount in 0u32..=1_000,
    ) {
        let (price, percent) = (f64::from(cents) / 100.0, f64::from(discount) / 10.0);
        let euro = Currency::of_code("EUR").unwrap();
        let money = Money::times(price, times, percent, euro).unwrap();
        let exact = price * times as f64 * (100.0 - percent) / 100.0;
        proptest::prop_assert!((money.units() - exact).abs() <= 0.005 + exact * 1e-12);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        let _ = PriceList::parse("p.toml", &text);
    }
}
