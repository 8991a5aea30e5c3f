// Functions for others to bind to, each the first time in another place.
#define ONE(n) int bound_##n(int value) { return value + n; }
#define TEN(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9)
TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6)
int provided(int value) { return value * 10; }
