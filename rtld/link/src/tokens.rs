//! Dynamic string tokens in names and search paths: `$ORIGIN`, `$LIB`, `$PLATFORM`, with or without braces
//! (ld.so(8), "Dynamic string tokens"). What only looks like a token stays as it is.

use crate::fallible::{OutOfMemory, try_extend};
use alloc::vec::Vec;

/// What the tokens of one text stand for.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a> {
    /// The directory of the object that holds the text; None where it is unknown or must not be used.
    pub origin: Option<&'a [u8]>,
    /// The system's library directory below /usr.
    pub library: &'a [u8],
    /// The processor's name as glibc has it, else AT_PLATFORM; None where there is neither.
    pub platform: Option<&'a [u8]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Origin,
    Library,
    Platform,
}

const NAMES: [(&[u8], Token); 3] =
    [(b"ORIGIN", Token::Origin), (b"LIB", Token::Library), (b"PLATFORM", Token::Platform)];

/// Whether a text asks for `$ORIGIN`, whose value costs a system call to find.
pub fn uses_origin(text: &[u8]) -> bool {
    uses(text, Token::Origin)
}

/// Whether a text asks for `$PLATFORM`, which costs some CPUIDs to find.
pub fn uses_platform(text: &[u8]) -> bool {
    uses(text, Token::Platform)
}

fn uses(text: &[u8], wanted: Token) -> bool {
    text.iter().enumerate().any(|(at, &byte)| {
        byte == b'$' && token_at(text.get(at..).unwrap_or_default()).is_some_and(|(token, _)| token == wanted)
    })
}

/// The text with its tokens replaced; None if one of them has no value, which makes the whole text unusable.
pub fn expand(text: &[u8], tokens: &Tokens<'_>) -> Result<Option<Vec<u8>>, OutOfMemory> {
    let mut expanded = Vec::new();
    let mut rest = text;
    while let Some(dollar) = rest.iter().position(|&byte| byte == b'$') {
        let (plain, from_dollar) = rest.split_at(dollar);
        try_extend(&mut expanded, plain)?;
        match token_at(from_dollar) {
            Some((token, length)) => {
                let value = match token {
                    Token::Origin => tokens.origin,
                    Token::Library => Some(tokens.library),
                    Token::Platform => tokens.platform,
                };
                let Some(value) = value else { return Ok(None) };
                try_extend(&mut expanded, value)?;
                rest = from_dollar.get(length..).unwrap_or_default();
            }
            None => {
                try_extend(&mut expanded, b"$")?;
                rest = from_dollar.get(1..).unwrap_or_default();
            }
        }
    }
    try_extend(&mut expanded, rest)?;
    Ok(Some(expanded))
}

/// The token that `text`, which begins with '$', begins with, and its length.
fn token_at(text: &[u8]) -> Option<(Token, usize)> {
    let braced = text.get(1) == Some(&b'{');
    let start = if braced { 2 } else { 1 };
    let name = text.get(start..)?;
    NAMES.iter().find_map(|&(known, token)| {
        let after = name.strip_prefix(known)?;
        if braced {
            return (after.first() == Some(&b'}')).then_some((token, start + known.len() + 1));
        }
        let goes_on = after.first().is_some_and(|&byte| byte.is_ascii_alphanumeric() || byte == b'_');
        (!goes_on).then_some((token, start + known.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Option<String> {
        let tokens = Tokens { origin: Some(b"/o"), library: b"lib/x", platform: None };
        expand(text.as_bytes(), &tokens).unwrap().map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn tokens_are_replaced_and_lookalikes_stay() {
        for (text, want) in [
            ("$ORIGIN/a", "/o/a"),
            ("${ORIGIN}a", "/oa"),
            ("/usr/$LIB:${LIB}", "/usr/lib/x:lib/x"),
            ("$L", "$L"),
            ("${ORIGIN", "${ORIGIN"),
            ("$", "$"),
            ("$ORIGINX", "$ORIGINX"),
            ("$ORIGIN_", "$ORIGIN_"),
            ("${}", "${}"),
            ("$$LIB", "$lib/x"),
            ("$LIB/$ORIGIN", "lib/x//o"),
        ] {
            assert_eq!(expanded(text).as_deref(), Some(want), "{text}");
        }
        assert_eq!(expanded("a/$PLATFORM"), None);
    }

    #[test]
    fn only_a_whole_origin_needs_the_origin() {
        assert!(uses_origin(b"a:$ORIGIN"));
        assert!(uses_origin(b"${ORIGIN}"));
        assert!(!uses_origin(b"$ORIGINAL/$LIB"));
    }
}
