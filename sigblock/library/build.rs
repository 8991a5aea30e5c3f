//! Link options of libsigblock.so. Handlers of ours stay with the kernel, so that it can never be unloaded.

fn main() {
    let options = [
        "-Wl,-soname,libsigblock.so",
        "-Wl,-Bsymbolic-functions",
        "-Wl,-z,nodelete",
        "-Wl,-z,now",
        "-Wl,-z,relro",
        "-Wl,-z,noexecstack",
        "-Wl,--no-undefined",
        "-Wl,--hash-style=gnu",
        "-Wl,--build-id=sha1",
    ];
    for option in options {
        println!("cargo:rustc-cdylib-link-arg={option}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
