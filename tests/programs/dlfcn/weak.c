// A plug-in with a weak definition and an undefined weak reference.
__attribute__((weak)) int maybe(void) { return 1; }
extern int absent(void) __attribute__((weak));
extern int absent_value __attribute__((weak));
int call_maybe(void) { return maybe(); }
int has_absent(void) { return absent != 0; }
int has_absent_value(void) { return &absent_value != 0; }
