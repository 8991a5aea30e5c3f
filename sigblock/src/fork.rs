//! The child of a fork(2): one thread, which is in no section (calls of fork leave them), with the actions of its parent.

use crate::action;

/// In the child: another thread of the parent's may have been changing an action. Each change is one store, so the table is
/// whole; its lock is not.
pub fn in_child() {
    action::LOCK.reset();
}
