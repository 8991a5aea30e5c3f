// 128 functions with names of two digits base 16; FUNCTIONS(X) expands X(n) for each.
#pragma once
#define ROW(X, h) X(h##0) X(h##1) X(h##2) X(h##3) X(h##4) X(h##5) X(h##6) X(h##7) \
                  X(h##8) X(h##9) X(h##a) X(h##b) X(h##c) X(h##d) X(h##e) X(h##f)
#define FUNCTIONS(X) ROW(X, 0) ROW(X, 1) ROW(X, 2) ROW(X, 3) ROW(X, 4) ROW(X, 5) ROW(X, 6) ROW(X, 7)
#define DECLARE(n) int many_##n(int);
FUNCTIONS(DECLARE)
