// A frame between; loaded at run time, also a constructor that is called from dlopen.
void frames(void) __attribute__((weak));

__attribute__((noinline)) void library_call(void (*function)(void)) {
    function();
    __asm__ volatile(""); // no tail call: the frame stays
}

#ifdef PLUGIN
__attribute__((constructor)) void plugin_constructor(void) {
    if (frames)
        frames();
    __asm__ volatile("");
}
#endif
