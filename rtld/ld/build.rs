//! Link options of the artifact: an interpreter that needs nothing and that nothing can interpose.

fn main() {
    let options = [
        "-nostartfiles",
        "-nostdlib",
        "-Wl,-e,_start",
        "-Wl,-Bsymbolic",
        "-Wl,-z,now",
        "-Wl,-z,relro",
        "-Wl,-z,noexecstack",
        "-Wl,--no-undefined",
        "-Wl,--hash-style=both",
        "-Wl,--build-id=sha1",
        "-Wl,-soname,ld-elf.so.1",
    ];
    for option in options {
        println!("cargo:rustc-cdylib-link-arg={option}");
    }
    // What a start need not touch lies behind the data that it does.
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/late.ld");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-T,{script}");
    println!("cargo:rerun-if-changed=late.ld");
    println!("cargo:rerun-if-changed=build.rs");
}
