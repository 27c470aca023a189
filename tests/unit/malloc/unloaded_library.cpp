// A library that thread_orders_test opens, uses in a thread and closes: the thread then has a block for the library's
// thread-locals, which libc frees at some later time.
#include <cstdlib>

namespace {

thread_local char contents[10000];

}  // namespace

extern "C" [[gnu::visibility("default")]] void* loam_use_thread_locals() {
  contents[0] = 1;
  return contents;
}
