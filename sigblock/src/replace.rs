//! Which functions of the C library are ours, by back end.

use crate::backend::{self, Backend};
use crate::{disposition, mask, outside, vfork};

/// Every name that may be replaced.
pub const REPLACED: &[&[u8]] = &[
    b"sigaction",
    b"__sigaction",
    b"signal",
    b"ssignal",
    b"bsd_signal",
    b"sysv_signal",
    b"__sysv_signal",
    b"sigset",
    b"sigignore",
    b"siginterrupt",
    b"sigvec",
    b"sigprocmask",
    b"pthread_sigmask",
    b"sighold",
    b"sigrelse",
    b"sigblock",
    b"sigsetmask",
    b"siggetmask",
    b"sigpending",
    b"vfork",
    b"__vfork",
    b"sigsuspend",
    b"__sigsuspend",
    b"sigpause",
    b"__sigpause",
    b"__xpg_sigpause",
    b"pause",
    b"ppoll",
    b"__ppoll_chk",
    b"pselect",
    b"epoll_pwait",
    b"epoll_pwait2",
    b"sigwait",
    b"sigwaitinfo",
    b"sigtimedwait",
    b"execve",
    b"execv",
    b"execvp",
    b"execvpe",
    b"execl",
    b"execle",
    b"execlp",
    b"fexecve",
    b"execveat",
    b"posix_spawn",
    b"posix_spawnp",
    b"pthread_create",
    b"thrd_create",
    b"exit",
    b"quick_exit",
    b"system",
    b"popen",
    b"longjmp",
    b"_longjmp",
    b"siglongjmp",
    b"__longjmp_chk",
    b"setcontext",
    b"swapcontext",
    b"prctl",
    b"syscall",
    b"fork",
    b"__fork",
    b"__libc_fork",
    b"_Fork",
];

/// Our code for a function of the C library, with the back end that was chosen.
pub fn replacement(name: &[u8]) -> Option<usize> {
    let backend = backend::current();
    let user = backend == Backend::User;
    let marks = user || backend == Backend::Sigprocmask;
    action(name)
        .filter(|_| user)
        .or_else(|| mask_change(name).filter(|_| marks))
        .or_else(|| (name == b"sigset" && marks).then_some(disposition::sigset as *const () as usize))
        .or_else(|| (name == b"sigpending" && user).then_some(mask::sigpending as *const () as usize))
        .or_else(|| matches!(name, b"vfork" | b"__vfork").then(vfork::address))
        .or_else(|| outside::stub(name).filter(|_| user || !outside::is_for_filters(name)))
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
