// libFuzzer's door to HeapOperations; built with clang by the preset `fuzz`, run by tests/fuzz/run.py.
#include "tests/fuzz/heap_operations.hpp"

#include "runtime/base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static auto* const operations = new loam::tests::HeapOperations;  // its threads are there to the end
  const char* const wrong = operations->run({data, bytes});
  if (wrong != nullptr) LOAM_FATAL("{}", wrong);
  return 0;
}
