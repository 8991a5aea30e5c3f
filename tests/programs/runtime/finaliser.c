// A library whose destructor calls what the program gave it, while the library is being closed.
void (*at_end)(void);
int calls;
int call(void) { return ++calls; }
__attribute__((destructor)) static void ends(void) {
    if (at_end) at_end();
}
