// Objects and containers of a color (004 Fig. 8). Needs a memory server and a grant, as filter.c:
//   c++ matrix.cpp -lwarmset_color -o matrix && ./matrix
#include <iostream>
#include <map>
#include <vector>
#include <warmset_color.hpp>

struct Matrix {
    double cells[64][64];
    explicit Matrix(double value) {
        for (auto &row : cells)
            for (auto &cell : row) cell = value;
    }
};

int main() {
    const warmset::color last(warmset_colors() - 1);
    Matrix *a = new (warmset::color(0)) Matrix(2);
    auto b = warmset::make_unique<Matrix>(last, 3);
    std::vector<double, warmset::allocator<double>> products{warmset::allocator<double>(last)};
    for (int i = 0; i < 64; i++) products.push_back(a->cells[i][i] * b->cells[i][i]);
    int *data = new (last) int[50];
    data[49] = 7;
    std::cout << "colors " << warmset_color_of(a) << ", " << warmset_color_of(b.get()) << ", "
              << warmset_color_of(products.data()) << ", " << warmset_color_of(data) << ": "
              << products.back() << '\n';
    warmset_free(data);
    warmset::destroy(a);
    try {
        new (warmset::color(warmset_colors())) int;
        return 1;
    } catch (const std::bad_alloc &) {
        std::cout << "refused: " << warmset_color_error() << '\n';
    }
}
