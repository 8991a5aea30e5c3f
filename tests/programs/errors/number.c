/* -DFUNCTION=f returns -DNUMBER=n; -DDATA=v is a variable. */
int FUNCTION(void) { return NUMBER; }
#ifdef DATA
int DATA = NUMBER;
#endif
