// Exceptions of a library by their base, thread_local objects of it in five threads. Exit 0 if all three were caught.
#include "cxa.hpp"
#include <cstdlib>
#include <iostream>
#include <thread>
#include <typeinfo>
#include <vector>
int main() {
    int caught = 0;
    for (int i = 1; i < 4; i++) {
        try {
            thrower(i);
        } catch (const std::exception &error) {
            std::cout << "caught " << error.what() << " " << typeid(error).name() << "\n";
            caught++;
        }
    }
    get_text() += "X";
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([i] {
            get_text() += std::to_string(i);
            try {
                thrower(7);
            } catch (const std::runtime_error &) {
                get_text() += "c";
            }
            if (get_text() != "tlsinit" + std::to_string(i) + "c") std::abort();
        });
    for (auto &thread : threads) thread.join();
    std::cout << get_text() << " n=" << caught << std::endl;
    return caught != 3;
}
