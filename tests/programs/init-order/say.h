// One line to standard output by a bare system call: it works in constructors that run before the C library's, in
// destructors that run after stdio is gone, and in programs without any C library.
#pragma once
static inline __attribute__((always_inline, unused)) void say_bytes(const char *text, unsigned long length) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(1L), "D"(1L), "S"(text), "d"(length) : "rcx", "r11", "memory");
}
#define SAY(text) say_bytes(text "\n", sizeof(text "\n") - 1)
#define STRING2(x) #x
#define STRING(x) STRING2(x)
