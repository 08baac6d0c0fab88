//! The tables of fixtures.

/// The columns of a line; those in quotes may hold commas.
pub(crate) fn columns(line: &str) -> Vec<String> {
    let mut columns = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => columns.push(String::new()),
            _ => columns.last_mut().unwrap().push(character),
        }
    }
    columns
}
