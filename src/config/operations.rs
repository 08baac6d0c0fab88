//! `[link.operations]` and `[classes]`: what processing codes mean, and how gladly each operation is
//! refused.

use super::fault::{Wrong, quoted};
use super::limit_value as read;
use super::reader::Section;
use super::value;
use crate::traffic::{Class, Classes, Operation, Operations};

/// Reads what the processing codes of a link mean; what is not named keeps its meaning.
pub(super) fn operations(section: Section<'_>) -> Option<Operations> {
    let mut operations = Operations::default();
    let mut sound = true;
    for (code, named) in section.entries(read::operation) {
        let leading = (code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| code.parse().ok())
            .flatten();
        match (leading, named) {
            (Some(leading), Ok(operation)) => operations.set(leading, operation.value),
            (_, Err(())) => sound = false,
            (None, Ok(operation)) => {
                let problem = format!("{} is not the first two digits of DE3", quoted(code));
                let wrong = Wrong::new(problem, "write two digits, such as \"28\"");
                section.fault(&operation.place, &wrong);
                sound = false;
            }
        }
    }
    sound.then_some(operations)
}

/// Reads how gladly requests are refused, by what they do.
pub(super) fn classes(section: Section<'_>) -> Option<Classes> {
    const PROTECTED: &str = "protected";
    let choices = Class::ALL.into_iter().filter(|class| *class != Class::Protected);
    let choices: Vec<_> = choices.map(|class| (class.name(), class)).collect();
    let read = |value: &toml::de::DeValue<'_>| match value.as_str() {
        Some(PROTECTED) => Err(Wrong::new(
            "is what may not be answered, which the message type alone decides",
            "write \"critical\" for what is to be refused last",
        )),
        _ => value::choice(choices.clone(), value::none_later)(value),
    };
    let mut classes = Classes::default();
    let mut sound = true;
    for operation in Operation::ALL {
        match section.optional(operation.name(), read) {
            Some(placed) => {
                if let Some(class) = placed.value {
                    classes.set(operation, class);
                }
            }
            None => sound = false,
        }
    }
    section.finish(&[]);
    sound.then_some(classes)
}
