// config: loam_config, checked and applied, and the part of it that the environment says.
#pragma once

#include "include/loam/tm.h"

#include <string_view>

namespace loam::tm {
namespace [[gnu::visibility("hidden")]] open {

// What the last configuration of the calling thread complained about.
const char* last_error() noexcept;

// What holds without loam_configure(): the library's defaults, and over them LOAM_TM. What is wrong in that is named on
// standard error, once for the process.
loam_config default_config() noexcept;

// returns LOAM_OK, or another code after a complaint; nothing has changed then
int configure(const loam_config& config) noexcept;

// Before the first transaction, where nobody has called configure(): applies LOAM_TM, if it is set. Once.
void configure_by_environment() noexcept;

// Sets what a text of the form "key=value,key=value" says. complaint(sentence): for each pair that is wrong, which
// leaves its key as it was
void read_settings(loam_config& config, std::string_view text, void (*complaint)(std::string_view)) noexcept;

}  // namespace open
}  // namespace loam::tm
