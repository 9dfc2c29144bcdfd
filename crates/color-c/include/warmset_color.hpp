// Colored heaps for C++: `new (warmset::color(3)) T`, `warmset::destroy(pointer)`, and
// an allocator for containers
// (004 Fig. 8). See warmset_color.h.
#ifndef WARMSET_COLOR_HPP
#define WARMSET_COLOR_HPP

#include "warmset_color.h"

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace warmset {

// A color, to be named in `new`.
struct color {
    explicit color(unsigned number = 0) : number(number) {}
    unsigned number;
};

// Ends an object that was made with `new (warmset::color(n))`; a plain `delete` would give it to
// another heap.
template <class T> void destroy(T *object) noexcept {
    if (object) {
        object->~T();
        warmset_free(object);
    }
}

// For std::unique_ptr<T, warmset::deleter>.
struct deleter {
    template <class T> void operator()(T *object) const noexcept { destroy(object); }
};

// An object of a color that ends by itself.
template <class T, class... Arguments>
std::unique_ptr<T, deleter> make_unique(color of, Arguments &&...arguments) {
    void *memory = warmset_aligned_alloc(alignof(T), sizeof(T), of.number);
    if (!memory) throw std::bad_alloc();
    try {
        return std::unique_ptr<T, deleter>(new (memory) T(std::forward<Arguments>(arguments)...));
    } catch (...) {
        warmset_free(memory);
        throw;
    }
}

// For containers: std::vector<double, warmset::allocator<double>>
// samples{warmset::allocator<double>(warmset::color(2))};
template <class T> struct allocator {
    using value_type = T;
    explicit allocator(color of = color()) noexcept : of(of) {}
    template <class U> allocator(const allocator<U> &other) noexcept : of(other.of) {}
    T *allocate(std::size_t number) {
        void *memory = number > static_cast<std::size_t>(-1) / sizeof(T)
                           ? nullptr
                           : warmset_aligned_alloc(alignof(T), number * sizeof(T), of.number);
        if (!memory) throw std::bad_alloc();
        return static_cast<T *>(memory);
    }
    void deallocate(T *memory, std::size_t) noexcept { warmset_free(memory); }
    template <class U> bool operator==(const allocator<U> &) const noexcept { return true; }
    template <class U> bool operator!=(const allocator<U> &) const noexcept { return false; }
    color of;
};

} // namespace warmset

// `new (warmset::color(3)) T(…)` and `new (warmset::color(3)) double[512]` (end these with
// warmset_free).
inline void *operator new(std::size_t size, warmset::color of) {
    if (void *memory = warmset_malloc(size, of.number)) return memory;
    throw std::bad_alloc();
}
inline void *operator new[](std::size_t size, warmset::color of) { return operator new(size, of); }
// Called only where a constructor throws.
inline void operator delete(void *memory, warmset::color) noexcept { warmset_free(memory); }
inline void operator delete[](void *memory, warmset::color) noexcept { warmset_free(memory); }

#endif
