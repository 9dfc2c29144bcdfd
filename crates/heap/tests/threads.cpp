// Threads, one after the other and all of them there to the end, that each take small pieces of
// memory until there is no more, or until they have as many MiB as they were told. Usage: threads
// NUMBER MIB FILE; the file gets what each thread had, in MiB.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

static unsigned long taken(unsigned long most) {
    const size_t piece = 4096;
    unsigned long pieces = 0;
    while (pieces < most * 256) {
        void *memory = std::malloc(piece);
        if (memory == nullptr) break;
        std::memset(memory, 1, piece);
        pieces++;
    }
    return pieces / 256;
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    std::FILE *file = std::fopen(arguments[3], "w");
    if (file == nullptr) return 3;
    // What standard input and output need is there before memory runs out.
    std::setvbuf(file, nullptr, _IONBF, 0);
    const int threads = std::atoi(arguments[1]);
    const unsigned long most = std::strtoul(arguments[2], nullptr, 10);
    static unsigned long had[16];
    static char line[32];
    for (int i = 0; i < threads && i < 16; i++) {
        std::thread thread([i, most] { had[i] = taken(most); });
        thread.join();
    }
    for (int i = 0; i < threads && i < 16; i++) {
        std::snprintf(line, sizeof line, "%lu\n", had[i]);
        std::fputs(line, file);
    }
    return 0;
}
