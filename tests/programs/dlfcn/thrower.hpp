// The exception type that the plug-in and the program share; its key function lies in the plug-in.
#include <stdexcept>
struct Failure : std::exception {
    int number;
    explicit Failure(int number) : number(number) {}
    ~Failure() override;
    const char *what() const noexcept override { return "failure"; }
};
