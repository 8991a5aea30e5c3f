// Exceptions from a pool of each thread: the C++ library's allocation replaced (Itanium C++ ABI 2.4.2), so that a handler that
// throws takes no lock of malloc, and a hang can only be the loader's. A slot is taken by one exchange, so that a
// handler may come at any point. free() is replaced too: libc++abi calls it directly.
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {
// A slot: room for the ABI's header (128 bytes) before the object.
constexpr std::size_t HEADER = 256, OBJECT = 256, SLOTS = 32;
struct slot { alignas(16) unsigned char header[HEADER], object[OBJECT]; };
struct pool { slot slots[SLOTS]; bool taken[SLOTS]; };
thread_local pool mine;

void *take(std::size_t size) noexcept {
    if (size > OBJECT) std::abort();
    for (std::size_t i = 0; i < SLOTS; i++) {
        if (__atomic_exchange_n(&mine.taken[i], true, __ATOMIC_ACQUIRE)) continue;
        std::memset(&mine.slots[i], 0, sizeof(slot));
        return mine.slots[i].object;
    }
    std::abort();
}

// Whether the address, of an object or of its header, was the pool's and is free now.
bool give_back(void *address) noexcept {
    auto at = static_cast<unsigned char *>(address), first = mine.slots[0].header;
    if (at < first || at >= first + sizeof mine.slots) return false;
    __atomic_store_n(&mine.taken[static_cast<std::size_t>(at - first) / sizeof(slot)], false, __ATOMIC_RELEASE);
    return true;
}
} // namespace

extern "C" {
void __libc_free(void *);
void *__cxa_allocate_exception(std::size_t size) noexcept { return take(size); }
void *__cxa_allocate_dependent_exception() noexcept { return take(OBJECT); }
void __cxa_free_exception(void *object) noexcept {
    if (!give_back(object)) std::abort();
}
void __cxa_free_dependent_exception(void *object) noexcept {
    if (!give_back(object)) std::abort();
}
void free(void *address) noexcept {
    if (!give_back(address)) __libc_free(address);
}
}
