//! The table's row for the machine's release against glibc's debug information, read by gdb.
//!
//! Wants gdb and libc6-dbg; without either the test fails.

use std::collections::BTreeMap;
use std::process::Command;

use rtld_clib::Offsets;
use rtld_clib::offsets::{RseqPlace, StackOwner, StackPermissions};

use crate::mapped::{LIBC, LOADER, Mapped};
use crate::recognise::recognised;

/// What is to be asked of one file: (structure, field or "" for the size, what the table says).
type Question = (&'static str, &'static str, Option<usize>);

/// The answers of gdb, by "structure.field"; fields that do not exist are absent.
fn ask(file: &str, questions: &[Question]) -> BTreeMap<String, usize> {
    let mut command = Command::new("gdb");
    command.args(["-batch", "-nx", "-iex", "set debuginfod enabled off", file]);
    for (structure, field, _) in questions {
        let expression = match *field {
            "" => format!("sizeof(struct {structure})"),
            field => format!("&((struct {structure} *)0)->{field}"),
        };
        command.args(["-ex", &format!("printf \"{structure}.{field} %lu\\n\", (unsigned long){expression}")]);
    }
    let output = command.output().unwrap_or_else(|error| panic!("gdb is missing: {error}"));
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: BTreeMap<String, usize> = text
        .lines()
        .filter_map(|line| {
            let (name, number) = line.rsplit_once(' ')?;
            Some((name.to_string(), number.parse().ok()?))
        })
        .collect();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!answers.is_empty(), "{file}: no debug information; is libc6-dbg installed? gdb says: {errors}");
    answers
}

fn compare(file: &str, questions: &[Question]) {
    let answers = ask(file, questions);
    for (structure, field, expected) in questions {
        let name = format!("{structure}.{field}");
        assert_eq!(answers.get(&name), expected.as_ref(), "{name} (left: debug information, right: table)");
    }
}

fn running() -> &'static Offsets {
    recognised(&Mapped::new(LIBC), &Mapped::new(LOADER)).unwrap().offsets()
}

#[test]
fn the_loaders_structures_are_as_the_table_says() {
    let Offsets { global, read_only, link_map, .. } = running();
    let (segment, protection) = match global.stack_permissions {
        StackPermissions::SegmentFlags(offset) => (Some(offset), None),
        StackPermissions::ProtectionFlags(offset) => (None, Some(offset)),
    };
    compare(
        LOADER,
        &[
            ("rtld_global", "", Some(global.size)),
            ("rtld_global", "_dl_ns[0]._ns_loaded", Some(0)),
            ("rtld_global", "_dl_ns[0]._ns_nloaded", Some(8)),
            ("rtld_global", "_dl_ns[0]._ns_main_searchlist", Some(16)),
            ("rtld_global", "_dl_nns", Some(global.namespace_count)),
            ("rtld_global", "_dl_load_lock", Some(global.load_lock)),
            ("rtld_global", "_dl_all_dirs", Some(global.all_directories)),
            ("rtld_global", "_dl_stack_flags", segment),
            ("rtld_global", "_dl_stack_prot_flags", protection),
            ("rtld_global", "_dl_stack_used", global.stack_used),
            ("rtld_global", "_dl_stack_user", global.stack_user),
            ("rtld_global", "_dl_stack_cache", global.stack_cache),
            ("rtld_global", "_dl_tls_max_dtv_idx", Some(global.tls_max_module)),
            ("rtld_global", "_dl_tls_dtv_slotinfo_list", Some(global.tls_slotinfo)),
            ("rtld_global", "_dl_tls_static_nelem", Some(global.tls_static_count)),
            ("rtld_global", "_dl_initial_dtv", Some(global.initial_dtv)),
            ("rtld_global", "_dl_tls_generation", Some(global.tls_generation)),
            ("rtld_global", "_dl_tls_static_size", global.tls_static_size),
            ("rtld_global", "_dl_tls_static_align", global.tls_static_align),
            ("rtld_global", "_dl_init_static_tls", global.init_static_tls),
            ("rtld_global", "_dl_rtld_lock_recursive", global.lock_functions),
            ("rtld_global_ro", "", Some(read_only.size)),
            ("rtld_global_ro", "_dl_platform", Some(read_only.platform)),
            ("rtld_global_ro", "_dl_platformlen", Some(read_only.platform + 8)),
            ("rtld_global_ro", "_dl_pagesize", Some(read_only.page_size)),
            ("rtld_global_ro", "_dl_minsigstacksize", read_only.minimum_signal_stack),
            ("rtld_global_ro", "_dl_clktck", Some(read_only.clock_ticks)),
            ("rtld_global_ro", "_dl_hwcap", Some(read_only.hwcap)),
            ("rtld_global_ro", "_dl_hwcap2", Some(read_only.hwcap2)),
            ("rtld_global_ro", "_dl_auxv", Some(read_only.auxv)),
            ("rtld_global_ro", "_dl_tls_static_size", read_only.tls_static_size),
            ("rtld_global_ro", "_dl_tls_static_align", read_only.tls_static_align),
            ("rtld_global_ro", "_dl_init_all_dirs", Some(read_only.initial_directories)),
            ("rtld_global_ro", "_dl_sysinfo_dso", Some(read_only.vdso_header)),
            ("rtld_global_ro", "_dl_sysinfo_map", Some(read_only.vdso_map)),
            ("rtld_global_ro", "_dl_vdso_clock_gettime64", Some(read_only.vdso_functions)),
            ("rtld_global_ro", "_dl_vdso_gettimeofday", Some(read_only.vdso_functions + 8)),
            ("rtld_global_ro", "_dl_vdso_time", Some(read_only.vdso_functions + 16)),
            ("rtld_global_ro", "_dl_vdso_getcpu", Some(read_only.vdso_functions + 24)),
            ("rtld_global_ro", "_dl_vdso_clock_getres_time64", Some(read_only.vdso_functions + 32)),
            ("rtld_global_ro", "_dl_vdso_getrandom", read_only.vdso_getrandom),
            ("rtld_global_ro", "_dl_mcount", Some(read_only.mcount)),
            ("rtld_global_ro", "_dl_lookup_symbol_x", Some(read_only.lookup_symbol)),
            ("rtld_global_ro", "_dl_open", Some(read_only.open)),
            ("rtld_global_ro", "_dl_close", Some(read_only.close)),
            ("rtld_global_ro", "_dl_catch_error", read_only.catch_error),
            ("rtld_global_ro", "_dl_error_free", read_only.error_free),
            ("rtld_global_ro", "_dl_tls_get_addr_soft", Some(read_only.tls_get_addr_soft)),
            ("rtld_global_ro", "_dl_find_object", read_only.find_object),
            ("link_map", "", Some(link_map.size)),
            ("link_map", "l_addr", Some(0)),
            ("link_map", "l_name", Some(8)),
            ("link_map", "l_ld", Some(16)),
            ("link_map", "l_next", Some(24)),
            ("link_map", "l_prev", Some(32)),
            ("link_map", "l_real", Some(link_map.real)),
            ("link_map", "l_libname", Some(link_map.library_name)),
            ("link_map", "l_info", Some(link_map.info)),
            ("link_map", "l_phdr", Some(link_map.program_headers)),
            ("link_map", "l_entry", Some(link_map.program_headers + 8)),
            ("link_map", "l_phnum", Some(link_map.program_headers + 16)),
            ("link_map", "l_searchlist", Some(link_map.search_list)),
            ("link_map", "l_map_start", Some(link_map.map_start)),
            ("link_map", "l_map_end", Some(link_map.map_start + 8)),
            ("link_map", "l_text_end", link_map.text_end),
            ("link_map", "l_scope", Some(link_map.scope)),
            ("link_map", "l_local_scope", Some(link_map.local_scope)),
            ("link_map", "l_tls_offset", Some(link_map.tls_offset)),
            ("link_map", "l_tls_modid", Some(link_map.tls_module)),
            ("link_map", "l_tls_dtor_count", Some(link_map.tls_destructor_count)),
        ],
    );
}

#[test]
fn the_places_of_the_gnu_hash_table_are_as_the_table_says() {
    let running = running();
    let Some(places) = &running.link_map.gnu_hash else { panic!("not known for {}", running.name) };
    // DT_GNU_HASH has the last place: glibc numbers the tags of addresses downwards from DT_ADDRRNGHI, and keeps them last.
    let last = "l_info[sizeof(((struct link_map *)0)->l_info) / sizeof(void *) - 1]";
    compare(
        LOADER,
        &[
            ("link_map", last, Some(places.info)),
            ("link_map", "l_nbuckets", Some(places.bucket_count)),
            ("link_map", "l_gnu_buckets", Some(places.buckets)),
            ("link_map", "l_gnu_chain_zero", Some(places.chain_zero)),
        ],
    );
}

#[test]
fn the_thread_descriptor_is_as_the_table_says() {
    let thread = &running().thread;
    let (flag, mode) = match thread.stack_owner {
        StackOwner::Flag(offset) => (Some(offset), None),
        StackOwner::Mode(offset) => (None, Some(offset)),
    };
    let rseq = match thread.rseq {
        RseqPlace::Descriptor(offset) => Some(offset),
        RseqPlace::None | RseqPlace::ExtraTls => None,
    };
    compare(
        LIBC,
        &[
            ("pthread", "", Some(thread.size)),
            ("pthread", "header.tcb", Some(0)),
            ("pthread", "header.dtv", Some(8)),
            ("pthread", "header.self", Some(16)),
            ("pthread", "header.stack_guard", Some(0x28)),
            ("pthread", "header.pointer_guard", Some(0x30)),
            ("pthread", "list", Some(thread.list)),
            ("pthread", "tid", Some(thread.tid)),
            ("pthread", "robust_prev", Some(thread.robust_previous)),
            ("pthread", "robust_head", Some(thread.robust_head)),
            ("pthread", "specific_1stblock", Some(thread.specific_first_block)),
            ("pthread", "specific", Some(thread.specific)),
            ("pthread", "report_events", Some(thread.report_events)),
            ("pthread", "user_stack", flag),
            ("pthread", "stack_mode", mode),
            ("pthread", "stackblock_size", Some(thread.stack_block_size)),
            ("pthread", "rseq_area", rseq),
        ],
    );
}
