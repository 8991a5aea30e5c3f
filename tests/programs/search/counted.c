/* A library that counts in the program how often a copy of it was initialised. -DFIRST=n and -DSECOND=n define its
   functions. */
extern int initialised;
__attribute__((constructor)) static void count(void) { initialised++; }
#ifdef FIRST
int first(void) { return FIRST; }
#endif
#ifdef SECOND
int second(void) { return SECOND; }
#endif
