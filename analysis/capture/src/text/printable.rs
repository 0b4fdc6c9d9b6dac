//! Text from outside (captures, peers, the kernel) made fit for a terminal.

/// One line: line breaks and tabs become spaces, what else could steer a terminal or turn the order of the text becomes `�`.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { harmless(c) }).collect()
}

/// The same for text of several lines.
pub fn printable_lines(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { c } else { harmless(c) }).collect()
}

fn harmless(c: char) -> char {
    // Escapes begin with a control character; the others change the order in which text is shown.
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if c.is_control() || turns { '\u{fffd}' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_is_left() {
        assert_eq!(printable("a\x1b[31mb\nc\td\u{7}\u{9b}e\u{202e}"), "a\u{fffd}[31mb c d\u{fffd}\u{fffd}e\u{fffd}");
        assert_eq!(printable_lines("a\nb\r\x1b"), "a\nb\u{fffd}\u{fffd}");
        assert_eq!(printable("handler → run, 5 µs"), "handler → run, 5 µs");
    }
}
