/* What the program copies: plain data, pointers to the library's own functions and data, a pointer into the copied object itself, an alias,
   and objects whose size the program may know differently (LARGER and SMALLER). */
struct entry { int (*function)(int); const char *name; };

static int twice(int value) { return 2 * value; }
static int thrice(int value) { return 3 * value; }

int copied_number = 11;
const struct entry copied_table[] = { { twice, "twice" }, { thrice, "thrice" } };
int copied_array[4] = { 1, 2, 3, 4 };
int *copied_pointer = &copied_array[2];
struct chain { struct chain *self; int value; } copied_chain = { &copied_chain, 5 };
int copied_zero[1000];

int original = 21;
extern int alias_of_original __attribute__((weak, alias("original")));

#ifdef SIZES
int sized[SIZES] = { 1, 2, 3, 4 };
int behind_sized = 99;
#endif

/* The library reads through its GOT: after the program has its copies, it must see those. */
int library_sees(void) { return copied_number + copied_array[0] + copied_chain.self->value + original; }
int *library_address_of_array(void) { return copied_array; }
void library_sets(int value) { copied_number = value; original = value + 1; copied_zero[999] = value + 2; }
