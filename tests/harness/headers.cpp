// Stands for the headers that many sources share: compiled once, see cmake/LoamTests.cmake and cmake/LoamWorkloads.cmake.
int main() { return 0; }
