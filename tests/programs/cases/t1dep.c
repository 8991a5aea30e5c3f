// The resolver's dependency: right only after its own relative relocation was applied.
static int value = 1;
int *value_pointer = &value;
int pick_hint(void) { return *value_pointer; }
