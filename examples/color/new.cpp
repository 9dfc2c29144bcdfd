// Plain `new` and `delete` with a color (004 Fig. 8), in a program and in its library: what one
// makes the other may end. Needs a memory server and a grant, as filter.c:
//   c++ -shared -fPIC shared.cpp -lwarmset_color -o libshared.so
//   c++ new.cpp ./libshared.so -lwarmset_color -o new && ./new
#include "shared.hpp"

#include <iostream>
#include <vector>

struct alignas(256) Wide {
    char bytes[256];
};

int main() {
    int *data = new (COLOR_1) int[50];
    int *theirs = table(50);
    Sample *list = new (COLOR_1) Sample(1, new (COLOR_2) Sample(2, new Sample(3)));
    Wide *wide = new (COLOR_2) Wide;
    std::cout << "colors " << warmset_color_of(data) << ", " << warmset_color_of(theirs) << ", "
              << warmset_color_of(list) << ", " << warmset_color_of(list->next) << ", "
              << warmset_color_of(list->next->next) << ", " << warmset_color_of(wide) << '\n';
    forget(data);
    delete[] theirs;
    forget(list);
    delete wide;
    // More than there is, unless it is given back.
    for (int i = 0; i < 100000; i++) {
        delete[] new (COLOR_1) int[500];
        forget(new (COLOR_1) int[500]);
        delete[] table(500);
    }
    std::vector<int> ordinary(1000, 1);
    delete new int;
    delete[] new double[1000];
    std::cout << "alive: " << Sample::alive << '\n';
}
