// Throws what it is given; its frames need unwinding tables of its own.
struct Guard {
    int *place;
    ~Guard() { ++*place; }
};
static int guarded;
extern "C" void followed(int number) {
    Guard guard{&guarded};
    throw number;
}
