//! Reports about what stands in a message: fields are never taken for others, what cannot be read
//! is passed on or answered as the link says, and limits see what was read before it.

use tollgate::iso8583::{Dialect, Spans, View};

use crate::play::play;
use crate::reports::REPORTS;

#[test]
fn a_bitmap_in_the_other_form_is_not_read_as_fields_of_a_card() {
    play(&["BR005", "BR064"]);
}

#[test]
fn a_field_that_is_shorter_than_it_says_ends_the_reading_and_an_empty_one_does_not() {
    play(&["BR008", "BR010"]);
}

#[test]
fn bytes_that_are_no_digits_end_no_task_and_no_process() {
    play(&["BR012", "BR014"]);
}

#[test]
fn a_message_in_another_encoding_than_its_links_is_passed_on_and_counted() {
    play(&["BR016"]);
}

#[test]
fn digits_two_a_byte_are_counted_as_digits_on_whichever_side_an_odd_one_is_padded() {
    play(&["BR018", "BR079"]);
}

#[test]
fn a_message_in_ebcdic_is_answered_in_ebcdic() {
    play(&["BR021"]);
}

#[test]
fn a_local_answer_has_the_fields_of_its_request_in_order_under_a_bitmap_of_its_own() {
    play(&["BR059", "BR063"]);
}

#[test]
fn a_third_bitmap_and_a_field_that_few_have_harm_nothing() {
    play(&["BR061", "BR067"]);
}

/// In a dialect that has a third bitmap it stands before field 2, and a card number of four digits
/// is none.
#[test]
fn a_third_bitmap_stands_behind_the_second() {
    let table = include_str!("../../src/iso8583/presets/iso87_ascii_binbitmap.csv");
    let of_three_words = table.lines().filter_map(|line| match line.split(',').next().unwrap() {
        "1" => Some(line.replace(",16,", ",24,")),
        // Its bit announces the third bitmap.
        "65" => None,
        _ => Some(line.to_owned()),
    });
    let mut table: Vec<String> = of_three_words.collect();
    table.push("130,ans,LLL,ascii,ascii,999,chars,none,in the third word".to_owned());
    let dialect = Dialect::from_table(&table.join("\n")).unwrap();
    let [body] = &REPORTS.report("BR061").cases[0].frames()[..] else { panic!("one message") };
    let mut spans = Spans::default();
    let view = View::parse(&dialect, body, &mut spans).unwrap();
    assert_eq!(view.fault(), None);
    assert!(view.fields().iter().eq([2, 130]));
    assert_eq!((view.raw(2), view.raw(130)), (Some(&b"2222"[..]), Some(&b"test"[..])));
    assert!(view.pan().is_none());
}

#[test]
fn bytes_behind_the_last_field_are_never_cut_off() {
    play(&["BR069", "BR071"]);
}

#[test]
fn a_card_that_stands_in_a_track_alone_is_the_same_card() {
    play(&["BR075", "BR077"]);
}

#[test]
fn a_field_behind_a_long_one_is_its_own_and_what_is_out_of_place_is_not_said() {
    play(&["BR080", "BR122"]);
}
