//! User mode, for real: signals, threads and processes under the system's own loader, with the state in a thread-local
//! variable of this program. Each case runs in a child of its own; a case that does not end is killed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a case fails by a panic")]

mod actions;
mod around;
mod changes;
mod delivery;
mod masks;
mod notes;
mod world;

/// Every case by its name.
const ALL: &[(&str, fn())] = &[
    ("held_until_the_end_of_the_outermost_section", delivery::held_until_the_end),
    ("nothing_but_the_exact_value_delivers", delivery::exact_value),
    ("standard_signals_merge_and_others_queue_in_order", delivery::order),
    ("signals_queued_to_the_thread_keep_their_order", delivery::order_in_the_thread),
    ("several_waiting_at_once_keep_their_order", delivery::several_at_once),
    ("siginfo_is_that_of_an_ordinary_delivery", delivery::same_siginfo),
    ("mask_is_given_back", delivery::mask_is_given_back),
    ("mask_of_a_handler_is_the_programs", delivery::handler_mask),
    ("reset_hand", actions::reset_hand),
    ("no_defer", actions::no_defer),
    ("alternate_stack", actions::alternate_stack),
    ("a_fault_passes", actions::fault),
    ("what_was_set_is_read_back", actions::read_back),
    ("mask_calls_inside_see_the_programs_mask", actions::mask_inside),
    ("ignored_meanwhile", actions::ignored_meanwhile),
    ("full_queue", actions::full_queue),
    ("filter_that_kills", around::filter),
    ("vector_registers_stay", around::vectors),
    ("what_is_waited_for_is_the_oldest", around::waited_for),
    ("fork_after_a_section", around::fork_after),
    ("vfork_child_changes_nothing", around::vfork),
    ("vfork_child_killed_inside", around::vfork_killed),
    ("vfork_child_executes_in_a_section", around::vfork_executes),
    ("hold_set_is_configured", around::hold_set),
    ("dead_thread_gives_back", around::dead_thread),
    ("threads_under_fire", around::storm),
    ("sigprocmask_is_interrupted_anywhere", around::sigprocmask_interrupted),
    ("sigprocmask_blocks_and_gives_back", around::sigprocmask),
    ("action_set_by_a_handler_that_passes", changes::by_a_handler_that_passes),
    ("action_set_by_the_handlers_of_a_fork", changes::by_the_handlers_of_a_fork),
    ("action_reset_under_a_strict_filter", changes::reset_under_a_strict_filter),
    ("a_child_in_the_same_memory_stops_no_reset", changes::reset_after_a_child_in_the_same_memory),
    ("ignored_while_pending", changes::ignored_while_pending),
    ("mask_after_a_handler_that_passes", masks::in_a_handler_that_passes),
    ("mask_is_lent_with_more_waiting", masks::lent_with_more_waiting),
    ("mask_of_a_context", masks::of_a_context),
    ("mask_changed_under_fire", masks::changed_under_fire),
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let (mut passed, mut failed) = (0, 0);
    for (name, case) in ALL {
        if !wanted.is_empty() && !wanted.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        match world::in_child(*case) {
            Ok(()) => passed += 1,
            Err(why) => {
                failed += 1;
                println!("test user_mode::{name} ... FAILED: {why}");
            }
        }
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {verdict}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out");
    std::process::exit(i32::from(failed != 0));
}
