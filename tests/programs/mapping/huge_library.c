/* A library whose writable segment is 3 MiB of data and as much of zeros, with addresses in it that must be relocated. */
#define WORDS (3 << 17)

unsigned long numbers[WORDS] = { [0 ... WORDS - 1] = 0x1122334455667788 };
unsigned long zeros[WORDS];
unsigned long *addresses[] = { numbers, &numbers[WORDS - 1], zeros, &zeros[WORDS - 1] };
