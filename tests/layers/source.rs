//! Rust source as far as a layering test has to understand it: which identifiers stand in the code,
//! which paths lead where, how long functions are. Comments and literals are no code, and the code
//! of unit tests is under no layer.

#![allow(unreachable_pub, missing_docs, reason = "a test of its own")]

use std::path::Path;

/// A word or a mark of the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

/// One file.
#[derive(Debug)]
pub struct Source {
    /// From the root of the package, with `/`.
    pub path: String,
    pub text: String,
    /// The modules from the root of the crate to this file.
    pub module: Vec<String>,
    tokens: Vec<Token>,
}

/// A path from the root of the crate, and where it is written.
#[derive(Debug, PartialEq, Eq)]
pub struct Import {
    pub to: Vec<String>,
    pub line: usize,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    pub line: usize,
    pub lines: usize,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            module: module_of(path),
            tokens: without_tests(tokens(&without_comments_and_literals(text))),
        }
    }

    /// The module of the crate that the file is of; the file's own name for the two roots.
    pub fn room(&self) -> &str {
        match self.module.first() {
            Some(room) => room,
            None => self.path.trim_start_matches("src/").trim_end_matches(".rs"),
        }
    }

    /// Where an identifier stands.
    pub fn lines_of(&self, identifier: &str) -> Vec<usize> {
        let found = self.tokens.iter().filter(|token| token.text == identifier);
        found.map(|token| token.line).collect()
    }

    /// Where a path begins with this identifier: that of a crate, unless a module has its name.
    pub fn lines_of_crate(&self, name: &str) -> Vec<usize> {
        let begins = |at: &usize| {
            self.tokens[*at].text == name
                && self.text_at(at + 1) == "::"
                && (*at == 0 || self.text_at(at - 1) != "::")
        };
        let found = (0..self.tokens.len()).filter(begins);
        found.map(|at| self.tokens[at].line).collect()
    }

    /// Where a path stands that goes through these identifiers one after the other.
    pub fn lines_of_path(&self, segments: &[&str]) -> Vec<usize> {
        let pattern: Vec<_> =
            segments.iter().flat_map(|segment| ["::", *segment]).skip(1).collect();
        let fits = |window: &&[Token]| window.iter().zip(&pattern).all(|(t, p)| t.text == **p);
        self.tokens.windows(pattern.len()).filter(fits).map(|window| window[0].line).collect()
    }

    pub fn identifiers(&self) -> impl Iterator<Item = &Token> {
        let is_word =
            |token: &&Token| token.text.starts_with(|c: char| c.is_alphabetic() || c == '_');
        self.tokens.iter().filter(is_word)
    }

    /// Every path that starts at the root of the crate, or leads out of a module by `super`.
    pub fn imports(&self) -> Vec<Import> {
        let mut found = Vec::new();
        let mut inner: Vec<(String, usize)> = Vec::new();
        let (mut depth, mut at) = (0, 0);
        while let Some(token) = self.tokens.get(at) {
            let here = || self.module.iter().chain(inner.iter().map(|(name, _)| name)).cloned();
            match token.text.as_str() {
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    inner.retain(|(_, opened_at)| *opened_at <= depth);
                }
                "mod" if self.text_at(at + 2) == "{" => {
                    inner.push((self.text_at(at + 1).to_owned(), depth + 1));
                }
                "crate" | "super" | "self" | "tollgate"
                    if self.text_at(at + 1) == "::" && !self.only_says_who_may_look_in(at) =>
                {
                    at = self.expand(at, here().collect(), &mut found);
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        found
    }

    /// The path of `pub(in path)`.
    fn only_says_who_may_look_in(&self, at: usize) -> bool {
        at >= 3
            && ["pub", "(", "in"].iter().zip(at - 3..).all(|(text, at)| self.text_at(at) == *text)
    }

    fn text_at(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.text.as_str())
    }

    /// Follows the path, or the tree of paths, that begins at `at` and stands for something under
    /// `under`; returns where it ends.
    fn expand(&self, mut at: usize, mut under: Vec<String>, found: &mut Vec<Import>) -> usize {
        let line = self.tokens.get(at).map_or(0, |token| token.line);
        loop {
            match self.text_at(at) {
                "{" => {
                    at += 1;
                    while !matches!(self.text_at(at), "}" | "") {
                        at = self.expand(at, under.clone(), found);
                        // A name of its own for what was imported.
                        if self.text_at(at) == "as" {
                            at += 2;
                        }
                        if self.text_at(at) == "," {
                            at += 1;
                        }
                    }
                    return at + 1;
                }
                "crate" | "tollgate" => under.clear(),
                "super" => drop(under.pop()),
                "self" => {}
                "*" => under.push("*".to_owned()),
                // Generic arguments after `::`, or the end of what was understood.
                segment if !segment.starts_with(|c: char| c.is_alphanumeric() || c == '_') => {
                    found.push(Import { to: under, line });
                    return at + 1;
                }
                segment => under.push(segment.to_owned()),
            }
            at += 1;
            if self.text_at(at) != "::" {
                found.push(Import { to: under, line });
                return at;
            }
            at += 1;
        }
    }

    /// Every function with a body.
    pub fn functions(&self) -> Vec<Function> {
        let mut found = Vec::new();
        for (at, token) in self.tokens.iter().enumerate() {
            let name = self.text_at(at + 1);
            if token.text != "fn" || !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
                continue;
            }
            if let Some(end) = self.end_of_item(at)
                && self.text_at(end) == "}"
            {
                let lines = self.tokens[end].line - token.line + 1;
                found.push(Function { name: name.to_owned(), line: token.line, lines });
            }
        }
        found
    }

    fn end_of_item(&self, at: usize) -> Option<usize> {
        end_of_item(&self.tokens, at)
    }
}

/// `src/net/stream.rs` is `net::stream`, `src/net/mod.rs` and `src/net.rs` are `net`.
fn module_of(path: &str) -> Vec<String> {
    let inside = path.trim_start_matches("src/").trim_end_matches(".rs");
    let mut module: Vec<_> = Path::new(inside).iter().map(|part| part.to_string_lossy()).collect();
    if module.last().is_some_and(|last| last == "mod")
        || (module.len() == 1 && (module[0] == "lib" || module[0] == "main"))
    {
        module.pop();
    }
    module.into_iter().map(|part| part.into_owned()).collect()
}

/// The same text with blanks in place of comments, strings and characters; lines stay lines.
fn without_comments_and_literals(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let word_before = code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let blank = match next {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => string(rest, 1),
            'r' | 'b' | 'c' if !word_before => raw_or_byte_string(rest),
            '\'' => character(rest),
            _ => 0,
        };
        if blank == 0 {
            code.push(next);
            rest = &rest[next.len_utf8()..];
        } else {
            let gone = &rest[..blank];
            code.extend(gone.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = &rest[blank..];
        }
    }
    code
}

/// Length of the comment, which may hold others.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Length of the string whose contents begin at `start`.
fn string(text: &str, start: usize) -> usize {
    let mut escaped = false;
    for (at, c) in text[start..].char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return start + at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of `b"…"`, `r"…"`, `br#"…"#` and their like; 0 for a word.
fn raw_or_byte_string(text: &str) -> usize {
    let letters = text.find(|c| !matches!(c, 'r' | 'b' | 'c')).unwrap_or(text.len());
    let after = &text[letters..];
    let raw = text[..letters].contains('r');
    let hashes = if raw { after.find(|c| c != '#').unwrap_or(0) } else { 0 };
    if letters > 2 || !after[hashes..].starts_with('"') {
        return if text.starts_with("b'") { 1 + character(&text[1..]) } else { 0 };
    }
    let start = letters + hashes + 1;
    if !raw {
        return string(text, start);
    }
    let end = format!("\"{}", "#".repeat(hashes));
    text[start..].find(&end).map_or(text.len(), |at| start + at + end.len())
}

/// Length of a character literal; 0 for a lifetime.
fn character(text: &str) -> usize {
    let mut inside = text[1..].char_indices();
    match inside.next() {
        Some((_, '\\')) => {
            // What is escaped is over; the rest of an escape has no quote.
            inside.next();
            inside.find(|(_, c)| *c == '\'').map_or(text.len(), |(at, _)| at + 2)
        }
        Some(_) => match inside.next() {
            Some((at, '\'')) => at + 2,
            _ => 0,
        },
        None => 0,
    }
}

fn tokens(code: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (line, text) in (1..).zip(code.lines()) {
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let length = if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            tokens.push(Token { text: rest[..length].to_owned(), line });
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

/// Leaves out every item behind `#[cfg(test)]`.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let marked = tokens[at..].iter().map(|token| token.text.as_str()).take(7).eq(MARK);
        if marked {
            at = end_of_item(&tokens, at + MARK.len()).map_or(tokens.len(), |end| end + 1);
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// Where the item that begins at `at` ends: at its semicolon, or where its braces close.
fn end_of_item(tokens: &[Token], at: usize) -> Option<usize> {
    let (mut braces, mut others) = (0, 0);
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match token.text.as_str() {
            "(" | "[" => others += 1,
            ")" | "]" => others -= 1,
            "{" => braces += 1,
            "}" => {
                braces -= 1;
                if braces == 0 && others == 0 {
                    return Some(index);
                }
            }
            ";" if braces == 0 && others == 0 => return Some(index),
            _ => {}
        }
    }
    None
}
