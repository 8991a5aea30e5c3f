/* f() in one or several versions: -DONLY=n one function whose version the version script gives; -DHIDDEN a version that is
   not the default; -DTWO and -DTHREE several. The number answered is the version's. */
#ifdef USES_LIBC
#include <stdlib.h>
void *use(void) { return getenv("HOME"); }
#endif
#ifdef ONLY
int f(void) { return ONLY; }
#else
int f_1(void) { return 1; }
__asm__(".symver f_1, f@V1");
#ifdef TWO
int f_2(void) { return 2; }
__asm__(".symver f_2, f@@V2");
#endif
#ifdef TWO_HIDDEN
int f_2(void) { return 2; }
__asm__(".symver f_2, f@V2");
#endif
#ifdef THREE
int f_2(void) { return 2; }
__asm__(".symver f_2, f@V2");
int f_3(void) { return 3; }
__asm__(".symver f_3, f@@V3");
#endif
#endif
