// With -DDEFINES: a library that defines `f` in version VERSION by the map given. Without: one that needs it.
#ifdef DEFINES
int f(void) { return 1; }
#else
int f(void);
int call_f(void) { return f(); }
#endif
