//! The words of a command line as a shell splits them, each with its place, so that a complaint can point at it.

use crate::SpecError;
use crate::error::shorten;
use std::collections::BTreeMap;

/// The longest command line that is read, in bytes; kernels of today take 2 MiB, people write a few kilobytes.
pub const MAX_LINE: usize = 200_000;

/// A word and its number on the line, the first being 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    pub place: usize,
    /// Whether any of it stood in quotes or behind a backslash: then it is no operator of the shell.
    pub quoted: bool,
}

impl Word {
    pub fn is(&self, text: &str) -> bool {
        self.text == text
    }

    /// A complaint about it.
    pub fn wrong(&self, why: impl AsRef<str>) -> SpecError {
        SpecError::said(format!("word {}, \"{}\": {}", self.place, shorten(&self.text), why.as_ref()))
    }

    /// What stands behind the last slash: `/usr/bin/vllm` is `vllm`, `llama-server.exe` is `llama-server`.
    pub fn program(&self) -> &str {
        let name = self.text.rsplit(['/', '\\']).next().unwrap_or(&self.text);
        name.strip_suffix(".exe").unwrap_or(name)
    }

    /// A variable set by it, such as `CUDA_VISIBLE_DEVICES=0,1`.
    pub fn assignment(&self) -> Option<(&str, &str)> {
        let (name, value) = self.text.split_once('=')?;
        let sound = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        (sound && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')).then_some((name, value))
    }

    /// Whether it begins like a flag; a negative number does not.
    pub fn is_flag(&self) -> bool {
        self.text.len() > 1 && self.text.starts_with('-') && self.text.parse::<f64>().is_err()
    }
}

/// Words already apart, as a list in a file gives them.
pub fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<Word> {
    let word = |(at, text): (usize, &str)| Word { text: text.to_owned(), place: at + 1, quoted: true };
    words.into_iter().enumerate().map(word).collect()
}

/// Splits a line. Quotes hold blanks together, a backslash takes the next sign as it is, one at the end of a line joins the
/// next line to it (also with blanks behind it, as pasted lines have), and `#` before a word begins a remark.
pub fn split(line: &str) -> Result<Vec<Word>, SpecError> {
    if line.len() > MAX_LINE {
        let problem = format!("a command line of {} characters", line.len());
        return Err(SpecError::said(problem).hint(format!("expected at most {MAX_LINE}")));
    }
    let mut all: Vec<Word> = Vec::new();
    let (mut text, mut open, mut quoted) = (String::new(), false, false);
    let mut signs = line.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\'' | '"' => {
                (open, quoted) = (true, true);
                let before = text.clone();
                loop {
                    match signs.next() {
                        Some(next) if next == sign => break,
                        // In double quotes a backslash speaks only before these.
                        Some('\\') if sign == '"' => match signs.next() {
                            Some('\n') => {}
                            Some(next @ ('"' | '\\' | '$' | '`')) => text.push(next),
                            Some(next) => text.extend(['\\', next]),
                            None => text.push('\\'),
                        },
                        Some(next) => text.push(next),
                        None => return Err(unclosed(sign, &before, &text, all.len() + 1)),
                    }
                }
            }
            '\\' => {
                let mut ahead = signs.clone();
                let rest = std::iter::from_fn(|| ahead.next_if(|c| matches!(c, ' ' | '\t' | '\r'))).count();
                match ahead.peek() {
                    // The end of a line, or of the text: nothing is escaped.
                    Some('\n') | None => signs = ahead,
                    _ if rest > 0 && !open => {}
                    _ => {
                        text.extend(signs.next());
                        (open, quoted) = (true, true);
                    }
                }
            }
            '#' if !open => while signs.next_if(|c| *c != '\n').is_some() {},
            _ if sign.is_whitespace() => {
                if open {
                    all.push(Word { text: std::mem::take(&mut text), place: all.len() + 1, quoted });
                }
                // A line that ends without a backslash ends a command, unless the next begins with a flag.
                (open, quoted) = (false, false);
            }
            // Operators of the shell need no blanks around them.
            ';' | '|' | '&' | '>' | '<' if !quoted && !open => {
                text.push(sign);
                while let Some(next) = signs.next_if(|c| matches!(c, '|' | '&' | '>')) {
                    text.push(next);
                }
                if text.ends_with(['>', '<']) {
                    open = true;
                } else {
                    all.push(Word { text: std::mem::take(&mut text), place: all.len() + 1, quoted: false });
                }
            }
            ';' if !quoted => {
                all.push(Word { text: std::mem::take(&mut text), place: all.len() + 1, quoted });
                all.push(Word { text: ";".into(), place: all.len() + 1, quoted: false });
                open = false;
            }
            _ => {
                text.push(sign);
                open = true;
            }
        }
    }
    if open {
        all.push(Word { text, place: all.len() + 1, quoted });
    }
    Ok(all)
}

fn unclosed(quote: char, before: &str, after: &str, place: usize) -> SpecError {
    let name = if quote == '"' { "double" } else { "single" };
    let inside: String = after.chars().skip(before.chars().count()).collect();
    let shown = shorten(inside.trim_end());
    SpecError::said(format!("word {place}: the {name} quote before {before}{quote}{shown} is never closed"))
        .hint("close it, or put a backslash before it if it is part of the word")
}

/// The commands of a line: parted by `;`, `&&`, `||`, `|` and `&`; where output goes is left out.
pub fn commands(words: &[Word]) -> Vec<Vec<Word>> {
    let mut all = vec![Vec::new()];
    let mut skip = false;
    for word in words {
        let plain = !word.quoted;
        if std::mem::take(&mut skip) {
            continue;
        }
        if plain && matches!(word.text.as_str(), ";" | "&&" | "||" | "|" | "&" | "|&") {
            all.push(Vec::new());
        } else if plain && word.text.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(['>', '<']) {
            // `> file` takes the next word with it, `>file` and `2>&1` do not.
            skip = word.text.ends_with(['>', '<']);
        } else if let Some(last) = all.last_mut() {
            last.push(word.clone());
        }
    }
    all.retain(|words| !words.is_empty());
    all
}

/// A text with `$NAME` and `${NAME}` filled in where they are set; others stay as they are.
pub fn filled(text: &str, set: &BTreeMap<String, String>) -> String {
    let (mut all, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        all.push_str(before);
        let braced = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (name, usual, behind) = if let Some((inner, behind)) = braced {
            let (name, usual) = inner.split_once(":-").map_or((inner, None), |(name, usual)| (name, Some(usual)));
            (name, usual, behind)
        } else {
            let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
            (&after[..end], None, &after[end..])
        };
        match set.get(name).map(String::as_str).or(usual) {
            Some(value) => all.push_str(value),
            None => all.push_str(&rest[before.len()..rest.len() - behind.len()]),
        }
        rest = behind;
    }
    all + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        split(line).unwrap().into_iter().map(|w| w.text).collect()
    }

    #[test]
    fn words_are_split_as_a_shell_does() {
        let line = "vllm serve a/b --x '{\"k\": \"v w\"}' \\\n  --y \"\" z";
        assert_eq!(texts(line), ["vllm", "serve", "a/b", "--x", "{\"k\": \"v w\"}", "--y", "", "z"]);
        assert_eq!(texts(r#"a "b \"c\" \n" d\ e 'f\'"#), ["a", r#"b "c" \n"#, "d e", r"f\"]);
        assert_eq!(texts("a \\  \n b # no\nc"), ["a", "b", "c"]);
        assert_eq!(texts("a>b c"), ["a>b", "c"]);
        assert_eq!(texts("--x={\"a\":1}"), ["--x={a:1}"]);
    }

    #[test]
    fn a_quote_that_is_not_closed_is_pointed_at() {
        let err = split("vllm serve m --speculative-config '{\"model\": 1} --port 80").unwrap_err().to_string();
        assert!(err.contains("word 5: the single quote") && err.contains("never closed"), "{err}");
        assert!(split("a \"b").unwrap_err().to_string().contains("word 2: the double quote"));
    }

    #[test]
    fn commands_are_parted_and_their_output_left_out() {
        let of = |line: &str| {
            let all = commands(&split(line).unwrap());
            all.iter().map(|c| c.iter().map(|w| w.text.clone()).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };
        let all = of("export A=1 && vllm serve m > log.txt 2>&1 &");
        assert_eq!(all, ["export A=1", "vllm serve m"]);
        assert_eq!(of("cd x; vllm serve m | tee log"), ["cd x", "vllm serve m", "tee log"]);
        assert_eq!(of("echo ';' a"), ["echo ; a"]);
    }

    #[test]
    fn variables_are_filled_in() {
        let set = BTreeMap::from([("MODEL".to_owned(), "a/b".to_owned())]);
        assert_eq!(filled("$MODEL ${MODEL}x ${TP:-4} $OTHER $", &set), "a/b a/bx 4 $OTHER $");
    }
}
