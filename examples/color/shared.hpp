// What the program new.cpp and its library shared.cpp know of each other.
#ifndef SHARED_HPP
#define SHARED_HPP

#include <warmset_color.hpp>

struct Sample {
    double value;
    Sample *next;
    static int alive;
    explicit Sample(double value, Sample *next = nullptr);
    ~Sample();
};

// Made by the library, ended by the program.
int *table(unsigned size);
// Made by the program, ended by the library.
void forget(int *data);
void forget(Sample *list);

#endif
