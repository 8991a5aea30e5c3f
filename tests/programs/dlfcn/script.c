// Runs a script of dlfcn calls, one line an argument, and prints a transcript. Link with -rdynamic. Handles are named by one
// word; `default` and `next` are RTLD_DEFAULT and RTLD_NEXT, `null` is NULL, `stack` a pointer to no object, `map:FILE` the
// link map of an object that is loaded already.
//   open H FILE MODES    dlopen; FILE - is NULL; MODES lazy now global local noload nodelete deepbind none, joined by +
//   same H H             whether two handles are equal
//   sym H NAME           dlsym; the object that the result lies in, by dladdr
//   call H NAME          dlsym and a call as int (void)
//   text H NAME          dlsym and a call as const char *(void)
//   ask H NAME ARGUMENT  dlsym and a call as const char *(const char *)
//   get H NAME           dlsym and a read of an int;   put H NAME N   a write
//   version H NAME V     dlvsym and a call as int (void)
//   close H              dlclose
//   error                dlerror
//   origin H             dlinfo RTLD_DI_ORIGIN
//   mapped NAME          whether /proc/self/maps shows a file of this name
//   namespace H FILE     dlmopen in a new namespace;   base H FILE   dlmopen in the base namespace
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report.h"

enum { HANDLES = 32 };
static struct {
    char name[32];
    void *handle;
} handles[HANDLES];

// What the program itself defines, for libraries that define or use the same names.
int which(void) { return 1; }
int only_program(void) { return 100; }

static void *handle(const char *name) {
    if (!strcmp(name, "default")) return RTLD_DEFAULT;
    if (!strcmp(name, "next")) return RTLD_NEXT;
    if (!strcmp(name, "null")) return NULL;
    if (!strcmp(name, "stack")) {
        static char nothing[2048];
        return nothing;
    }
    if (!strncmp(name, "map:", 4))
        for (struct link_map *map = _r_debug.r_map; map; map = map->l_next)
            if (!strcmp(base(map->l_name), name + 4)) return map;
    for (int i = 0; i < HANDLES; i++)
        if (!strcmp(handles[i].name, name)) return handles[i].handle;
    printf("no handle %s\n", name);
    exit(2);
}

static void keep(const char *name, void *value) {
    for (int i = 0; i < HANDLES; i++)
        if (!handles[i].name[0] || !strcmp(handles[i].name, name)) {
            snprintf(handles[i].name, sizeof handles[i].name, "%s", name);
            handles[i].handle = value;
            return;
        }
    exit(2);
}

static int modes(char *words) {
    static const struct {
        const char *name;
        int flag;
    } known[] = {{"lazy", RTLD_LAZY},         {"now", RTLD_NOW},           {"global", RTLD_GLOBAL},     {"local", RTLD_LOCAL}, {"noload", RTLD_NOLOAD},
                 {"nodelete", RTLD_NODELETE}, {"deepbind", RTLD_DEEPBIND}, {"none", 0}};
    int flags = 0;
    for (char *word = strtok(words, "+"); word; word = strtok(NULL, "+")) {
        unsigned i = 0;
        while (i < sizeof known / sizeof *known && strcmp(known[i].name, word)) i++;
        if (i == sizeof known / sizeof *known) {
            printf("no mode %s\n", word);
            exit(2);
        }
        flags |= known[i].flag;
    }
    return flags;
}

static void opened(const char *name, void *value) {
    keep(name, value);
    if (value)
        printf("%s opened\n", name);
    else
        printf("%s not opened: %s\n", name, error_text());
}

// A symbol, or NULL after a line about the error.
static void *symbol(const char *from, const char *name) {
    dlerror();
    void *address = dlsym(handle(from), name);
    if (!address) printf("%s\n", error_text());
    return address;
}

static void step(char *line) {
    char *end = NULL;
    char *command = strtok_r(line, " ", &end), *first = strtok_r(NULL, " ", &end), *second = strtok_r(NULL, " ", &end), *third = strtok_r(NULL, " ", &end);
    void *address;
    if (!strcmp(command, "open"))
        opened(first, dlopen(strcmp(second, "-") ? second : NULL, modes(third)));
    else if (!strcmp(command, "namespace"))
        opened(first, dlmopen(LM_ID_NEWLM, second, RTLD_NOW));
    else if (!strcmp(command, "base"))
        opened(first, dlmopen(LM_ID_BASE, second, RTLD_NOW));
    else if (!strcmp(command, "same"))
        printf("%s\n", handle(first) == handle(second) ? "same" : "different");
    else if (!strcmp(command, "sym")) {
        if ((address = symbol(first, second))) printf("%s in %s\n", second, object_of(address));
    } else if (!strcmp(command, "call")) {
        if ((address = symbol(first, second))) printf("%s %d\n", second, ((int (*)(void))address)());
    } else if (!strcmp(command, "text")) {
        if ((address = symbol(first, second))) printf("%s %s\n", second, ((const char *(*)(void))address)());
    } else if (!strcmp(command, "ask")) {
        if ((address = symbol(first, second))) printf("%s\n", ((const char *(*)(const char *))address)(third));
    } else if (!strcmp(command, "get")) {
        if ((address = symbol(first, second))) printf("%s %d\n", second, *(int *)address);
    } else if (!strcmp(command, "put")) {
        if ((address = symbol(first, second))) *(int *)address = atoi(third);
    } else if (!strcmp(command, "version")) {
        dlerror();
        if ((address = dlvsym(handle(first), second, third)))
            printf("%s@%s %d\n", second, third, ((int (*)(void))address)());
        else
            printf("%s\n", error_text());
    } else if (!strcmp(command, "close")) {
        dlerror();
        if (dlclose(handle(first)))
            printf("%s not closed: %s\n", first, error_text());
        else
            printf("%s closed\n", first);
    } else if (!strcmp(command, "error"))
        printf("error %s\n", error_text());
    else if (!strcmp(command, "origin")) {
        char origin[4096] = "(none)";
        int status = dlinfo(handle(first), RTLD_DI_ORIGIN, origin);
        printf("origin %s\n", status ? error_text() : origin);
    } else if (!strcmp(command, "mapped"))
        printf("%s %s\n", first, mapped(first) ? "mapped" : "not mapped");
    else {
        printf("no command %s\n", command);
        exit(2);
    }
}

int main(int count, char **lines) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < count; i++) step(lines[i]);
    printf("end\n");
    return 0;
}
