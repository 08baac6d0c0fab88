//! Merchants at the nodes of a cluster: each offers messages at a steady rate, at whichever node it is
//! just then, by a schedule that waits for no answer.
//!
//! What `tollgate simulate network` sends goes to one node at random moments. Here a merchant keeps
//! to its rate to the message and changes nodes, and each answer is kept, so that a test can look at
//! any part of the time.

mod driver;
mod outcome;

use std::time::Duration;

pub use driver::Driver;
pub use outcome::{Answer, Outcome, Verdict, ideal};

use super::message::Message;

/// One merchant, or one till of it: what it sends, when and where.
#[derive(Clone, Debug)]
pub struct Shop {
    /// Field 42, filled up with blanks.
    pub name: String,
    /// The card, which says the BIN.
    pub pan: String,
    /// Field 18, by which a limit may be for this shop and not for others.
    pub category: String,
    /// Its first message comes so long after the start.
    pub from: Duration,
    /// And then one comes so often.
    pub every: Duration,
    /// As long as there are any left.
    pub count: usize,
    pub hop: Hop,
}

/// At which node a shop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// Always the same.
    At(usize),
    /// Another with each message.
    Message,
    /// Another each time that so much has gone by.
    Every(Duration),
}

impl Shop {
    /// One with so many messages a second, as long as the load goes on, that changes nodes with each.
    pub fn steady(name: &str, per_second: f64) -> Self {
        Self {
            name: name.to_owned(),
            pan: "4111111111111111".to_owned(),
            category: "5411".to_owned(),
            from: Duration::ZERO,
            every: Duration::from_secs_f64(1.0 / per_second),
            count: usize::MAX,
            hop: Hop::Message,
        }
    }

    /// One with a single message.
    pub fn once(name: &str, from: Duration) -> Self {
        Self { from, count: 1, ..Self::steady(name, 1.0) }
    }

    /// One with so many messages at once.
    pub fn volley(name: &str, count: usize, node: usize) -> Self {
        Self { every: Duration::ZERO, count, hop: Hop::At(node), ..Self::steady(name, 1.0) }
    }

    #[must_use]
    pub fn at(self, hop: Hop) -> Self {
        Self { hop, ..self }
    }

    #[must_use]
    pub fn category(self, category: &str) -> Self {
        Self { category: category.to_owned(), ..self }
    }

    #[must_use]
    pub fn card(self, pan: &str) -> Self {
        Self { pan: pan.to_owned(), ..self }
    }

    #[must_use]
    pub fn from(self, from: Duration) -> Self {
        Self { from, ..self }
    }

    /// Its message, and where the number of each stands in it.
    #[track_caller]
    fn template(&self) -> Template {
        const MARK: &str = "@@@@@@";
        let message = Message::sale(&self.pan, 1)
            .with(11, MARK)
            .with(18, &self.category)
            .with(37, &format!("712045{MARK}"))
            .with(42, &format!("{:<15}", self.name));
        let bytes = message.encode();
        let places = bytes.windows(MARK.len()).enumerate();
        let places = places.filter(|(_, found)| *found == MARK.as_bytes());
        let places: Vec<usize> = places.map(|(at, _)| at).collect();
        let places = places.try_into().expect("field 11 and the end of field 37");
        Template { bytes, places }
    }
}

/// A message but for its number.
struct Template {
    bytes: Vec<u8>,
    places: [usize; 2],
}

impl Template {
    /// Appends the message with a number, framed be16.
    fn write(&self, stan: u32, out: &mut Vec<u8>) {
        let length = u16::try_from(self.bytes.len()).unwrap();
        out.extend_from_slice(&length.to_be_bytes());
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        for place in self.places {
            let digits = format!("{stan:06}");
            out[start + place..][..digits.len()].copy_from_slice(digits.as_bytes());
        }
    }
}
