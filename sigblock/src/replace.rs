//! Which functions of the C library are ours, by back end.

use crate::backend::{self, Backend};
use crate::{disposition, mask, outside, vfork};

/// Gives the names of all functions that may be replaced to a macro: `libsigblock` exports each.
#[macro_export]
macro_rules! for_replaced {
    ($work:ident) => {
        $work! {
            sigaction,
            __sigaction,
            signal,
            ssignal,
            bsd_signal,
            sysv_signal,
            __sysv_signal,
            sigset,
            sigignore,
            siginterrupt,
            sigvec,
            sigprocmask,
            pthread_sigmask,
            sighold,
            sigrelse,
            sigblock,
            sigsetmask,
            siggetmask,
            sigpending,
            vfork,
            __vfork,
            sigsuspend,
            __sigsuspend,
            sigpause,
            __sigpause,
            __xpg_sigpause,
            pause,
            ppoll,
            __ppoll_chk,
            pselect,
            epoll_pwait,
            epoll_pwait2,
            sigwait,
            sigwaitinfo,
            sigtimedwait,
            execve,
            execv,
            execvp,
            execvpe,
            execl,
            execle,
            execlp,
            fexecve,
            execveat,
            posix_spawn,
            posix_spawnp,
            pthread_create,
            thrd_create,
            exit,
            quick_exit,
            system,
            popen,
            longjmp,
            _longjmp,
            siglongjmp,
            __longjmp_chk,
            setjmp,
            __sigsetjmp,
            getcontext,
            setcontext,
            swapcontext,
            prctl,
            syscall,
            fork,
            __fork,
            __libc_fork,
            _Fork,
        }
    };
}

macro_rules! list {
    ($($name:ident),* $(,)?) => {
        /// Every name that may be replaced.
        pub const REPLACED: &[&[u8]] = &[$(stringify!($name).as_bytes()),*];
    };
}

for_replaced!(list);

/// Our code for a function of the C library, with the back end that was chosen.
pub fn replacement(name: &[u8]) -> Option<usize> {
    let backend = backend::current();
    let user = backend == Backend::User;
    let marks = user || backend == Backend::Sigprocmask;
    let minds_filters = user || backend == Backend::Kernel;
    action(name)
        .filter(|_| user)
        .or_else(|| mask_change(name).filter(|_| marks))
        .or_else(|| (name == b"sigset" && marks).then_some(disposition::sigset as *const () as usize))
        .or_else(|| (name == b"sigpending" && user).then_some(mask::sigpending as *const () as usize))
        .or_else(|| matches!(name, b"vfork" | b"__vfork").then(vfork::address))
        .or_else(|| outside::stub(name).filter(|_| minds_filters || !outside::is_for_filters(name)))
}

fn action(name: &[u8]) -> Option<usize> {
    Some(match name {
        b"sigaction" | b"__sigaction" => disposition::sigaction as *const () as usize,
        b"signal" | b"ssignal" | b"bsd_signal" => disposition::signal as *const () as usize,
        b"sysv_signal" | b"__sysv_signal" => disposition::sysv_signal as *const () as usize,
        b"sigset" => disposition::sigset as *const () as usize,
        b"sigignore" => disposition::sigignore as *const () as usize,
        b"siginterrupt" => disposition::siginterrupt as *const () as usize,
        b"sigvec" => disposition::sigvec as *const () as usize,
        _ => return None,
    })
}

fn mask_change(name: &[u8]) -> Option<usize> {
    Some(match name {
        b"sigprocmask" => mask::sigprocmask as *const () as usize,
        b"pthread_sigmask" => mask::pthread_sigmask as *const () as usize,
        b"sighold" => mask::sighold as *const () as usize,
        b"sigrelse" => mask::sigrelse as *const () as usize,
        b"sigblock" => mask::sigblock as *const () as usize,
        b"sigsetmask" => mask::sigsetmask as *const () as usize,
        b"siggetmask" => mask::siggetmask as *const () as usize,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_code() {
        for &name in REPLACED {
            let known = action(name).or_else(|| mask_change(name)).or_else(|| outside::stub(name));
            let known = known.is_some() || matches!(name, b"vfork" | b"__vfork" | b"sigpending");
            assert!(known, "{}", String::from_utf8_lossy(name));
        }
    }
}
