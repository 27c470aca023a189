// config: checks and applies a loam_config, and reads the environment variable LOAM_TM.
#pragma once

#include "include/loam/tm.h"

#include <string_view>

namespace loam::tm {
namespace [[gnu::visibility("hidden")]] open {

// The error of the calling thread's last configuration.
const char* last_error() noexcept;

// The configuration that holds without loam_configure(): the library's defaults, changed by LOAM_TM. An error in
// LOAM_TM is reported on standard error, once for the process.
loam_config default_config() noexcept;

// returns LOAM_OK, or another code after a complaint; nothing has changed then
int configure(const loam_config& config) noexcept;

// Applies LOAM_TM, if it is set. Called once, before the first transaction, if configure() has not been called.
void configure_by_environment() noexcept;

// Applies a text of the form "key=value,key=value". Calls complaint(sentence) for each wrong pair, whose key keeps its
// value
void read_settings(loam_config& config, std::string_view text, void (*complaint)(std::string_view)) noexcept;

}  // namespace open
}  // namespace loam::tm
