// Linked with an undefined function on purpose (the linker's default for shared objects).
int nobody_defines_this(void);
int use(int call) { return call ? nobody_defines_this() : 7; }
