// What UndefinedBehaviorSanitizer finds, or does not: the argument says which.
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>

struct Base {
    virtual ~Base() {}
    virtual int value() { return 1; }
};
struct Derived : Base {
    int value() override { return 2; }
};
struct Other : Base {
    int value() override { return 3; }
};

int main(int count, char **arguments) {
    std::string mode = count > 1 ? arguments[1] : "clean";
    volatile int number = count;
    if (mode == "clean") {
        Derived derived;
        Base &base = derived;
        std::printf("clean %d\n", base.value() + number);
    } else if (mode == "overflow") {
        number = INT_MAX;
        number = number + 1;
    } else if (mode == "shift") {
        number = 1 << (number + 40);
    } else if (mode == "bounds") {
        int values[4] = {};
        number = values[number + 4];
    } else if (mode == "division") {
        number = number / (number - count);
    } else if (mode == "vptr") {
        Other other;
        Derived *derived = static_cast<Derived *>(static_cast<Base *>(&other));
        number = derived->value();
    }
}
