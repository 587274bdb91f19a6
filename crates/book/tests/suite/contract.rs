//! The contract, over memory, over a file, over a file that is closed and opened before every step (for writing at once or
//! as late as can be), over a Kubernetes API, and over two stores of one API that take turns.

mod drafts;
mod life;
mod records;
mod reservations;

use std::path::PathBuf;

use super::kubernetes::{InTurn, Kube};
use mooring_book::{Access, FileStore, LazyStore, MemoryStore, Options, Store};

/// Where a test gets its store from.
pub(crate) trait Shelf {
    fn store(&mut self) -> &dyn Store;
}

struct Memory(MemoryStore);

impl Shelf for Memory {
    fn store(&mut self) -> &dyn Store {
        &self.0
    }
}

struct File {
    _dir: tempfile::TempDir,
    path: PathBuf,
    reopens: bool,
    store: Option<FileStore>,
}

impl File {
    fn new(reopens: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            path: dir.path().join("book.redb"),
            _dir: dir,
            reopens,
            store: None,
        }
    }
}

impl Shelf for File {
    fn store(&mut self) -> &dyn Store {
        if self.reopens {
            self.store = None;
        }
        let path = &self.path;
        self.store
            .get_or_insert_with(|| FileStore::open(path, &Options::default()).unwrap())
    }
}

/// A lazy store that is another one before every step: each step reads first, and is then opened for writing.
struct Lazy {
    _dir: tempfile::TempDir,
    path: PathBuf,
    store: Option<LazyStore>,
}

impl Lazy {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            path: dir.path().join("book.redb"),
            _dir: dir,
            store: None,
        }
    }
}

impl Shelf for Lazy {
    fn store(&mut self) -> &dyn Store {
        self.store = None;
        let lazy = LazyStore::at(self.path.clone(), Access::Write, Options::default());
        self.store.insert(lazy)
    }
}

macro_rules! contract {
    ($($group:ident: $($name:ident,)+;)+) => {
        mod memory {
            $($(#[test] fn $name() { super::$group::$name(&mut super::Memory(super::MemoryStore::new())); })+)+
        }
        mod file {
            $($(#[test] fn $name() { super::$group::$name(&mut super::File::new(false)); })+)+
        }
        mod file_reopened {
            $($(#[test] fn $name() { super::$group::$name(&mut super::File::new(true)); })+)+
        }
        mod lazy_reopened {
            $($(#[test] fn $name() { super::$group::$name(&mut super::Lazy::new()); })+)+
        }
        mod kubernetes {
            $($(#[test] fn $name() {
                if let Some(mut shelf) = super::Kube::new() { super::$group::$name(&mut shelf); }
            })+)+
        }
    };
}

/// What two stores of one API keep together. Each has a trail of its own, so what reads the trail is not among it; nor is
/// what asks for the order of two transactions of the same second.
macro_rules! in_turn {
    ($($group:ident: $($name:ident,)+;)+) => {
        mod kubernetes_in_turn {
            $($(#[test] fn $name() {
                if let Some(mut shelf) = super::InTurn::new() { super::$group::$name(&mut shelf); }
            })+)+
        }
    };
}

in_turn! {
    life:
        a_take_is_reserved_then_held_then_cools_then_is_free,
        a_dropped_transaction_leaves_nothing,
        an_aborted_transaction_leaves_what_was_before,
        an_expired_reservation_is_reaped,
        a_commit_can_be_repeated_and_an_unknown_one_is_refused,
        what_is_released_stays_taken_until_the_commit,
        taking_again_cancels_a_release,
        giving_back_what_was_just_taken_undoes_the_take,
        addresses_blocks_ranges_and_vlans_of_both_families_live_together,
        instances_do_not_meet,
    ;
    drafts:
        a_holder_takes_over_what_its_crashed_transaction_reserved,
        a_draft_that_drops_and_a_draft_that_keeps_commit_in_either_order,
        a_release_waits_for_the_draft_that_counts_on_it,
        an_undone_take_over_goes_back_to_the_first_transaction,
        a_range_that_two_takes_displaced_comes_back_whole,
        a_package_has_what_it_holds_and_not_what_other_drafts_reserved,
    ;
    records:
        a_new_gateway_is_recorded_at_commit,
        packages_are_noted_at_commit,
        unchanged_means_unchanged,
        restore_puts_back_and_never_overwrites,
        a_restored_reservation_rests,
        filters_narrow_the_list,
    ;
    reservations:
        the_same_reservation_again_changes_nothing,
        a_released_reservation_is_forgotten,
    ;
}

contract! {
    life:
        a_take_is_reserved_then_held_then_cools_then_is_free,
        a_dropped_transaction_leaves_nothing,
        an_aborted_transaction_leaves_what_was_before,
        an_expired_reservation_is_reaped,
        a_commit_can_be_repeated_and_an_unknown_one_is_refused,
        what_is_released_stays_taken_until_the_commit,
        taking_again_cancels_a_release,
        giving_back_what_was_just_taken_undoes_the_take,
        addresses_blocks_ranges_and_vlans_of_both_families_live_together,
        instances_do_not_meet,
    ;
    drafts:
        a_holder_takes_over_what_its_crashed_transaction_reserved,
        two_reserved_transactions_do_not_meet,
        a_draft_that_drops_and_a_draft_that_keeps_commit_in_either_order,
        a_release_waits_for_the_draft_that_counts_on_it,
        an_undone_take_over_goes_back_to_the_first_transaction,
        a_range_that_two_takes_displaced_comes_back_whole,
        a_package_has_what_it_holds_and_not_what_other_drafts_reserved,
        a_draft_does_not_show_in_the_list,
        one_transaction_is_made_at_a_time,
    ;
    records:
        a_new_gateway_is_recorded_at_commit,
        packages_are_noted_at_commit,
        unchanged_means_unchanged,
        restore_puts_back_and_never_overwrites,
        a_restored_reservation_rests,
        the_audit_trail_tells_the_story,
        filters_narrow_the_list,
    ;
    reservations:
        a_reservation_keeps_others_out_until_it_ends,
        the_same_reservation_again_changes_nothing,
        a_released_reservation_is_forgotten,
        an_amendment_is_made_as_a_whole_or_not_at_all,
    ;
}
