/* Preloaded, it is the first initialiser (DF_1_INITFIRST, by -z initfirst) and ends the process there: what is timed is the
   loader's work, whatever the program would do. Needs no library. */
__attribute__((constructor)) static void leave(void) {
    __asm__ volatile("syscall" ::"a"(231 /* exit_group */), "D"(0) : "rcx", "r11", "memory");
    __builtin_unreachable();
}
