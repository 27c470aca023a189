// libFuzzer's door to HeapOperations; built with clang by the preset `fuzz`, run by tests/fuzz/run.py.
//   LOAM_FUZZ_GUARDED=1: over the guarded heap instead of the open one.
#include "tests/fuzz/heap_operations.hpp"

#include "runtime/base/check.hpp"

#include <cstdlib>

namespace {

template <class Heap>
const char* play(std::span<const std::uint8_t> input) {
  static auto* const operations = new loam::tests::HeapOperations<Heap>;  // its threads are there to the end
  return operations->run(input);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static const bool guarded = std::getenv("LOAM_FUZZ_GUARDED") != nullptr;
  const auto played = guarded ? play<loam::tests::GuardedHeap> : play<loam::tests::OpenHeap>;
  if (const char* const wrong = played({data, bytes})) LOAM_FATAL("{}", wrong);
  return 0;
}
