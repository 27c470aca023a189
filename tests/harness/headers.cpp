// Stands for the headers that tests share: compiled once, see cmake/LoamTests.cmake.
int main() { return 0; }
