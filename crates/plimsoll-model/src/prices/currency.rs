//! Currencies by their ISO 4217 codes.

use std::fmt;

/// Codes of currencies in use with the decimals of their smallest unit, where these are not two.
/// Source: ISO 4217, list one; funds, metals and testing codes are left out.
const OTHER_DECIMALS: [(&str, u32); 24] = [
    ("BHD", 3),
    ("BIF", 0),
    ("CLP", 0),
    ("DJF", 0),
    ("GNF", 0),
    ("IQD", 3),
    ("ISK", 0),
    ("JOD", 3),
    ("JPY", 0),
    ("KMF", 0),
    ("KRW", 0),
    ("KWD", 3),
    ("LYD", 3),
    ("OMR", 3),
    ("PYG", 0),
    ("RWF", 0),
    ("TND", 3),
    ("UGX", 0),
    ("UYW", 4),
    ("VND", 0),
    ("VUV", 0),
    ("XAF", 0),
    ("XOF", 0),
    ("XPF", 0),
];
/// Codes of the others, four characters apart.
const TWO_DECIMALS: &str = "\
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF \
    CHF CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD \
    HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA \
    MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN \
    QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP \
    TRY TTD TWD TZS UAH USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG";

/// A currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency {
    code: &'static str,
    decimals: u32,
}

impl Currency {
    /// By its code, in capitals.
    pub fn of_code(code: &str) -> Option<Self> {
        Self::all().find(|known| known.code == code)
    }

    /// Every one that is known.
    pub fn all() -> impl Iterator<Item = Self> {
        let two = TWO_DECIMALS.split_whitespace().map(|code| Self { code, decimals: 2 });
        two.chain(OTHER_DECIMALS.iter().map(|&(code, decimals)| Self { code, decimals }))
    }

    /// Its ISO 4217 code.
    pub const fn code(self) -> &'static str {
        self.code
    }

    /// Decimals of its smallest unit.
    pub const fn decimals(self) -> u32 {
        self.decimals
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code)
    }
}
