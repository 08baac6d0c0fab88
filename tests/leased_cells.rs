//! A million leased keys: what their cells take, apart from what the sync knows of them. All of it is
//! counted, to the byte; `tests/lease_memory.rs` measures the process with its sync.
#![allow(clippy::unwrap_used, reason = "a test states its expectations")]

use allocation_counter::measure;
use tollgate::clock::Moment;
use tollgate::limits::{Burst, LimitIx, Per, Policy, Rate, Rule, Terms};
use tollgate::traffic::{Class, LinkId, MerchantId, Operation, Traffic};

const KEYS: usize = 1_000_000;
/// A cache line each, of which the last chunk may be in part unused.
const CELLS: usize = KEYS.next_multiple_of(512) * 64;
/// Heads of chains, chunks, two marks for each cell, and buckets for keys without one.
const BESIDE: usize = 9_000_000;

fn shop(number: usize) -> Traffic {
    Traffic {
        merchant: MerchantId::new(b"123456", format!("SHOP{number:08}").as_bytes()),
        ..Traffic::new(LinkId(0), Class::Standard, Operation::Purchase)
    }
}

#[test]
fn a_million_leased_cells_take_a_cache_line_each_and_little_beside() {
    let (rate, burst) = (Rate::per_second(10.0).unwrap(), Burst::tokens(10.0).unwrap());
    let rule = Rule { keys_max: KEYS, ..Rule::new("merchant", Per::MERCHANT, rate, burst) };
    let now = Moment::START;
    let mut made = None;
    let empty = measure(|| {
        made = Some(Policy::leased(&[rule], &[], Terms::default(), 1, 11, now).unwrap());
    });
    let policy = made.unwrap();
    let full = measure(|| {
        for number in 0..KEYS {
            let _turn = policy.turn(0);
            assert_eq!(policy.decide(&shop(number), now).refused_by, None);
        }
    });
    assert_eq!((policy.keys_in_use(LimitIx(0)), policy.overflowed(LimitIx(0))), (KEYS, 0));
    assert_eq!(usize::try_from(full.bytes_current).unwrap(), CELLS);
    let beside = usize::try_from(empty.bytes_current).unwrap();
    assert!(beside <= BESIDE, "{beside} bytes before the first key");
    println!("{CELLS} bytes of cells, {beside} beside");
}
