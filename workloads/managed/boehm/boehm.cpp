#include "workloads/managed/boehm/boehm.hpp"

#include "runtime/gc/object.hpp"
#include "runtime/gc/settings.hpp"
#include "runtime/platform/machine.hpp"

#include <cstring>

// What is used of the library's interface, so that its headers are not needed.
extern "C" {
struct GC_stack_base {
  void* mem_base;
};
void GC_init();
void* GC_malloc(std::size_t bytes);
void* GC_malloc_atomic(std::size_t bytes);
void GC_gcollect();
void GC_disable();
void GC_enable();
std::size_t GC_get_heap_size();
std::size_t GC_get_free_bytes();
int GC_is_marked(const void* object);
void GC_push_all_eager(void* first, void* end);
void (*GC_get_push_other_roots())();
void GC_set_push_other_roots(void (*push)());
void GC_set_warn_proc(void (*warn)(char* message, std::size_t value));
void GC_ignore_warn_proc(char* message, std::size_t value);
void GC_set_max_heap_size(std::size_t bytes);
void GC_set_markers_count(unsigned markers);
void GC_add_roots(void* first, void* end);
void GC_remove_roots(void* first, void* end);
void GC_allow_register_threads();
int GC_thread_is_registered();
int GC_get_stack_base(GC_stack_base* base);
int GC_register_my_thread(const GC_stack_base* base);
int GC_unregister_my_thread();
void GC_set_on_collection_event(void (*on_event)(int event));
}

namespace loam::workloads::managed {
namespace {

// GC_EVENT_MARK_END, GC_EVENT_PRE_STOP_WORLD, GC_EVENT_POST_START_WORLD
constexpr int kMarked = 2, kBeforeStop = 6, kAfterStart = 9;

// Written under the collector's lock.
constinit gc::Durations pauses;
constinit std::uint64_t collections = 0, cpu_ns = 0, began_ns = 0, began_cpu_ns = 0;
constinit const gc::Marking* marking = nullptr;  // of the collection that runs, if it was asked for
using Push = void (*)();
constinit Push push_stacks = nullptr;
thread_local bool registered_here = false;

void on_event(int event) {
  if (event == kMarked) {
    if (marking != nullptr) marking->weak(marking->heap);
  } else if (event == kBeforeStop) {
    began_ns = platform::monotonic_ns();
    began_cpu_ns = platform::thread_cpu_ns();
  } else if (event == kAfterStart) {
    pauses.add(platform::monotonic_ns() - began_ns);
    cpu_ns += platform::thread_cpu_ns() - began_cpu_ns;
    ++collections;
  }
}

void open(std::size_t memory_bytes) {
  GC_set_markers_count(1);  // one collecting thread, as ours has
  GC_init();
  GC_allow_register_threads();
  GC_set_max_heap_size(memory_bytes);
  GC_set_on_collection_event(on_event);
}

// A full heap is no news where it is what a collection waits for.
void open_asked(std::size_t memory_bytes) {
  open(memory_bytes);
  if (push_stacks != nullptr) return;  // the process had a heap before
  GC_set_warn_proc(GC_ignore_warn_proc);
  push_stacks = GC_get_push_other_roots();
  GC_set_push_other_roots([] {
    push_stacks();
    if (marking != nullptr) marking->strong(marking->heap);
  });
  GC_disable();
}

void* allocate(std::size_t bytes, bool has_references) {
  if (has_references) return GC_malloc(bytes);
  void* const object = GC_malloc_atomic(bytes);
  return object != nullptr ? std::memset(object, 0, bytes) : nullptr;
}

void collect(const gc::Marking&) { GC_gcollect(); }

void collect_asked(const gc::Marking& asked) {
  marking = &asked;
  GC_enable();
  GC_gcollect();
  GC_disable();
  marking = nullptr;
}

void keep(gc::Object* object) { GC_push_all_eager(&object, &object + 1); }
std::size_t in_use() { return GC_get_heap_size() - GC_get_free_bytes(); }
bool is_live(const gc::Object* object) { return GC_is_marked(object) != 0; }

void attach() {
  if (GC_thread_is_registered() != 0) return;
  GC_stack_base base;
  GC_get_stack_base(&base);
  GC_register_my_thread(&base);
  registered_here = true;
}

void detach() {
  if (!registered_here) return;
  GC_unregister_my_thread();
  registered_here = false;
}

void count(gc::Statistics& counts) {
  counts.pauses = pauses;
  counts.full += collections;
  counts.collector_cpu_ns += cpu_ns;
}

}  // namespace

const gc::Backend kBoehm{open, allocate, collect, GC_add_roots, GC_remove_roots, attach, detach, count};
const gc::Backend kBoehmAsked{open_asked, allocate, collect_asked, GC_add_roots, GC_remove_roots,      attach,
                              detach,     count,    keep,          is_live,      GC_set_max_heap_size, in_use};

}  // namespace loam::workloads::managed
