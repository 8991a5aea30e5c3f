// Definitions for libraries that do not name this one as needed.
int strong(void) { return 11; }
__attribute__((weak)) int weak(void) { return 12; }
int found(void) { return 13; }
