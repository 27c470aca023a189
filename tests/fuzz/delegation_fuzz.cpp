// libFuzzer's door to DelegationOperations; built with clang by the preset `fuzz`, run by tests/fuzz/run.py.
#include "tests/fuzz/delegation_operations.hpp"

#include "runtime/base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  if (const char* const wrong = loam::tests::DelegationOperations({data, bytes}).run()) LOAM_FATAL("{}", wrong);
  return 0;
}
