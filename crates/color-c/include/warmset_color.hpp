// Colored heaps for C++: `new` with a color, plain `delete`, and an allocator for containers (004
// Fig. 8). See warmset_color.h.
//
//     int *data = new (COLOR_1) int[50];
//     delete[] data;
//
// The header replaces the global operator delete by one that finds out whether memory is a colored
// heap's, and else gives it to free(3), which is what the operators new of libstdc++ and libc++
// take it from. A program and its libraries may all include the header, and end each other's
// objects; link them with the same shared libwarmset_color. A program that replaces operator new or
// delete itself keeps its own, and ends colored objects by warmset::destroy.
#ifndef WARMSET_COLOR_HPP
#define WARMSET_COLOR_HPP

#include "warmset_color.h"

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace warmset {

// A color, to be named in `new`.
struct color {
    explicit color(unsigned number = 0) : number(number) {}
    unsigned number;
};

// Ends an object that was made with `new (warmset::color(n))`, as `delete` does.
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

// Colors by name (004 Fig. 8).
typedef enum {
    COLOR_0, COLOR_1, COLOR_2, COLOR_3, COLOR_4, COLOR_5, COLOR_6, COLOR_7,
    COLOR_8, COLOR_9, COLOR_10, COLOR_11, COLOR_12, COLOR_13, COLOR_14, COLOR_15,
    COLOR_16, COLOR_17, COLOR_18, COLOR_19, COLOR_20, COLOR_21, COLOR_22, COLOR_23,
    COLOR_24, COLOR_25, COLOR_26, COLOR_27, COLOR_28, COLOR_29, COLOR_30, COLOR_31,
    COLOR_32, COLOR_33, COLOR_34, COLOR_35, COLOR_36, COLOR_37, COLOR_38, COLOR_39,
    COLOR_40, COLOR_41, COLOR_42, COLOR_43, COLOR_44, COLOR_45, COLOR_46, COLOR_47,
    COLOR_48, COLOR_49, COLOR_50, COLOR_51, COLOR_52, COLOR_53, COLOR_54, COLOR_55,
    COLOR_56, COLOR_57, COLOR_58, COLOR_59, COLOR_60, COLOR_61, COLOR_62, COLOR_63,
    COLOR_64, COLOR_65, COLOR_66, COLOR_67, COLOR_68, COLOR_69, COLOR_70, COLOR_71,
    COLOR_72, COLOR_73, COLOR_74, COLOR_75, COLOR_76, COLOR_77, COLOR_78, COLOR_79,
    COLOR_80, COLOR_81, COLOR_82, COLOR_83, COLOR_84, COLOR_85, COLOR_86, COLOR_87,
    COLOR_88, COLOR_89, COLOR_90, COLOR_91, COLOR_92, COLOR_93, COLOR_94, COLOR_95,
    COLOR_96, COLOR_97, COLOR_98, COLOR_99, COLOR_100, COLOR_101, COLOR_102, COLOR_103,
    COLOR_104, COLOR_105, COLOR_106, COLOR_107, COLOR_108, COLOR_109, COLOR_110, COLOR_111,
    COLOR_112, COLOR_113, COLOR_114, COLOR_115, COLOR_116, COLOR_117, COLOR_118, COLOR_119,
    COLOR_120, COLOR_121, COLOR_122, COLOR_123, COLOR_124, COLOR_125, COLOR_126, COLOR_127,
} colored_alloc;

// `new (warmset::color(3)) T(…)`, `new (COLOR_3) double[512]`.
inline void *operator new(std::size_t size, warmset::color of) {
    if (void *memory = warmset_malloc(size, of.number)) return memory;
    throw std::bad_alloc();
}
inline void *operator new[](std::size_t size, warmset::color of) { return operator new(size, of); }
inline void *operator new(std::size_t size, colored_alloc of) {
    return operator new(size, warmset::color(of));
}
inline void *operator new[](std::size_t size, colored_alloc of) {
    return operator new(size, warmset::color(of));
}
// Called only where a constructor throws.
inline void operator delete(void *memory, warmset::color) noexcept { warmset_free(memory); }
inline void operator delete[](void *memory, warmset::color) noexcept { warmset_free(memory); }
inline void operator delete(void *memory, colored_alloc) noexcept { warmset_free(memory); }
inline void operator delete[](void *memory, colored_alloc) noexcept { warmset_free(memory); }

namespace warmset {
// What plain `delete` does.
inline void give_back(void *memory) noexcept {
    if (warmset_color_of(memory) >= 0)
        warmset_free(memory);
    else
        std::free(memory);
}
} // namespace warmset

// Each source file that includes this header has these functions, of which the linker keeps one: a
// replacement of the global operator may not be inline. Those of the program come before those of
// its libraries and of the C++ library.
#define WARMSET_REPLACES __attribute__((weak, visibility("default")))
WARMSET_REPLACES void operator delete(void *memory) noexcept { warmset::give_back(memory); }
WARMSET_REPLACES void operator delete[](void *memory) noexcept { warmset::give_back(memory); }
WARMSET_REPLACES void operator delete(void *memory, std::size_t) noexcept {
    warmset::give_back(memory);
}
WARMSET_REPLACES void operator delete[](void *memory, std::size_t) noexcept {
    warmset::give_back(memory);
}
#ifdef __cpp_aligned_new
WARMSET_REPLACES void operator delete(void *memory, std::align_val_t) noexcept {
    warmset::give_back(memory);
}
WARMSET_REPLACES void operator delete[](void *memory, std::align_val_t) noexcept {
    warmset::give_back(memory);
}
WARMSET_REPLACES void operator delete(void *memory, std::size_t, std::align_val_t) noexcept {
    warmset::give_back(memory);
}
WARMSET_REPLACES void operator delete[](void *memory, std::size_t, std::align_val_t) noexcept {
    warmset::give_back(memory);
}
// Objects that ask for more than the alignment of malloc(3).
inline void *operator new(std::size_t size, std::align_val_t align, warmset::color of) {
    void *memory = warmset_aligned_alloc(static_cast<std::size_t>(align), size, of.number);
    if (!memory) throw std::bad_alloc();
    return memory;
}
inline void *operator new[](std::size_t size, std::align_val_t align, warmset::color of) {
    return operator new(size, align, of);
}
inline void *operator new(std::size_t size, std::align_val_t align, colored_alloc of) {
    return operator new(size, align, warmset::color(of));
}
inline void *operator new[](std::size_t size, std::align_val_t align, colored_alloc of) {
    return operator new(size, align, warmset::color(of));
}
inline void operator delete(void *memory, std::align_val_t, warmset::color) noexcept {
    warmset_free(memory);
}
inline void operator delete[](void *memory, std::align_val_t, warmset::color) noexcept {
    warmset_free(memory);
}
inline void operator delete(void *memory, std::align_val_t, colored_alloc) noexcept {
    warmset_free(memory);
}
inline void operator delete[](void *memory, std::align_val_t, colored_alloc) noexcept {
    warmset_free(memory);
}
#endif
#undef WARMSET_REPLACES

#endif
