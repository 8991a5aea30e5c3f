// A C++ program with an exception, a thread and a container: compiled, linked and run by suite `system`.
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

static std::map<std::string, int> words;

static void count(const std::string &word) {
    if (word.empty())
        throw std::invalid_argument("no word");
    ++words[word];
}

int main() {
    std::thread counter([] {
        for (const char *word : {"one", "two", "two"})
            count(word);
    });
    counter.join();
    try {
        count("");
    } catch (const std::exception &error) {
        std::cout << "caught: " << error.what() << "\n";
    }
    for (const auto &[word, number] : words)
        std::cout << word << " " << number << "\n";
}
