// A part that is linked into the program and into a plug-in: state that each of them may own or share.
static int count;
int next_count(void) { return ++count; }
int *count_place(void) { return &count; }
