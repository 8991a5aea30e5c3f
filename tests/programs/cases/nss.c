// What libc finds and opens in one pass: locales, name services, converters, libm by dlopen, backtrace, dl_iterate_phdr, the
// auxiliary vector, dladdr, system.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <grp.h>
#include <iconv.h>
#include <link.h>
#include <locale.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/socket.h>

static int count(struct dl_phdr_info *info, size_t size, void *number) {
    (void)info, (void)size;
    ++*(int *)number;
    return 0;
}

int main(void) {
    const char *locale = setlocale(LC_ALL, "C.UTF-8");
    printf("setlocale %s\n", locale ? locale : "(null)");
    locale = setlocale(LC_ALL, "en_US.UTF-8");
    printf("setlocale en %s\n", locale ? locale : "(null)");
    struct addrinfo *list;
    int status = getaddrinfo("localhost", "80", NULL, &list);
    printf("localhost %d %s\n", status, status ? gai_strerror(status) : inet_ntoa(((struct sockaddr_in *)list->ai_addr)->sin_addr));
    struct passwd *user = getpwnam("root");
    printf("user %s\n", user ? user->pw_dir : "-");
    struct group *group = getgrgid(0);
    printf("group %s\n", group ? group->gr_name : "-");
    printf("no user %d\n", getpwnam("nosuchuser_x") == NULL);
    static const char *const charsets[] = {"ISO-8859-1", "UTF-16", "EUC-JP", "SHIFT_JIS", "KOI8-R", "CP1252", "BIG5"};
    for (unsigned i = 0; i < sizeof charsets / sizeof *charsets; i++) {
        iconv_t converter = iconv_open(charsets[i], "UTF-8");
        if (converter == (iconv_t)-1) {
            printf("iconv %s missing\n", charsets[i]);
            continue;
        }
        char text[] = "\xd0\x96", result[16], *in = text, *out = result;
        size_t left = 2, room = sizeof result;
        long converted = (long)iconv(converter, &in, &left, &out, &room);
        printf("iconv %s %ld out=%zu\n", charsets[i], converted, sizeof result - room);
        iconv_close(converter);
    }
    printf("no converter %d\n", iconv_open("NOSUCH", "UTF-8") == (iconv_t)-1);
    void *handle = dlopen("libm.so.6", RTLD_NOW);
    if (!handle) return 1;
    double (*cosine)(double) = (double (*)(double))dlsym(handle, "cos");
    printf("cos %f\n", cosine(1.0));
    printf("nosuch %d\n", dlsym(handle, "nosuch") == NULL);
    printf("error %s\n", dlerror());
    handle = dlopen("libnosuch.so", RTLD_NOW);
    printf("missing %d %s\n", handle == NULL, dlerror());
    void *frames[10];
    int depth = backtrace(frames, 10), objects = 0;
    char **names = backtrace_symbols(frames, depth);
    printf("backtrace %d %d\n", depth >= 2, names && names[1]);
    dl_iterate_phdr(count, &objects);
    printf("objects %d, page %lu\n", objects >= 4, getauxval(AT_PAGESZ));
    Dl_info found = {0};
    int known = dladdr(dlsym(RTLD_DEFAULT, "printf"), &found);
    printf("dladdr %d %s\n", known, known ? found.dli_sname : "-");
    printf("system %d\n", system("true"));
    return 0;
}
