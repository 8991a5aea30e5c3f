/* Thread-local variables of a library: exported, hidden and static ones, reached by the model the compiler flags choose. */
__thread int exported = 3;
__thread int exported_zero;
__attribute__((visibility("hidden"))) __thread int hidden = 5;
static __thread int own[100] = { 1, [99] = 7 };

int *library_exported(void) { return &exported; }
int library_sum(void) { return exported + exported_zero + hidden + own[0] + own[99]; }
void library_add(int value) { exported += value; exported_zero += value; hidden += value; own[99] += value; }
