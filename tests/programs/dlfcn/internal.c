// What libc loads by itself: character set converters, name services, libgcc_s for backtrace and cancellation.
#define _GNU_SOURCE
#include <execinfo.h>
#include <grp.h>
#include <iconv.h>
#include <locale.h>
#include <netdb.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "report.h"

static void convert(const char *charset) {
    iconv_t converter = iconv_open(charset, "UTF-8");
    if (converter == (iconv_t)-1) {
        printf("iconv %s: none\n", charset);
        return;
    }
    char text[] = "\xd0\x96 z\xc3\xbc", *in = text;
    unsigned char result[64];
    char *out = (char *)result;
    size_t left = strlen(text), room = sizeof result;
    long status = (long)iconv(converter, &in, &left, &out, &room);
    printf("iconv %s: %ld", charset, status);
    for (unsigned char *byte = result; byte < (unsigned char *)out; byte++) printf(" %02x", *byte);
    printf("\n");
    iconv_close(converter);
}

static void *sleeper(void *unused) {
    for (;;) pause();
    return unused;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    static const char *const charsets[] = {"UTF-7", "UTF-16", "UTF-32LE", "ISO-8859-5", "KOI8-R", "CP1251", "EUC-JP", "SHIFT_JIS", "GB18030", "IBM866", "NOSUCH"};
    for (int round = 0; round < 2; round++)
        for (unsigned i = 0; i < sizeof charsets / sizeof *charsets; i++) convert(charsets[i]);
    struct passwd *user = getpwnam("root");
    printf("root %d", user ? (int)user->pw_uid : -1);
    printf(", nobody %d\n", getpwnam("no-such-user") == NULL);
    struct group *group = getgrgid(0);
    printf("group %s\n", group ? group->gr_name : "missing");
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *list = NULL;
    int status = getaddrinfo("localhost", "80", &hints, &list);
    printf("localhost %d %s\n", status, status ? gai_strerror(status) : inet_ntoa(((struct sockaddr_in *)list->ai_addr)->sin_addr));
    struct protoent *protocol = getprotobyname("tcp");
    printf("tcp %d\n", protocol ? protocol->p_proto : -1);
    printf("locale %s\n", setlocale(LC_ALL, "C.UTF-8"));
    void *frames[16];
    int depth = backtrace(frames, 16);
    char **names = backtrace_symbols(frames, depth);
    printf("backtrace %d, main named %d\n", depth >= 2, names && strstr(names[0], "main") != NULL);
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, NULL, sleeper, NULL);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancelled %d, libgcc_s %d\n", result == PTHREAD_CANCELED, mapped("libgcc_s.so.1"));
    return 0;
}
