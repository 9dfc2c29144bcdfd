// What ordinary programs do to memory, threads and processes; exits with the line of what went
// wrong.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#define CHECK(what) \
    if (!(what)) { std::fprintf(stderr, "line %d: %s\n", __LINE__, #what); std::_Exit(1); }

static int global = 5;
static std::string text = "a string that is too long to be kept within its object";

static int deep(int depth) {
    volatile char room[1024];
    std::memset(const_cast<char *>(room), depth & 0xff, sizeof room);
    return depth == 0 ? 0 : deep(depth - 1) + (room[5] == static_cast<char>(depth & 0xff));
}

static void *exits(void *argument) {
    deep(100);
    pthread_exit(argument);
}

static void *waits(void *) {
    for (;;) usleep(1000);
}

// A child sees what was, and changes nothing here; from whatever stack it is made.
static void fork_here() {
    int local = 1;
    std::vector<int> heap(20000, 3);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        bool fine = local == 1 && global == 5 && heap[19999] == 3 && text.size() > 20;
        local = 2, global = 6, heap.assign(30000, 4), text = "changed";
        fine = fine && deep(60) == 60;
        std::_Exit(fine ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(local == 1 && global == 5 && heap.size() == 20000 && heap[7] == 3 && text.size() > 20);
}

static void mappings() {
    const size_t page = 4096, size = 100 * page;
    char *at = static_cast<char *>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(at != MAP_FAILED);
    for (size_t i = 0; i < size; i++) CHECK(at[i] == 0);
    std::memset(at, 1, size);
    CHECK(munmap(at + 10 * page, 30 * page) == 0);
    CHECK(at[0] == 1 && at[10 * page - 1] == 1 && at[40 * page] == 1);
    CHECK(mprotect(at, page, PROT_READ) == 0 && at[5] == 1);
    CHECK(mprotect(at, page, PROT_READ | PROT_WRITE) == 0);
    CHECK(madvise(at + 50 * page, page, MADV_DONTNEED) == 0);
    CHECK(at[50 * page] == 0 && at[51 * page] == 1);
    char *moved =
        static_cast<char *>(mremap(at + 40 * page, 60 * page, 200 * page, MREMAP_MAYMOVE));
    CHECK(moved != MAP_FAILED && moved[0] == 1 && moved[10 * page] == 0 && moved[59 * page] == 1);
    CHECK(moved[199 * page] == 0);
    CHECK(munmap(moved, 200 * page) == 0 && munmap(at, 10 * page) == 0);
    at = static_cast<char *>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(at != MAP_FAILED);
    for (size_t i = 0; i < size; i++) CHECK(at[i] == 0);
    CHECK(mprotect(at + page, page, PROT_NONE) == 0);
    fork_here();
    CHECK(munmap(at, size) == 0);
}

int main() {
    CHECK(deep(6000) == 6000);
    for (int i = 0; i < 40; i++) {
        pthread_t thread;
        void *result = nullptr;
        CHECK(pthread_create(&thread, nullptr, exits, &global) == 0);
        CHECK(pthread_join(thread, &result) == 0 && result == &global);
    }
    pthread_t waiting;
    void *result = nullptr;
    CHECK(pthread_create(&waiting, nullptr, waits, nullptr) == 0);
    fork_here();
    CHECK(pthread_cancel(waiting) == 0 && pthread_join(waiting, &result) == 0);
    CHECK(result == PTHREAD_CANCELED);
    std::vector<std::thread> threads;
    for (int i = 0; i < 6; i++)
        threads.emplace_back([i] {
            CHECK(deep(3000) == 3000);
            std::vector<std::string> own;
            for (int k = 0; k < 5000; k++)
                own.push_back(std::to_string(k) + " and a tail that makes it longer");
            for (int k = 0; k < 5000; k++) CHECK(own[k][0] == std::to_string(k)[0]);
            try {
                throw std::runtime_error("thrown");
            } catch (const std::exception &e) {
                CHECK(std::string(e.what()) == "thrown");
            }
            if (i == 0) fork_here();
        });
    for (auto &thread : threads) thread.join();
    fork_here();
    mappings();
    void *aligned = nullptr;
    CHECK(posix_memalign(&aligned, 4096, 100) == 0);
    CHECK(reinterpret_cast<size_t>(aligned) % 4096 == 0);
    std::free(aligned);
    char *grown = nullptr;
    for (size_t size = 1; size < 3000000; size = size * 2 + 1) {
        grown = static_cast<char *>(std::realloc(grown, size));
        CHECK(grown);
        grown[size - 1] = 9;
        CHECK(size < 2 || grown[(size - 1) / 2 - (size > 1 ? 1 : 0)] == 9 || size < 4);
    }
    std::free(grown);
    CHECK(std::system("exit 3") >> 8 == 3);
    return 0;
}
