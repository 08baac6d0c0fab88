//! A cluster in virtual time: nodes that share limits through a store, and everything that may go
//! wrong between them, beside one ideal bucket that sees every request as it arrives.
//!
//! [`workloads`] says what is played and what must come of it, [`world`] plays it, [`score`] keeps
//! the books and [`table`] prints them. A design under test is a [`node`].

mod agenda;
mod books;
mod bucket;
#[cfg(test)]
pub(crate) mod cheat;
pub(crate) mod command;
mod fault;
mod ideal;
pub(crate) mod leased;
mod limit;
mod must;
mod network;
mod node;
mod outcome;
mod process;
mod rejected;
mod score;
mod source;
mod store_side;
pub(crate) mod table;
mod workload;
pub(crate) mod workloads;
pub(crate) mod world;
