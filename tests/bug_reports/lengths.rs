//! Reports about where a message begins and ends.

use crate::play::play;

#[test]
fn a_length_that_is_none_closes_the_session_at_once() {
    play(&["BR001", "BR025"]);
}

#[test]
fn a_length_in_bcd_is_read_as_one_and_on_a_link_in_binary_the_rest_is_not_waited_for_long() {
    play(&["BR003"]);
}

#[test]
fn a_message_in_several_writes_is_one_and_several_in_one_write_are_several() {
    play(&["BR027", "BR029"]);
}

#[test]
fn a_header_is_turned_round_once_and_counted_once() {
    play(&["BR072"]);
}
