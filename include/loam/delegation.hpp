// loam/delegation.hpp: objects that threads change through operations. One thread, or a server, executes the operations
// of an object one at a time. docs/delegation.md is the introduction; the headers below list the whole interface.
//
//   #include <loam/delegation.hpp>
//   loam::delegated<std::vector<int>> numbers;
//   numbers.apply([](auto& vector) { vector.push_back(7); });
#pragma once

#include "runtime/delegation/any_scheme.hpp"
#include "runtime/delegation/delegated.hpp"
