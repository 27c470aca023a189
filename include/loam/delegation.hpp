// loam/delegation.hpp: objects that threads change through operations, executed one at a time by one of them or by a
// server. docs/delegation.md begins at the beginning, the headers below list what there is.
//
//   #include <loam/delegation.hpp>
//   loam::delegated<std::vector<int>> numbers;
//   numbers.apply([](auto& vector) { vector.push_back(7); });
#pragma once

#include "runtime/delegation/any_scheme.hpp"
#include "runtime/delegation/delegated.hpp"
