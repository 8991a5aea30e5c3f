// The library of slot.c. `address_of_target` is resolved inside the library (the alias is hidden): the definition itself.
int target(int x) { return x + 1; }
extern int target_here(int) __attribute__((alias("target"), visibility("hidden")));
unsigned long address_of_target(void) { return (unsigned long)target_here; }
