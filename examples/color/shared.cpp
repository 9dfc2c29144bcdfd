// A library whose objects a program ends, and the other way round: see new.cpp.
//   c++ -shared -fPIC shared.cpp -lwarmset_color -o libshared.so
#include "shared.hpp"

int Sample::alive = 0;

Sample::Sample(double value, Sample *next) : value(value), next(next) { alive++; }

Sample::~Sample() {
    delete next;
    alive--;
}

int *table(unsigned size) { return new (COLOR_2) int[size]; }

void forget(int *data) { delete[] data; }

void forget(Sample *list) { delete list; }
