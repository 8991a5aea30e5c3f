//! What the benches of starting run: each program with its arguments, where Debian has it, and what our time divided by
//! ld-linux's must and should be (issue 7). Owns the list; measures nothing.

use rtld_suites::synthetic::Shape;

/// One row.
pub struct Program {
    /// The name that reports use.
    pub name: &'static str,
    /// Where the program comes from.
    pub origin: Origin,
    /// Arguments, with which it would end at once if its initialisers ran.
    pub arguments: &'static [&'static str],
    /// Environment beyond what every run gets.
    pub environment: &'static [(&'static str, &'static str)],
    /// The ratio that must hold, for the minima and for the median.
    pub must: f64,
    /// The ratio aimed at.
    pub aim: f64,
    /// Rounds for each round asked for: short runs need more of them.
    pub repeats: usize,
    /// One of the large programs, whose instructions are counted.
    pub large: bool,
}

/// Where a program comes from.
pub enum Origin {
    /// A file of this Debian package.
    File(&'static str, &'static str),
    /// The empty C program.
    Empty,
    /// A synthetic set.
    Synthetic(Shape),
}

const PLAIN: Program = Program {
    name: "",
    origin: Origin::Empty,
    arguments: &["--version"],
    environment: &[],
    must: 1.0,
    aim: 1.0,
    repeats: 1,
    large: false,
};

/// Every row, those that most machines have first.
pub const PROGRAMS: &[Program] = &[
    Program { name: "empty", arguments: &[], must: 0.80, aim: 0.60, repeats: 10, ..PLAIN },
    Program {
        name: "bash",
        origin: Origin::File("/bin/bash", "bash"),
        arguments: &["-c", ":"],
        must: 0.75,
        aim: 0.60,
        repeats: 10,
        ..PLAIN
    },
    Program { name: "git", origin: Origin::File("/usr/bin/git", "git"), must: 0.75, aim: 0.60, repeats: 10, ..PLAIN },
    Program {
        name: "python3 -S",
        origin: Origin::File("/usr/bin/python3", "python3-minimal"),
        arguments: &["-S", "-E", "-c", "pass"],
        must: 0.75,
        aim: 0.60,
        repeats: 10,
        ..PLAIN
    },
    Program {
        name: "certutil",
        origin: Origin::File("/usr/bin/certutil", "libnss3-tools"),
        arguments: &["-H"],
        must: 0.75,
        aim: 0.60,
        repeats: 10,
        ..PLAIN
    },
    Program {
        name: "100 x 200",
        origin: Origin::Synthetic(Shape { libraries: 100, symbols: 200 }),
        arguments: &[],
        must: 0.45,
        aim: 0.40,
        ..PLAIN
    },
    Program {
        name: "500 x 200",
        origin: Origin::Synthetic(Shape { libraries: 500, symbols: 200 }),
        arguments: &[],
        must: 0.25,
        aim: 0.20,
        ..PLAIN
    },
    Program { name: "gdb", origin: Origin::File("/usr/bin/gdb", "gdb"), must: 0.80, aim: 0.72, repeats: 2, ..PLAIN },
    Program {
        name: "qemu",
        origin: Origin::File("/usr/bin/qemu-system-x86_64", "qemu-system-x86"),
        must: 0.80,
        aim: 0.72,
        repeats: 2,
        ..PLAIN
    },
    Program { name: "clang-14", origin: CLANG, must: 1.0, aim: 0.95, large: true, ..PLAIN },
    Program {
        name: "clang-14 THP",
        origin: CLANG,
        environment: &[("LD_THP", "1048576")],
        must: 0.75,
        aim: 0.70,
        ..PLAIN
    },
    Program {
        name: "soffice.bin",
        origin: Origin::File("/usr/lib/libreoffice/program/soffice.bin", "libreoffice-writer-nogui"),
        arguments: &["--headless", "--version"],
        must: 0.65,
        aim: 0.58,
        large: true,
        ..PLAIN
    },
    Program {
        name: "inkscape",
        origin: Origin::File("/usr/bin/inkscape", "inkscape"),
        must: 0.60,
        aim: 0.50,
        large: true,
        ..PLAIN
    },
    Program {
        name: "ffmpeg",
        origin: Origin::File("/usr/bin/ffmpeg", "ffmpeg"),
        arguments: &["-version"],
        must: 0.50,
        aim: 0.42,
        large: true,
        ..PLAIN
    },
    Program {
        name: "WebKit",
        origin: Origin::File("/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/WebKitWebProcess", "libwebkit2gtk-4.1-0"),
        arguments: &[],
        must: 0.55,
        aim: 0.50,
        large: true,
        ..PLAIN
    },
    Program { name: "blender", origin: Origin::File("/usr/bin/blender", "blender"), must: 0.45, aim: 0.38, ..PLAIN },
];

const CLANG: Origin = Origin::File("/usr/lib/llvm-14/bin/clang", "clang-14");

/// The packages that the rows need.
pub fn packages() -> Vec<&'static str> {
    let package = |program: &Program| match program.origin {
        Origin::File(_, package) => Some(package),
        _ => None,
    };
    let mut packages: Vec<_> = PROGRAMS.iter().filter_map(package).collect();
    packages.dedup();
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_can_miss_and_aims_higher_than_it_must() {
        for program in PROGRAMS {
            assert!(program.aim < program.must && program.must <= 1.0, "{}", program.name);
            assert!(program.repeats > 0);
        }
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<_> = PROGRAMS.iter().map(|program| program.name).collect();
        assert_eq!(names.len(), PROGRAMS.len());
    }
}
