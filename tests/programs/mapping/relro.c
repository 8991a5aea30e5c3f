/* Writes where linkers put what is constant after relocation: in the program and, with -DLIBRARY, in a library. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static int target;

#ifdef LIBRARY
int *const library_constant[600] = { [0] = &target, [599] = &target };
int *library_variable = &target;
#else
int *const program_constant[600] = { [0] = &target, [599] = &target };
int *program_variable = &target;
extern int *const library_constant[600];
extern int *library_variable;

static sigjmp_buf recover;
static volatile sig_atomic_t armed;
static void on_signal(int number)
{
    if (!armed)
        _exit(3);
    armed = 0;
    siglongjmp(recover, number);
}

static void try(const char *name, int *const *place)
{
    if (sigsetjmp(recover, 1)) {
        printf("%s: SIGSEGV\n", name);
        return;
    }
    armed = 1;
    *(int *volatile *)place = 0;
    armed = 0;
    printf("%s: written\n", name);
}

int main(void)
{
    struct sigaction action = { .sa_handler = on_signal };
    sigaction(SIGSEGV, &action, 0);
    try("first constant of the program", &program_constant[0]);
    try("last constant of the program", &program_constant[599]);
    try("variable of the program", &program_variable);
    try("first constant of the library", &library_constant[0]);
    try("last constant of the library", &library_constant[599]);
    try("variable of the library", &library_variable);
    return 0;
}
#endif
