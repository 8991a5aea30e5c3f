/* A library that needs another one: -DNAME=f names its function, -DNEXT=g the one that it asks. */
int NEXT(void);
int NAME(void) { return NEXT(); }
