//! What the messages of a network are made of: for each flow its cards and shops, how they are
//! drawn, and the message of each kind.

use prefetch_index::prefetch_index;

use super::awaited::{Sent, Told};
use super::draw::Draw;
use super::kind::Kind;
use super::place::six;
use super::template::{Filling, Line, NoTemplate, Template};
use super::{Choice, Flow};
use crate::clock::Utc;
use crate::iso8583::{Spans, View};
use crate::peers::card::CardRange;
use crate::peers::{EncodeError, Message};

/// Prices, in the currency's smallest unit.
const AMOUNTS: std::ops::Range<u32> = 100..50_000;

/// All flows.
pub(super) struct Deck {
    flows: Vec<Hand>,
    by_rate: Draw,
}

/// One flow.
struct Hand {
    mix: Draw,
    ranges: Draw,
    cards: Vec<CardRange>,
    shops: Draw,
    shelf: Shelf,
    /// By kind; those that do not come have none.
    templates: Vec<Option<Template>>,
}

/// Fields 18 and 42 of all shops of a flow, as they are written, one shop behind the other.
struct Shelf {
    bytes: Box<[u8]>,
    category_bytes: usize,
    acceptor_bytes: usize,
}

/// What is to be sent, drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Drawn {
    pub(super) flow: u16,
    pub(super) kind: Kind,
    pub(super) shop: u32,
    /// What the rest is drawn from.
    pub(super) luck: u32,
}

impl Deck {
    pub(super) fn new(flows: &[Flow], line: Line<'_>) -> Result<Self, NoTemplate> {
        let rates: Vec<f64> = flows.iter().map(|flow| flow.rate.max(0.0)).collect();
        let flows = flows.iter().map(|flow| Hand::new(flow, line)).collect::<Result<_, _>>()?;
        Ok(Self { flows, by_rate: Draw::weighted(&rates) })
    }

    /// From now on it is this time.
    pub(super) fn set_time(&mut self, seconds: u32) {
        let time = digits_of(seconds);
        let templates = self.flows.iter_mut().flat_map(|hand| &mut hand.templates);
        templates.flatten().for_each(|template| template.set_time(&time));
    }

    /// The next message.
    #[inline]
    pub(super) fn draw(&self, rng: &mut fastrand::Rng) -> Option<Drawn> {
        let flow = if self.flows.len() > 1 { self.by_rate.draw(rng) } else { 0 };
        let hand = self.flows.get(flow as usize)?;
        let kind = Kind::ALL.get(hand.mix.draw(rng) as usize).copied()?;
        let shop = hand.shops.draw(rng);
        Some(Drawn { flow: flow as u16, kind, shop, luck: rng.u32(..) })
    }

    /// Has the processor fetch what is written of the shop of a message that comes next: among many
    /// shops it lies far away.
    #[inline]
    pub(super) fn fetch(&self, drawn: &Drawn) {
        if let Some(hand) = self.flows.get(usize::from(drawn.flow)) {
            prefetch_index(&hand.shelf.bytes, hand.shelf.start(drawn.shop));
        }
    }

    /// Appends a message to `out`.
    #[inline]
    pub(super) fn write(&self, sent: &Sent, told: &Told, connection: usize, out: &mut Vec<u8>) {
        self.with(sent, told, connection, |template, filling| template.write(filling, out));
    }

    /// Appends a message that was sent before.
    pub(super) fn write_again(
        &self,
        sent: &Sent,
        told: &Told,
        connection: usize,
        out: &mut Vec<u8>,
    ) {
        let time = digits_of(told.time);
        let write = |template: &Template, filling: &Filling<'_>| {
            template.write_again(filling, &time, out);
        };
        self.with(sent, told, connection, write);
    }

    #[inline]
    fn with(
        &self,
        sent: &Sent,
        told: &Told,
        connection: usize,
        write: impl FnOnce(&Template, &Filling<'_>),
    ) {
        let hand = self.flows.get(usize::from(sent.flow));
        let template = hand.and_then(|hand| hand.templates.get(sent.kind as usize)?.as_ref());
        let (Some(hand), Some(template)) = (hand, template) else { return };
        let mut luck = fastrand::Rng::with_seed(sent.luck.into());
        let range = hand.ranges.draw(&mut luck) as usize;
        let Some(range) = hand.cards.get(range) else { return };
        let (category, acceptor) = hand.shelf.shop(sent.shop);
        let filling = Filling {
            stan: six(sent.stan),
            terminal: terminal(connection, sent.shop),
            card: range.draw(&mut luck),
            amount: six(luck.u32(AMOUNTS)),
            category,
            acceptor,
            original: (sent.kind == Kind::Reversal).then(|| original(told.original)),
        };
        write(template, &filling);
    }
}

/// The digits of a terminal: three of its connection, four of its shop.
#[inline]
const fn terminal(connection: usize, shop: u32) -> [u8; 7] {
    let [.., a, b, c] = six(connection as u32);
    let [.., d, e, f, g] = six(shop);
    [a, b, c, d, e, f, g]
}

/// Whether these are the digits of a terminal.
#[inline]
pub(super) fn is_terminal(given: [u8; 7], connection: usize, shop: u32) -> bool {
    let [a, b, c, d, e, f, g] = given;
    // Digit by digit: two arrays that have just been put together are slow to compare in memory.
    let [a1, b1, c1, d1, e1, f1, g1] = terminal(connection, shop);
    (a ^ a1) | (b ^ b1) | (c ^ c1) | (d ^ d1) | (e ^ e1) | (f ^ f1) | (g ^ g1) == 0
}

fn original((stan, seconds): (u32, u32)) -> [u8; 16] {
    let ([a, b, c, d, e, f], time) = (six(stan), digits_of(seconds));
    let mut digits = [0; 16];
    let source = [a, b, c, d, e, f].into_iter().chain(time);
    digits.iter_mut().zip(source).for_each(|(to, from)| *to = from);
    digits
}

/// MMDDhhmmss.
fn digits_of(seconds: u32) -> [u8; 10] {
    let Utc { month, day, hour, minute, second } = Utc::from_unix(seconds.into());
    let mut digits = [0; 10];
    let (pairs, _) = digits.as_chunks_mut::<2>();
    for (pair, number) in pairs.iter_mut().zip([month, day, hour, minute, second]) {
        *pair = [number / 10, number % 10];
    }
    digits
}

impl Hand {
    fn new(flow: &Flow, line: Line<'_>) -> Result<Self, NoTemplate> {
        let Flow { acquirer, cards, shops, mix, .. } = flow;
        let example = shops.of.first();
        let templates = Kind::ALL.into_iter().zip(mix.weights()).map(|(kind, weight)| {
            let shop = example.filter(|_| *weight > 0.0);
            shop.map(|shop| Template::new(kind, acquirer, shop, line)).transpose()
        });
        Ok(Self {
            mix: Draw::weighted(mix.weights()),
            ranges: draw(cards),
            cards: cards.of.iter().map(|range| CardRange::new(range)).collect(),
            shops: draw(shops),
            templates: templates.collect::<Result<_, _>>()?,
            shelf: Shelf::new(flow, line)?,
        })
    }
}

fn draw<T>(choice: &Choice<T>) -> Draw {
    Draw::zipf(choice.of.len(), choice.skew)
}

impl Shelf {
    fn new(flow: &Flow, line: Line<'_>) -> Result<Self, NoTemplate> {
        let mut bytes = Vec::new();
        let mut sizes = None;
        let (mut body, mut spans) = (Vec::new(), Spans::default());
        // Line tests name no shop.
        let kinds = Kind::ALL.into_iter().zip(flow.mix.weights());
        let named = kinds.into_iter().any(|(kind, part)| kind != Kind::EchoTest && *part > 0.0);
        for shop in flow.shops.of.iter().filter(|_| named) {
            body.clear();
            let message = Message::new("0100")
                .field(18, shop.category.as_str())
                .field(42, shop.acceptor.as_str());
            let refused = |why| NoTemplate::Encode { kind: Kind::Purchase.name(), why };
            message.encode(line.dialect, &mut body).map_err(refused)?;
            let view = View::parse(line.dialect, &body, &mut spans)
                .map_err(|_| refused(EncodeError::Mti))?;
            let fields = [view.raw(18), view.raw(42)].map(Option::unwrap_or_default);
            let these = fields.map(<[u8]>::len);
            if *sizes.get_or_insert(these) != these {
                return Err(NoTemplate::Shops);
            }
            fields.into_iter().for_each(|field| bytes.extend_from_slice(field));
        }
        let [category_bytes, acceptor_bytes] = sizes.unwrap_or_default();
        Ok(Self { bytes: bytes.into(), category_bytes, acceptor_bytes })
    }

    const fn start(&self, place: u32) -> usize {
        place as usize * (self.category_bytes + self.acceptor_bytes)
    }

    /// Category and number of a shop.
    #[inline]
    fn shop(&self, place: u32) -> (&[u8], &[u8]) {
        let (start, bytes) = (self.start(place), self.category_bytes + self.acceptor_bytes);
        let whole = self.bytes.get(start..start + bytes).unwrap_or_default();
        whole.split_at_checked(self.category_bytes).unwrap_or_default()
    }
}
