//! The texts of tunables: `name=value` lists and numbers, as glibc reads them. Touches nothing.

/// The settings of `name=value:name=value`, as releases before 2.39 read it: a part without '=' is left out, a value ends at
/// ':' alone.
pub fn settings(text: &[u8]) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> {
    text.split(|&byte| byte == b':').filter_map(|part| {
        let mut halves = part.splitn(2, |&byte| byte == b'=');
        Some((halves.next()?, halves.next()?))
    })
}

/// Whether 2.39 and later take the text at all: one that has a part without '=' at its end, or a part with two of them, is
/// ignored as a whole.
pub fn is_well_formed(text: &[u8]) -> bool {
    let ends_with_setting = text.rsplit(|&byte| byte == b':').next().is_some_and(|part| part.contains(&b'='));
    let one_each = text.split(|&byte| byte == b':').all(|part| part.iter().filter(|&&byte| byte == b'=').count() <= 1);
    ends_with_setting && one_each
}

/// The number at the start of a text, and how many bytes belong to it; 0 if there is none.
///
/// As `_dl_strtoul`: blanks, a sign, "0x" for base 16 or "0" for base 8; what is too large is the largest number, and a
/// minus sign negates modulo 2^64. Releases before 2.39 (not `strict`) take the largest ten numbers for too large.
pub fn number(text: &[u8], strict: bool) -> (u64, usize) {
    let blanks = text.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    let rest = text.get(blanks..).unwrap_or_default();
    let (negative, rest) = match rest.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, rest),
    };
    if !rest.first().is_some_and(u8::is_ascii_digit) {
        return (0, text.len() - rest.len());
    }
    let (base, digits): (u64, &[u8]) = match rest {
        [b'0', b'x' | b'X', digits @ ..] => (16, digits),
        [b'0', ..] => (8, rest),
        _ => (10, rest),
    };
    let mut value = 0u64;
    let mut left = digits;
    while let Some((&byte, following)) = left.split_first() {
        let Some(digit) = (byte as char).to_digit(base as u32).map(u64::from) else {
            break;
        };
        let limit = (u64::MAX - digit) / base;
        if value > limit || (value == limit && !strict) {
            return (u64::MAX, text.len() - left.len());
        }
        value = value * base + digit;
        left = following;
    }
    let value = if negative { value.wrapping_neg() } else { value };
    (value, text.len() - left.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_glibc_reads_them() {
        for (text, value, length) in [
            ("0", 0, 1),
            ("165", 165, 3),
            ("0x1f", 31, 4),
            ("0XaB", 0xab, 4),
            ("017", 15, 3),
            ("019", 1, 2),
            (" \t+12", 12, 5),
            ("-1", u64::MAX, 2),
            ("12k", 12, 2),
            ("", 0, 0),
            ("k", 0, 0),
            ("-", 0, 1),
            ("99999999999999999999", u64::MAX, 19),
            ("18446744073709551604", 18_446_744_073_709_551_604, 20),
        ] {
            assert_eq!(number(text.as_bytes(), true), (value, length), "{text:?}");
            assert_eq!(number(text.as_bytes(), false), (value, length), "{text:?}");
        }
        // Seen with the loaders of 2.41 and 2.36.
        assert_eq!(number(b"18446744073709551609", true), (u64::MAX - 6, 20));
        assert_eq!(number(b"18446744073709551609", false), (u64::MAX, 19));
    }

    #[test]
    fn settings_are_taken_apart() {
        let all = |text: &'static str| settings(text.as_bytes()).collect::<Vec<_>>();
        assert_eq!(all("a=1:b=2"), [(&b"a"[..], &b"1"[..]), (b"b", b"2")]);
        assert_eq!(all("a:b=2=3::c="), [(&b"b"[..], &b"2=3"[..]), (b"c", b"")]);
        assert!(all("").is_empty());
    }

    #[test]
    fn later_releases_want_a_whole_text() {
        assert!(is_well_formed(b"a=1:b=2"));
        assert!(is_well_formed(b"a:b=2"));
        assert!(!is_well_formed(b"a=1:"));
        assert!(!is_well_formed(b"a=1=2:b=2"));
        assert!(!is_well_formed(b"a"));
    }
}
