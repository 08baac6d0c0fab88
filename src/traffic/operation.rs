//! What a transaction does, how gladly it is refused, and the tables that say so.

/// How gladly a message is refused when tokens run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Class {
    /// Never refused: advices, reversals, network management and all else that tollgate may not
    /// answer itself. It is charged, down to a debt of one burst.
    #[default]
    Protected,
    /// Refused last: money on its way to a cardholder, where a 91 may be taken as "outcome unknown".
    Critical,
    /// Ordinary requests.
    Standard,
    /// Refused first: inquiries, which a terminal repeats at no harm.
    Sheddable,
}

impl Class {
    /// Every class, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Protected, Self::Critical, Self::Standard, Self::Sheddable];

    /// The name in configuration, logs and metric labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Protected => "protected",
            Self::Critical => "critical",
            Self::Standard => "standard",
            Self::Sheddable => "sheddable",
        }
    }
}

/// What a transaction does, from the first two digits of its processing code (DE3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// 00: goods and services.
    Purchase,
    /// 01, 17: cash.
    Cash,
    /// 09: goods and services with cash back.
    Cashback,
    /// 20: refund.
    Refund,
    /// 21 to 29: deposit, credit to a card.
    Credit,
    /// 30 to 39: balance and other inquiries.
    Inquiry,
    /// 40 to 49: transfer between accounts.
    Transfer,
    /// 50 to 59: payment.
    Payment,
    /// Everything else, and a message without DE3.
    Other,
}

impl Operation {
    /// Every operation, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Purchase,
        Self::Cash,
        Self::Cashback,
        Self::Refund,
        Self::Credit,
        Self::Inquiry,
        Self::Transfer,
        Self::Payment,
        Self::Other,
    ];

    /// The name in configuration, keys and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Purchase => "purchase",
            Self::Cash => "cash",
            Self::Cashback => "cashback",
            Self::Refund => "refund",
            Self::Credit => "credit",
            Self::Inquiry => "inquiry",
            Self::Transfer => "transfer",
            Self::Payment => "payment",
            Self::Other => "other",
        }
    }

    /// The operation of a processing code that begins with `leading`, 0 to 99, where a link says
    /// nothing else.
    pub const fn from_processing_code(leading: u8) -> Self {
        match leading {
            0 => Self::Purchase,
            1 | 17 => Self::Cash,
            9 => Self::Cashback,
            20 => Self::Refund,
            21..=29 => Self::Credit,
            30..=39 => Self::Inquiry,
            40..=49 => Self::Transfer,
            50..=59 => Self::Payment,
            _ => Self::Other,
        }
    }

    /// The class of an answerable request that does this, where the configuration says nothing else.
    pub const fn class(self) -> Class {
        match self {
            Self::Refund | Self::Credit => Class::Critical,
            Self::Inquiry => Class::Sheddable,
            _ => Class::Standard,
        }
    }
}

/// Processing codes that a link reads in its own way (`[link.operations]`).
const CODES: usize = 100;

/// What each processing code means on a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operations {
    by_code: [Operation; CODES],
}

impl Operations {
    /// The operation of a processing code that begins with `leading`, 0 to 99.
    pub fn of(&self, leading: u8) -> Operation {
        self.by_code.get(usize::from(leading)).copied().unwrap_or(Operation::Other)
    }

    /// Lets codes that begin with `leading`, 0 to 99, mean `operation`.
    pub fn set(&mut self, leading: u8, operation: Operation) {
        if let Some(meaning) = self.by_code.get_mut(usize::from(leading)) {
            *meaning = operation;
        }
    }
}

impl Default for Operations {
    fn default() -> Self {
        Self {
            by_code: std::array::from_fn(|leading| {
                u8::try_from(leading).map_or(Operation::Other, Operation::from_processing_code)
            }),
        }
    }
}

/// How gladly a request is refused, by what it does (`[classes]`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes {
    by_operation: [Class; Operation::ALL.len()],
}

impl Classes {
    /// The class of answerable requests that do this.
    pub fn of(&self, operation: Operation) -> Class {
        self.by_operation.get(operation as usize).copied().unwrap_or(operation.class())
    }

    /// Gives answerable requests that do this another class.
    pub fn set(&mut self, operation: Operation, class: Class) {
        if let Some(chosen) = self.by_operation.get_mut(operation as usize) {
            *chosen = class;
        }
    }
}

impl Default for Classes {
    fn default() -> Self {
        Self { by_operation: Operation::ALL.map(Operation::class) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places_in_the_lists() {
        assert!(Operation::ALL.iter().enumerate().all(|(at, operation)| *operation as usize == at));
        assert!(Class::ALL.iter().enumerate().all(|(at, class)| *class as usize == at));
    }

    #[test]
    fn a_table_says_what_the_standard_says_until_it_is_told_otherwise() {
        let (mut operations, mut classes) = (Operations::default(), Classes::default());
        for leading in 0..=99 {
            assert_eq!(operations.of(leading), Operation::from_processing_code(leading));
        }
        for operation in Operation::ALL {
            assert_eq!(classes.of(operation), operation.class());
        }
        operations.set(28, Operation::Payment);
        classes.set(Operation::Payment, Class::Critical);
        assert_eq!((operations.of(28), operations.of(27)), (Operation::Payment, Operation::Credit));
        assert_eq!(classes.of(Operation::Payment), Class::Critical);
        assert_eq!(operations.of(200), Operation::Other);
    }
}
