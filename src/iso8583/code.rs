//! What tollgate may say in Field 39, and what an approval by the host looks like there.
//!
//! The list is closed: an approval, a plain decline (05) or a pick-up code has no value here and so
//! cannot be configured or sent. Width and number of a code follow the version of the MTI.

/// A response that tollgate may give in the issuer's place: "not now" or "not like this", never
/// a judgement on card or account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum LocalCode {
    /// 12: invalid transaction.
    InvalidTransaction,
    /// 28: the file is temporarily not available.
    FileUnavailable,
    /// 30: format error.
    FormatError,
    /// 61: exceeds the amount limit.
    AmountLimit,
    /// 65: exceeds the frequency limit.
    FrequencyLimit,
    /// 68: response received too late.
    TooLate,
    /// 91: issuer or switch inoperative.
    IssuerInoperative,
    /// 92: no route to the destination.
    NoRoute,
    /// 96: system malfunction.
    SystemMalfunction,
    /// N0: force stand-in processing, which Visa acts on.
    ForceStandIn,
}

impl LocalCode {
    /// Every code there is.
    pub const ALL: [Self; 10] = [
        Self::InvalidTransaction,
        Self::FileUnavailable,
        Self::FormatError,
        Self::AmountLimit,
        Self::FrequencyLimit,
        Self::TooLate,
        Self::IssuerInoperative,
        Self::NoRoute,
        Self::SystemMalfunction,
        Self::ForceStandIn,
    ];

    /// The code that a configuration names by its 1987 form.
    pub fn parse_1987(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.in_1987() == text)
    }

    /// Two characters, as ISO 8583:1987 has it.
    pub const fn in_1987(self) -> &'static str {
        match self {
            Self::InvalidTransaction => "12",
            Self::FileUnavailable => "28",
            Self::FormatError => "30",
            Self::AmountLimit => "61",
            Self::FrequencyLimit => "65",
            Self::TooLate => "68",
            Self::IssuerInoperative => "91",
            Self::NoRoute => "92",
            Self::SystemMalfunction => "96",
            Self::ForceStandIn => "N0",
        }
    }

    /// The code as a message of this MTI version carries it: two, three or four characters. Where
    /// a version has no such code it is "issuer or switch inoperative". `None` for versions above 2.
    pub const fn in_version(self, version: u8) -> Option<&'static str> {
        match version {
            0 => Some(self.in_1987()),
            1 => Some(self.in_1993()),
            2 => Some(self.in_2003()),
            _ => None,
        }
    }

    const fn in_1993(self) -> &'static str {
        match self {
            Self::InvalidTransaction => "902",
            Self::FormatError => "904",
            Self::AmountLimit => "121",
            Self::FrequencyLimit => "123",
            Self::TooLate => "911",
            Self::NoRoute => "908",
            Self::SystemMalfunction => "909",
            Self::FileUnavailable | Self::IssuerInoperative | Self::ForceStandIn => "907",
        }
    }

    const fn in_2003(self) -> &'static str {
        match self {
            Self::InvalidTransaction => "9102",
            Self::FormatError => "9100",
            Self::AmountLimit => "1021",
            Self::FrequencyLimit => "1023",
            Self::TooLate => "9111",
            Self::NoRoute => "9108",
            Self::SystemMalfunction => "9109",
            Self::FileUnavailable | Self::IssuerInoperative | Self::ForceStandIn => "9107",
        }
    }
}

/// How many characters Field 39 has in a message of this MTI version.
pub(super) const fn width(version: u8) -> Option<usize> {
    match version {
        0 => Some(2),
        1 => Some(3),
        2 => Some(4),
        _ => None,
    }
}

/// Whether the text of Field 39 in a message of this MTI version approves, so that a hold on money
/// may stand behind it. 1987: 00, 08 (honour with identification), 10 (partial), 11 (VIP) and 85
/// (no reason to decline, in verifications), by common usage of that list. 1993: all of 000 to 099,
/// of which published lists use 000 to 007. 2003: 0000 to 0099, as the class that those moved to.
pub fn approves(version: u8, code: &[u8]) -> bool {
    match (version, code) {
        (0, _) => matches!(code, b"00" | b"08" | b"10" | b"11" | b"85"),
        (1, [b'0', tens, ones]) | (2, [b'0', b'0', tens, ones]) => {
            tens.is_ascii_digit() && ones.is_ascii_digit()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_local_code_approves_declines_for_the_issuer_or_picks_up_the_card() {
        for version in 0..=2 {
            for code in LocalCode::ALL {
                let text = code.in_version(version).unwrap();
                assert_eq!(Some(text.len()), width(version));
                assert!(!approves(version, text.as_bytes()), "{text}");
                // Do not honour and pick-up in each version: 05, 04, 07, 41, 43; 100, 2xx; 1000, 2xxx.
                assert!(!["05", "04", "07", "41", "43", "100", "1000"].contains(&text));
                assert!(version == 0 || !text.starts_with('2'));
            }
        }
        assert_eq!(LocalCode::IssuerInoperative.in_version(3), None);
    }

    #[test]
    fn a_configuration_can_name_these_codes_and_no_others() {
        let named: Vec<String> = (0..100u8)
            .map(|number| format!("{number:02}"))
            .chain(["N0", "n0", "", "091", "91 ", "907", "N7"].map(String::from))
            .filter(|text| LocalCode::parse_1987(text).is_some())
            .collect();
        assert_eq!(named, ["12", "28", "30", "61", "65", "68", "91", "92", "96", "N0"]);
    }

    #[test]
    fn codes_have_their_number_in_each_version() {
        let in_all = |code: LocalCode| [0, 1, 2].map(|version| code.in_version(version).unwrap());
        assert_eq!(in_all(LocalCode::InvalidTransaction), ["12", "902", "9102"]);
        assert_eq!(in_all(LocalCode::FileUnavailable), ["28", "907", "9107"]);
        assert_eq!(in_all(LocalCode::FormatError), ["30", "904", "9100"]);
        assert_eq!(in_all(LocalCode::AmountLimit), ["61", "121", "1021"]);
        assert_eq!(in_all(LocalCode::FrequencyLimit), ["65", "123", "1023"]);
        assert_eq!(in_all(LocalCode::TooLate), ["68", "911", "9111"]);
        assert_eq!(in_all(LocalCode::IssuerInoperative), ["91", "907", "9107"]);
        assert_eq!(in_all(LocalCode::NoRoute), ["92", "908", "9108"]);
        assert_eq!(in_all(LocalCode::SystemMalfunction), ["96", "909", "9109"]);
        assert_eq!(in_all(LocalCode::ForceStandIn), ["N0", "907", "9107"]);
    }

    #[test]
    fn approvals_are_known_by_version() {
        for (version, code, expected) in [
            (0, &b"00"[..], true),
            (0, b"85", true),
            (0, b"05", false),
            (0, b"000", false),
            (1, b"000", true),
            (1, b"007", true),
            (1, b"100", false),
            (1, b"00", false),
            (2, b"0000", true),
            (2, b"0100", false),
            (3, b"00", false),
            (1, b"0 0", false),
        ] {
            assert_eq!(approves(version, code), expected);
        }
    }
}
