// loam/delegation.hpp: objects that threads change through operations. One thread, or a server, executes the operations
// of an object one at a time. docs/delegation.md is the introduction; the headers below list the whole interface.
//
//   #include <loam/delegation.hpp>
//   loam::delegated<std::vector<int>> numbers;
//   numbers.apply([](auto& vector) { vector.push_back(7); });
#pragma once

#if __cplusplus < 202002L
#error "loam/delegation.hpp needs C++20: compile with -std=c++20 or later"
#elif !defined(__cpp_exceptions)
#error "loam/delegation.hpp needs exceptions: compile without -fno-exceptions"
#else
#include "runtime/delegation/any_scheme.hpp"
#include "runtime/delegation/delegated.hpp"
#endif
