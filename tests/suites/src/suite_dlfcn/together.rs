//! Opening and closing from constructors, destructors and several threads at once, and what a failure leaves behind. Each case
//! is a program of its own with libraries of its own, so that nothing but the case decides the order.

use super::{BESIDE, Script};
use crate::harness::{Build, Context, Report, Run};
use crate::same::{Want, same, written};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Nothing here takes a second; a loader that waits for itself waits for ever.
const LIMIT: u64 = 30;

const PRELUDE: &str = "#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define CONSTRUCTOR __attribute__((constructor)) static void construct(void)
#define DESTRUCTOR __attribute__((destructor)) static void destruct(void)
";

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report, _: &Script) -> Result<()> {
    constructors(context, report)?;
    threads(context, report)?;
    fresh(context, report)?;
    forks(context, report)?;
    failures(context, report)?;
    scopes(context, report)?;
    later(context, report)
}

/// A library `together/lib{name}.so` of one source text.
fn library(context: &Context, name: &str, source: &str, libraries: &[&Path]) -> Result<PathBuf> {
    let build = Build::inline(&format!("together/{name}.c"), &format!("{PRELUDE}{source}"))
        .shared()
        .flags(&["-O1", "-Wl,-z,lazy", "-Wl,--no-as-needed", BESIDE])
        .flag(format!("-Wl,-soname,lib{name}.so"))
        .output(format!("together/lib{name}.so"));
    libraries.iter().fold(build, |build, library| build.with(library)).build(context)
}

/// A program of one source text, beside the libraries.
fn program(context: &Context, name: &str, source: &str, libraries: &[&Path]) -> Result<PathBuf> {
    let build = Build::inline(&format!("together/{name}.c"), &format!("{PRELUDE}{source}"))
        .flags(&["-O1", "-rdynamic", "-pthread", "-Wl,-z,lazy", "-Wl,--no-as-needed", BESIDE])
        .output(format!("together/{name}"));
    libraries.iter().fold(build, |build, library| build.with(library)).build(context)
}

fn limited(run: Run) -> Run {
    run.limit(LIMIT)
}

fn constructors(context: &Context, report: &mut Report) -> Result<()> {
    let first = library(
        context,
        "first",
        "CONSTRUCTOR { puts(\"first\"); dlopen(NULL, RTLD_NOW); puts(\"end of first\"); } int first(void) { return 1; }",
        &[],
    )?;
    let needing = "int first(void); CONSTRUCTOR { puts(\"second\"); } int second(void) { return first(); }";
    let second = library(context, "second", needing, &[&first])?;
    let main = "int first(void); int second(void); int main(void) { return first() - second(); }";
    let start = program(context, "start", main, &[&second, &first])?;
    let want = Want::Clean("first\nend of first\nsecond");
    same(context, report, "a constructor that opens the program initialises nothing else", &start, want, limited);

    let opener = "CONSTRUCTOR { puts(\"needed\"); puts(dlopen(\"./together/libopened.so\", RTLD_NOW) ? \"opened\" : dlerror()); }
        int needed(void) { return 1; }";
    let needed = library(context, "needed", opener, &[])?;
    library(context, "opened", "int needed(void); CONSTRUCTOR { puts(\"root\"); needed(); }", &[&needed])?;
    let main = "int main(void) { return !dlopen(\"./together/libopened.so\", RTLD_NOW); }";
    let root = program(context, "root", main, &[])?;
    let want = Want::Clean("needed\nopened\nroot");
    same(context, report, "a constructor that opens what is being opened does not run it", &root, want, limited);
    Ok(())
}

fn threads(context: &Context, report: &mut Report) -> Result<()> {
    let source = "static void *other(void *unused) { return dlopen(NULL, RTLD_NOW); }
        CONSTRUCTOR { pthread_t thread; void *handle = NULL; pthread_create(&thread, NULL, other, NULL);
            pthread_join(thread, &handle); puts(handle ? \"opened\" : \"not opened\"); }
        int waiting(void) { return 0; }";
    let waiting = library(context, "waiting", source, &[])?;
    let main = "int waiting(void); int main(void) { return waiting(); }";
    let start = program(context, "waits", main, &[&waiting])?;
    let want = Want::Clean("opened");
    same(context, report, "a thread of a start-up constructor does not wait for it", &start, want, limited);

    for (name, other) in [("left", "right"), ("right", "left")] {
        let source = format!("CONSTRUCTOR {{ usleep(200000); dlopen(\"./together/lib{other}.so\", RTLD_NOW); }}");
        library(context, name, &source, &[])?;
    }
    let main = "static void *opened(void *name) { return dlopen(name, RTLD_NOW); }
        int main(void) { pthread_t threads[2]; void *handles[2];
            pthread_create(threads, NULL, opened, \"./together/libleft.so\");
            pthread_create(threads + 1, NULL, opened, \"./together/libright.so\");
            for (int i = 0; i < 2; i++) pthread_join(threads[i], handles + i);
            puts(handles[0] && handles[1] ? \"both\" : \"not both\"); return 0; }";
    let crossed = program(context, "crossed", main, &[])?;
    let want = Want::Clean("both");
    same(context, report, "two threads whose constructors open each other's library", &crossed, want, limited);

    let source = "static volatile int ready; int asked(void) { return ready; }
        CONSTRUCTOR { sched_yield(); ready = 1; } DESTRUCTOR { ready = 0; usleep(50); }";
    library(context, "ready", source, &[])?;
    let main = "static void *rounds(void *bad) { for (int i = 0; i < 1000; i++) {
                void *handle = dlopen(\"./together/libready.so\", RTLD_NOW);
                int (*asked)(void) = dlsym(handle, \"asked\");
                if (!asked || !asked()) ++*(int *)bad;
                dlclose(handle); } return NULL; }
        int main(void) { pthread_t threads[4]; int bad[4] = {0};
            for (int i = 0; i < 4; i++) pthread_create(threads + i, NULL, rounds, bad + i);
            for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
            printf(\"not ready: %d\\n\", bad[0] + bad[1] + bad[2] + bad[3]); return 0; }";
    let ready = program(context, "ready", main, &[])?;
    let want = Want::Clean("not ready: 0");
    same(context, report, "what four threads open and close is initialised while they use it", &ready, want, limited);
    Ok(())
}

/// What is closed and opened again is new, whatever another thread does meanwhile.
fn fresh(context: &Context, report: &mut Report) -> Result<()> {
    library(context, "fresh", "static int calls; int call(void) { return ++calls; }", &[])?;
    library(
        context,
        "lasting",
        "extern volatile int destructing; DESTRUCTOR { destructing = 1; usleep(300000); }",
        &[],
    )?;
    let reopen = "#include <link.h>
        static void *fresh;
        static int call(void) { fresh = dlopen(\"./together/libfresh.so\", RTLD_NOW);
            return ((int (*)(void))dlsym(fresh, \"call\"))(); }";
    let main = "volatile int destructing;
        static void *closes(void *unused) { void *lasting = dlopen(\"./together/liblasting.so\", RTLD_NOW);
            dlclose(lasting); return NULL; }
        int main(void) { pthread_t thread; printf(\"%d\\n\", call()); pthread_create(&thread, NULL, closes, NULL);
            while (!destructing) usleep(1000);
            dlclose(fresh); printf(\"%d\\n\", call()); pthread_join(thread, NULL); return 0; }";
    let unloading = program(context, "unloading", &format!("{reopen}{main}"), &[])?;
    let want = Want::Clean("1\n1");
    same(context, report, "opened again while another thread unloads something", &unloading, want, limited);

    let main = "static volatile int looking;
        static int look(struct dl_phdr_info *information, size_t size, void *unused) {
            if (strstr(information->dlpi_name, \"libfresh\")) { looking = 1; usleep(300000); looking = information->dlpi_phdr[0].p_type; }
            return 0; }
        static void *looks(void *unused) { dl_iterate_phdr(look, NULL); return NULL; }
        int main(void) { pthread_t thread; printf(\"%d\\n\", call()); pthread_create(&thread, NULL, looks, NULL);
            while (!looking) usleep(1000);
            dlclose(fresh); printf(\"%d\\n\", call()); pthread_join(thread, NULL); return 0; }";
    let looking = program(context, "looking", &format!("{reopen}{main}"), &[])?;
    let want = Want::Clean("1\n1");
    same(context, report, "opened again while another thread's callback looks at it", &looking, want, limited);
    Ok(())
}

fn forks(context: &Context, report: &mut Report) -> Result<()> {
    library(context, "slow", "CONSTRUCTOR { sleep(1); }", &[])?;
    let main = "static void *opened(void *name) { return dlopen(name, RTLD_NOW); }
        int main(void) { pthread_t thread; int status; pthread_create(&thread, NULL, opened, \"./together/libslow.so\");
            usleep(300000);
            pid_t child = fork();
            if (!child) { alarm(10); _exit(!dlopen(\"./together/libslow.so\", RTLD_NOW)); }
            waitpid(child, &status, 0); printf(\"%x\\n\", status); pthread_join(thread, NULL); return 0; }";
    let while_slow = program(context, "while_slow", main, &[])?;
    let want = Want::Clean("0");
    same(context, report, "fork while another thread runs a constructor", &while_slow, want, limited);

    library(context, "small", "int small;", &[])?;
    let main = "static volatile int done;
        static void *nothing(void *unused) { return NULL; }
        static void *asks(void *unused) { while (!done) dlsym(RTLD_DEFAULT, \"no_such_symbol\"); return NULL; }
        int main(void) { pthread_t thread; int bad = 0, status; pthread_create(&thread, NULL, asks, NULL);
            for (int i = 0; i < 200; i++) { pid_t child = fork();
                if (!child) { alarm(10); pthread_t own; pthread_create(&own, NULL, nothing, NULL); pthread_join(own, NULL);
                    void *handle = dlopen(\"./together/libsmall.so\", RTLD_NOW); _exit(!handle || dlclose(handle)); }
                waitpid(child, &status, 0); if (status) bad++; }
            done = 1; pthread_join(thread, NULL); printf(\"bad %d\\n\", bad); return 0; }";
    let busy = program(context, "busy", main, &[])?;
    // Under ld-linux a child may find malloc's lock or the loader's list as another thread left it.
    written(context, report, "fork while another thread uses the loader", &busy, Want::Clean("bad 0"), limited);
    Ok(())
}

fn failures(context: &Context, report: &mut Report) -> Result<()> {
    let source =
        "static void *resolve(void) { return (void *)8; } int indirect(void) __attribute__((ifunc(\"resolve\")));
        int calls(void) { return indirect(); } CONSTRUCTOR { puts(\"constructed\"); }";
    library(context, "broken", source, &[])?;
    let main = "static void *opened(void *unused) { puts(dlopen(\"./together/libbroken.so\", RTLD_NOW) ? \"opened\" : \"refused\");
            return NULL; }
        int main(void) { pthread_t thread; opened(NULL); opened(NULL);
            pthread_create(&thread, NULL, opened, NULL); pthread_join(thread, NULL); return 0; }";
    let again = program(context, "again", main, &[])?;
    // ld-linux opens it and crashes at the call.
    let want = Want::Clean("refused\nrefused\nrefused");
    written(context, report, "a library whose resolver fails is refused each time", &again, want, limited);

    let local = library(context, "local", "int promoted(void) { return 1; }", &[])?;
    let source = "int promoted(void); int missing(void); int both(void) { return promoted() + missing(); }";
    library(context, "missing", source, &[&local])?;
    let main = "int main(void) { dlopen(\"./together/liblocal.so\", RTLD_NOW);
            puts(dlopen(\"./together/libmissing.so\", RTLD_NOW | RTLD_GLOBAL) ? \"opened\" : \"refused\");
            dlopen(\"./together/libsmall.so\", RTLD_NOW);
            puts(dlsym(RTLD_DEFAULT, \"promoted\") ? \"global\" : \"local\"); return 0; }";
    let promoted = program(context, "promoted", main, &[])?;
    let want = Want::Clean("refused\nlocal");
    same(context, report, "RTLD_GLOBAL of a dlopen that failed changes no scope", &promoted, want, limited);

    let source = "__thread int counted = 7; int get(void) { return counted; } void set(int value) { counted = value; }";
    library(context, "dynamic", source, &[])?;
    let source = "extern __thread int counted __attribute__((tls_model(\"initial-exec\"))); int get_static(void) { return counted; }";
    library(context, "static", source, &[])?;
    let main = "int main(void) { void *dynamic = dlopen(\"./together/libdynamic.so\", RTLD_NOW | RTLD_GLOBAL);
            ((void (*)(int))dlsym(dynamic, \"set\"))(5);
            const char *error = dlopen(\"./together/libstatic.so\", RTLD_NOW) ? \"opened\" : dlerror();
            puts(strstr(error, \"cannot allocate memory in static TLS block\") ? \"refused\" : error);
            printf(\"%d\\n\", ((int (*)(void))dlsym(dynamic, \"get\"))()); return 0; }";
    let used = program(context, "used", main, &[])?;
    let want = Want::Clean("refused\n5");
    same(context, report, "initial exec against a module that a thread uses dynamically", &used, want, limited);
    Ok(())
}

fn scopes(context: &Context, report: &mut Report) -> Result<()> {
    let source = "void tell(void) { Dl_info place; void *next = dlsym(RTLD_NEXT, \"malloc\");
        puts(next && dladdr(next, &place) && strstr(place.dli_fname, \"libc.so.6\") ? \"libc\" : \"none\"); }";
    library(context, "next", source, &[])?;
    let main = "int main(void) { void *handle = dlopen(\"./together/libnext.so\", RTLD_NOW | RTLD_GLOBAL);
        ((void (*)(void))dlsym(handle, \"tell\"))(); return 0; }";
    let next = program(context, "next", main, &[])?;
    same(context, report, "RTLD_NEXT in a library opened for all", &next, Want::Clean("libc"), limited);

    let source = "const char *whose(void); const char *asks(void) { return whose(); }";
    let asks = library(context, "asks", source, &[])?;
    let source = "const char *asks(void); const char *whose(void) { return \"plug-in\"; }
        const char *own(void) { return whose(); } const char *through(void) { return asks(); }";
    library(context, "deep", source, &[&asks])?;
    let main = "const char *asks(void); const char *whose(void) { return \"program\"; }
        int main(int count, char **values) { if (count > 9) asks();
            void *deep = dlopen(\"./together/libdeep.so\", RTLD_LAZY | RTLD_DEEPBIND);
            puts(((const char *(*)(void))dlsym(deep, \"own\"))());
            puts(((const char *(*)(void))dlsym(deep, \"through\"))()); return 0; }";
    let deep = program(context, "deep", main, &[&asks])?;
    let want = Want::Clean("plug-in\nprogram");
    same(context, report, "RTLD_DEEPBIND is not for libraries that were there before", &deep, want, limited);
    Ok(())
}

fn later(context: &Context, report: &mut Report) -> Result<()> {
    let last = library(context, "last", "int last(void) { return 3; }", &[])?;
    let middle = library(context, "middle", "int last(void); int middle(void) { return last(); }", &[&last])?;
    library(context, "chain", "int middle(void); int chain(void) { return middle(); }", &[&middle])?;
    let main =
        "int main(void) { void *handle = dlopen(\"./together/libchain.so\", RTLD_LAZY); char line[512]; int left = 0;
            printf(\"%d\\n\", ((int (*)(void))dlsym(handle, \"chain\"))()); dlclose(handle);
            FILE *maps = fopen(\"/proc/self/maps\", \"r\");
            while (fgets(line, sizeof line, maps))
                left += strstr(line, \"libchain.so\") || strstr(line, \"libmiddle.so\") || strstr(line, \"liblast.so\");
            printf(\"left %d\\n\", left); return 0; }";
    let chain = program(context, "chain", main, &[])?;
    let want = Want::Clean("3\nleft 0");
    same(context, report, "what was bound lazily along a chain of needs is unloaded with it", &chain, want, limited);

    library(context, "beside", "int beside;", &[])?;
    library(context, "mover", "void *move(void) { return dlopen(\"libbeside.so\", RTLD_NOW); }", &[])?;
    let main = "int main(void) { void *mover = dlopen(\"./together/libmover.so\", RTLD_NOW);
            if (chdir(\"/\")) return 1;
            puts(((void *(*)(void))dlsym(mover, \"move\"))() ? \"found\" : dlerror()); return 0; }";
    let moved = program(context, "moved", main, &[])?;
    same(context, report, "$ORIGIN is where a library was when it was loaded", &moved, Want::Clean("found"), limited);
    Ok(())
}
