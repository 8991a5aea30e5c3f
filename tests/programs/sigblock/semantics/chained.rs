// Rust's own handler of SIGSEGV and SIGBUS: a deep recursion is told from any other fault.
use std::hint::black_box;

fn deep(depth: u64) -> u64 {
    let filling = black_box([depth; 512]);
    if black_box(depth) == u64::MAX { 0 } else { deep(depth + 1) + filling[7] }
}

fn main() {
    let which = std::env::args().nth(1).unwrap_or_default();
    println!("{which}");
    match which.as_str() {
        "thread" => {
            let thread = std::thread::Builder::new().name("deep".to_owned()).spawn(|| deep(0)).unwrap();
            println!("{:?}", thread.join().is_ok());
        }
        "main" => println!("{}", deep(0)),
        // SAFETY: none: the fault is the purpose.
        "fault" => unsafe { black_box(16 as *mut u8).write_volatile(1) },
        _ => {
            let caught = std::panic::catch_unwind(|| panic!("on purpose")).is_err();
            println!("caught {caught}");
        }
    }
}
