// A library with three versions of `f` (the default is V2) and one hidden version of `g`. Link with versions.map.
int f_base(void) { return 1; }
int f_second(void) { return 2; }
int f_third(void) { return 3; }
int g_first(void) { return 4; }
__asm__(".symver f_base, f@V1");
__asm__(".symver f_second, f@@V2");
__asm__(".symver f_third, f@V3");
__asm__(".symver g_first, g@V1");
int plain(void) { return 5; }
