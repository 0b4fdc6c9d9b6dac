//! The pairing token: 128 random bits that a client must show before a server does anything for it.
use super::ControlError;
use std::fmt;
use std::io::Read;
use std::path::Path;

/// The fewest characters that a token in a file must have.
pub const TOKEN_MIN_CHARS: usize = 16;
/// The most.
pub const TOKEN_MAX_CHARS: usize = 256;

/// What is read of a token's file.
const FILE_MAX_BYTES: u64 = 4096;

/// A token. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A new random token, 32 hexadecimal digits.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn random() -> Result<Token, ControlError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| ControlError::Io(std::io::Error::other(error.to_string())))?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// A token as the user gave it.
    ///
    /// # Errors
    /// When its length is out of bounds; `origin` names where it came from.
    pub fn parse(text: &str, origin: &str) -> Result<Token, ControlError> {
        let text = text.trim();
        let chars = text.chars().count();
        if !(TOKEN_MIN_CHARS..=TOKEN_MAX_CHARS).contains(&chars) {
            return Err(ControlError::Token {
                path: origin.to_owned(),
                why: format!("it holds {chars} characters; a token has {TOKEN_MIN_CHARS} to {TOKEN_MAX_CHARS}"),
            });
        }
        Ok(Token(text.to_owned()))
    }

    /// Reads a token from a file.
    ///
    /// # Errors
    /// When the file cannot be read or holds no token.
    pub fn from_file(path: &Path) -> Result<Token, ControlError> {
        let name = path.display().to_string();
        let unusable = |why: String| ControlError::Token { path: name.clone(), why };
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(|error| unusable(error.to_string()))?;
        // A device may never end.
        file.take(FILE_MAX_BYTES).read_to_end(&mut bytes).map_err(|error| unusable(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| unusable("it is not text; a token is what `rdmascope serve` prints".to_owned()))?;
        Token::parse(&text, &name)
    }

    /// The characters, to be shown once or sent.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not depend on where the two differ.
    pub fn matches(&self, shown: &str) -> bool {
        let (ours, theirs) = (self.0.as_bytes(), shown.as_bytes());
        let differing = ours.iter().zip(theirs).fold(0, |differing, (a, b)| differing | (a ^ b));
        differing == 0 && ours.len() == theirs.len()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_same_token_matches() {
        let token = Token::random().expect("random");
        let text = token.reveal().to_owned();
        assert_eq!(text.len(), 32);
        assert!(token.matches(&text));
        assert!(!token.matches(&text[..31]) && !token.matches(&format!("{text}0")) && !token.matches(""));
        assert_ne!(Token::random().expect("random"), token);
    }

    #[test]
    fn a_file_without_a_token_is_refused_and_an_endless_one_ends() {
        let dir = tempfile::tempdir().expect("dir");
        let file = dir.path().join("token");
        let refused = |bytes: &[u8]| {
            std::fs::write(&file, bytes).expect("writes");
            Token::from_file(&file).expect_err("refused").to_string()
        };
        assert!(refused(&[0xff; 32]).contains("it is not text"));
        assert!(refused(b"").contains("0 characters"));
        assert!(Token::from_file(Path::new("/dev/zero")).is_err());
        std::fs::write(&file, "0123456789abcdef\n").expect("writes");
        assert_eq!(Token::from_file(&file).expect("a token").reveal(), "0123456789abcdef");
    }

    #[test]
    fn a_short_token_is_refused_and_debug_hides_it() {
        assert!(Token::parse("short", "--token").is_err());
        let token = Token::parse("  0123456789abcdef\n", "--token").expect("long enough");
        assert_eq!(token.reveal(), "0123456789abcdef");
        assert!(!format!("{token:?}").contains("0123"));
    }
}
