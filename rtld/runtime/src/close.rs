//! `dlclose`(3): gives a handle back, and unloads what nothing needs any more.
//!
//! An object stays while it is a start-up object, has an open handle, is bound to for good, is waited for by a
//! thread-local destructor, is being finalised, or is needed by or bound to from an object that stays. One that a callback
//! is looking at goes, but its memory stays until the callback is done with it. Finalisers run without the lock, one object at a time, and everything is looked at anew after each:
//! they may open and close what they like.

use crate::fork;
use crate::initialise::{self, FAILED, FINALISED, FINALISING, READY, Refuse};
use crate::pins;
use crate::world::{Handle, World};
use crate::writer::{self, Opened, State};
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use rtld_link::fallible::{OutOfMemory, try_filled, try_push};
use rtld_link::object::{Object, ObjectIndex};
use rtld_link::text::Text;
use rtld_sys::{lock, thread};
use sigblock::callback;

/// The handle is none, or no longer.
#[derive(Debug)]
pub struct NotOpen {
    /// The object's path, if it is the handle of an object.
    pub path: Text,
}

/// Gives a handle back.
pub fn close(world: &World, handle: *mut Handle, refuse: Refuse) -> Result<(), NotOpen> {
    // Finalisers run outside sections, also where a callback closes something.
    callback::suspend(sigblock::current());
    fork::prepare(world);
    writer::write(world, |state| {
        let position = state.handles.iter().position(|&known| !known.is_null() && known == handle);
        let root = ObjectIndex(position.ok_or(NotOpen { path: Text::empty() })? as u32);
        match state.opened.iter_mut().find(|opened| opened.root == root && opened.count > 0) {
            Some(opened) => {
                opened.count -= 1;
                Ok(())
            }
            None => {
                let path = state.objects.get(root).and_then(|object| object.path.try_clone().ok());
                Err(NotOpen { path: path.unwrap_or(Text::empty()) })
            }
        }
    })?;
    unload_unused(world, refuse);
    Ok(())
}

/// What is to be done next.
enum Next {
    Finalise(&'static Object, *mut Handle),
    Nothing,
}

/// Finalises and unloads everything that nothing needs. Without memory it stays.
///
/// Only one round is under way at a time: a finaliser that closes something, or another thread, leaves it to the round
/// that is, which looks at everything anew after each finaliser. So an object's finalisers end before those of what it
/// closes begin.
fn unload_unused(world: &World, refuse: Refuse) {
    // SAFETY: threads of this process have thread pointers.
    let me = unsafe { thread::pointer() };
    let begins = writer::write(world, |state| {
        let begins = state.unloading.is_none();
        state.unloading.get_or_insert(me);
        begins
    });
    if !begins {
        return;
    }
    loop {
        match writer::write(world, |state| next(world, state)) {
            Ok(Next::Finalise(object, handle)) => {
                // SAFETY: it was initialised, and stays mapped while it says that it is being finalised.
                unsafe { initialise::finalise(world, object, refuse) };
                if let Some(word) = initialise::progress(handle) {
                    word.store(FINALISED, Ordering::Release);
                }
            }
            Ok(Next::Nothing) => break,
            Err(OutOfMemory) => {
                writer::write(world, |state| end_round(world, state));
                break;
            }
        }
    }
    lock::wake_all(&world.rounds);
    writer::relieve(world);
}

fn end_round(world: &World, state: &mut State) {
    state.unloading = None;
    world.rounds.fetch_add(1, Ordering::Release);
}

fn next(world: &World, state: &mut State) -> Result<Next, OutOfMemory> {
    let used = used(world, state)?;
    let is_unused = |index: ObjectIndex| used.get(index.position()) == Some(&false);
    let candidate = state.initialised.iter().rposition(|&index| is_unused(index));
    if let Some(position) = candidate {
        let index = state.initialised.remove(position);
        let handle = state.handle(index);
        if let (Some(word), Some(object)) = (initialise::progress(handle), state.objects.get(index)) {
            initialise::set_owner(handle);
            word.store(FINALISING, Ordering::Release);
            return Ok(Next::Finalise(object, handle));
        }
    }
    let unused = (state.first_later.0..state.objects.bound() as u32).map(ObjectIndex);
    let mut closing = Vec::new();
    for index in unused.filter(|&index| is_unused(index) && state.objects.get(index).is_some()) {
        try_push(&mut closing, index)?;
    }
    if closing.is_empty() {
        end_round(world, state);
        state.reclaim(world);
        return Ok(Next::Nothing);
    }
    // A binder may have come first: then everything is looked at again.
    if let Some(kept) = closing.iter().position(|&index| !pins::close(state.handle(index))) {
        closing.iter().take(kept).for_each(|&index| pins::reopen(state.handle(index)));
        return next(world, state);
    }
    end_round(world, state);
    remove(world, state, &closing);
    Ok(Next::Nothing)
}

/// Which objects must stay.
pub(crate) fn used(world: &World, state: &State) -> Result<Vec<bool>, OutOfMemory> {
    let mut used = try_filled(false, state.objects.bound())?;
    let mut pending = Vec::new();
    for opened in state.opened.iter().filter(|opened| opened.count > 0) {
        mark(&mut used, &mut pending, opened.root)?;
    }
    for (index, _) in state.objects.iter() {
        if index < state.first_later || must_stay(world, state, index) {
            mark(&mut used, &mut pending, index)?;
        }
    }
    while let Some(index) = pending.pop() {
        for &needed in state.objects.entry(index).map_or(&[][..], |entry| &entry.needed) {
            mark(&mut used, &mut pending, needed)?;
        }
        for bond in state.bonds.iter().filter(|bond| bond.from == index) {
            mark(&mut used, &mut pending, bond.to)?;
        }
    }
    Ok(used)
}

fn mark(used: &mut [bool], pending: &mut Vec<ObjectIndex>, index: ObjectIndex) -> Result<(), OutOfMemory> {
    match used.get_mut(index.position()) {
        Some(known) if !*known => {
            *known = true;
            try_push(pending, index)
        }
        _ => Ok(()),
    }
}

/// Whether an object that is not open must stay by itself.
fn must_stay(world: &World, state: &State, index: ObjectIndex) -> bool {
    let handle = state.handle(index);
    let busy = initialise::progress(handle).is_some_and(|word| {
        let progress = word.load(Ordering::Acquire);
        !matches!(progress, READY | FINALISED | FAILED)
    });
    let waiting = world.process.host.map_or(0, |host| host.waiting_destructors(handle));
    busy || waiting > 0 || pins::stays(handle)
}

fn remove(world: &World, state: &mut State, closing: &[ObjectIndex]) {
    if keep_scopes(state, closing).is_err() {
        closing.iter().for_each(|&index| pins::reopen(state.handle(index)));
        return;
    }
    let gone = |index: &ObjectIndex| closing.contains(index);
    state.forget_opened(|root| gone(&root));
    state.global.retain(|index| !gone(index));
    state.bonds.retain(|bond| !gone(&bond.from) && !gone(&bond.to));
    for &index in closing.iter().rev() {
        state.tls.remove(index);
        state.search.forget(index);
        let handle = state.handle(index);
        if let Some(place) = state.handles.get_mut(index.position()) {
            *place = core::ptr::null_mut();
        }
        if let Some(object) = state.objects.remove(index) {
            state.subs += 1;
            // Without memory for the note it stays mapped.
            let _ = state.retire(object, handle);
        }
    }
    state.handles.truncate(state.objects.bound());
    // Without memory readers see what is gone until it can be published, and it stays mapped until then.
    let _ = state.publish(world);
    state.tell_host(world, false);
    state.reclaim(world);
}

/// An object that stays may have looked its symbols up in the closure of one that goes: it gets one of its own.
fn keep_scopes(state: &mut State, closing: &[ObjectIndex]) -> Result<(), OutOfMemory> {
    let going: Vec<ObjectIndex> = {
        let mut going = Vec::new();
        for opened in state.opened.iter().filter(|opened| closing.contains(&opened.root)) {
            try_push(&mut going, opened.root)?;
        }
        going
    };
    for root in going {
        for member in state.objects.closure(root)? {
            let stays = member >= state.first_later && !closing.contains(&member);
            if stays && !state.opened.iter().any(|opened| opened.root == member) {
                let opened = Opened::new(&state.objects, member, 0, false)?;
                try_push(&mut state.opened, opened)?;
            }
        }
    }
    Ok(())
}
