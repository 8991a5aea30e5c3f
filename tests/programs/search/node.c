/* A node of a dependency graph: -DNODE=name defines a function of that name, nothing else. */
#define JOIN(a, b) a##b
#define NAME(node) JOIN(node_, node)
int NAME(NODE)(void) { return 1; }
