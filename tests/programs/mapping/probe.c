/* Looks into the mapped library that defines `anchor`. Usage: probe ANCHOR COMMAND..., ANCHOR being the symbol's link-time value.
   Numbers in commands are hexadecimal link-time addresses of that library, one line of output a command:
     r:ADDRESS[:WIDTH]  the number there (8 bytes unless told), as base+0x... if it points into the library
     w:ADDRESS          "written" or the signal that a store of one byte got
     c:ADDRESS          what the function there returns
     p:START:END        the runs of pages with equal permissions; unmapped and PROT_NONE are both "---"
     z:START:END        the number of bytes that are not zero
     a:ALIGNMENT        the library's base modulo ALIGNMENT */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char anchor[];

/* For libraries that refer back to the program. */
int probe_answer(void) { return 42; }
char probe_object[24] = "object of the program";

/* A signal anywhere but in an access that was asked for ends the probe. */
static sigjmp_buf recover;
static volatile sig_atomic_t armed;
static void on_signal(int number)
{
    if (!armed)
        _exit(3);
    armed = 0;
    siglongjmp(recover, number);
}
/* The signal that `access` gets, or 0. */
#define TRY(access) ({ int number_ = sigsetjmp(recover, 1); if (!number_) { armed = 1; access; armed = 0; } number_; })

static unsigned char *base;

static const char *name_of(int number) { return number == SIGSEGV ? "SIGSEGV" : "SIGBUS"; }

static void read_number(unsigned long address, int width)
{
    static volatile unsigned long value;
    value = 0;
    int number = TRY(for (int i = 0; i < width; i++)
        value |= (unsigned long)((volatile unsigned char *)base)[address + i] << (8 * i));
    if (number)
        printf("r %lx: %s\n", address, name_of(number));
    else if (value == (unsigned long)probe_answer)
        printf("r %lx: probe_answer\n", address);
    else if (value - (unsigned long)probe_object < sizeof probe_object)
        printf("r %lx: probe_object+%ld\n", address, value - (unsigned long)probe_object);
    else if (width == 8 && value - (unsigned long)base < 0x40000000)
        printf("r %lx: base+0x%lx\n", address, value - (unsigned long)base);
    else
        printf("r %lx: 0x%lx\n", address, value);
}

static void write_byte(unsigned long address)
{
    int number = TRY(*(volatile unsigned char *)(base + address) = 1);
    printf("w %lx: %s\n", address, number ? name_of(number) : "written");
}

static void call(unsigned long address)
{
    static volatile int result;
    int number = TRY(result = ((int (*)(void))(base + address))());
    if (number)
        printf("c %lx: %s\n", address, name_of(number));
    else
        printf("c %lx: %d\n", address, result);
}

static void count_nonzero(unsigned long start, unsigned long end)
{
    static volatile long count;
    count = 0;
    int number = TRY(for (unsigned long at = start; at < end; at++)
        count += ((volatile unsigned char *)base)[at] != 0);
    if (number)
        printf("z %lx-%lx: %s\n", start, end, name_of(number));
    else
        printf("z %lx-%lx: %ld\n", start, end, count);
}

static void permission_at(unsigned long address, char permission[4])
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], found[8];
    unsigned long start, end;
    strcpy(permission, "---");
    if (!maps)
        abort();
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %4s", &start, &end, found) == 3 && start <= address && address < end)
            memcpy(permission, found, 3);
    fclose(maps);
}

static void permissions(unsigned long start, unsigned long end)
{
    char current[4] = "", next[4];
    printf("p");
    for (unsigned long at = start; at < end; at += 0x1000) {
        permission_at((unsigned long)base + at, next);
        if (strcmp(current, next))
            printf(" %lx:%s", at, next);
        strcpy(current, next);
    }
    printf(" %lx\n", end);
}

int main(int argc, char **argv)
{
    struct sigaction action = { .sa_handler = on_signal };
    sigaction(SIGSEGV, &action, 0);
    sigaction(SIGBUS, &action, 0);
    base = (unsigned char *)anchor - strtoul(argv[1], 0, 16);
    for (int i = 2; i < argc; i++) {
        char *rest = argv[i] + 1 + (argv[i][1] == ':');
        unsigned long first = strtoul(rest, &rest, 16);
        unsigned long second = *rest ? strtoul(rest + 1, 0, 16) : 0;
        switch (argv[i][0]) {
        case 'r': read_number(first, second ? (int)second : 8); break;
        case 'w': write_byte(first); break;
        case 'c': call(first); break;
        case 'p': permissions(first, second); break;
        case 'z': count_nonzero(first, second); break;
        case 'a': printf("a %lx: 0x%lx\n", first, (unsigned long)base % first); break;
        default: printf("unknown command %s\n", argv[i]); return 2;
        }
    }
    return 0;
}
