/* The smallest definition: -DFUNCTION=f returns -DNUMBER=n; -DWEAK makes it weak; -DCALLER=g adds a function that calls it
   through the procedure linkage table; -DDATA=v adds an int of that name with the same number. */
#ifdef WEAK
__attribute__((weak))
#endif
int FUNCTION(void) { return NUMBER; }
#ifdef CALLER
int CALLER(void) { return FUNCTION(); }
int (*address_of_function(void))(void) { return FUNCTION; }
#endif
#ifdef DATA
int DATA = NUMBER;
int *address_of_data(void) { return &DATA; }
#endif
