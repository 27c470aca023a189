// The version, compiler and flags with which this executable was built.
#pragma once

#include <string_view>

namespace loam::workloads {

#if defined(__clang__)
inline constexpr std::string_view kCompiler = "Clang " __clang_version__;
#else
inline constexpr std::string_view kCompiler = "GCC " __VERSION__;
#endif
inline constexpr std::string_view kPreset = LOAM_PRESET;
inline constexpr std::string_view kBuildFlags = LOAM_BUILD_FLAGS;

// The linker's build-id of the running executable, in hexadecimal; empty if it has none.
std::string_view build_id() noexcept;

}  // namespace loam::workloads
