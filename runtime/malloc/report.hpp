// Reports of the state of the heap, for people and for programs. Allocates nothing.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace loam::malloc {

inline constexpr std::size_t kReportBytes = 2048;  // room for any of the texts below

// Aligned lines. buffer: kReportBytes
std::string_view summary(std::span<char> buffer) noexcept;
void write_summary(int descriptor) noexcept;

// One JSON object on one line, without the newline.
std::string_view json(std::span<char> buffer) noexcept;

// glibc's malloc_info(3): an element `malloc`.
std::string_view xml(std::span<char> buffer) noexcept;

}  // namespace loam::malloc
