// Prints whether large copies and fills work: thresholds of memcpy and memset come from tunables, and zero would be wrong.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    static const size_t sizes[] = {1, 31, 64, 200, 4096, 70000, 3000000, 40000000};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i];
        unsigned char *from = malloc(size), *to = calloc(1, size);
        if (!from || !to) return 2;
        for (size_t j = 0; j < size; j++) from[j] = (unsigned char)(j * 31 + j / 251);
        memcpy(to, from, size);
        int right = !memcmp(to, from, size);
        for (size_t j = 0; j < size; j++) right &= to[j] == (unsigned char)(j * 31 + j / 251);
        memset(to, 7, size);
        for (size_t j = 0; j < size; j++) right &= to[j] == 7;
        printf("%zu %s\n", size, right ? "right" : "wrong");
        free(from);
        free(to);
    }
    return 0;
}
