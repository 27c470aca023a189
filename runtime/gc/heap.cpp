#include "runtime/gc/heap.hpp"

#include "runtime/base/check.hpp"
#include "runtime/base/format.hpp"
#include "runtime/gc/backend.hpp"
#include "runtime/gc/collector.hpp"
#include "runtime/gc/fork.hpp"
#include "runtime/gc/verifier.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/platform/pages.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace loam::gc {
namespace {

constexpr std::size_t kNurseryMost = std::size_t{4} << 20, kMemoryLeast = std::size_t{128} << 10;

constexpr std::size_t in_pages(std::size_t bytes) noexcept {
  return (bytes + platform::kPageBytes - 1) / platform::kPageBytes * platform::kPageBytes;
}

// Rounds the addresses of a space up, so that no huge page of the system contains parts of two spaces.
constexpr std::size_t in_pieces(std::size_t bytes) noexcept {
  constexpr std::size_t kPieceBytes = std::size_t{2} << 20;
  return (bytes + kPieceBytes - 1) / kPieceBytes * kPieceBytes;
}

}  // namespace

OutOfMemory::OutOfMemory(std::size_t requested, std::size_t live, std::size_t logs, std::size_t memory,
                         std::size_t enough) noexcept
    : requested_bytes(requested), live_bytes(live), log_bytes(logs), memory_bytes(memory), enough_bytes(enough) {
  const auto out = std::span(text_).first(text_.size() - 1);
  if (enough > kMemoryMost)
    base::format_to(out, "no managed heap has room for {} bytes: memory_bytes is at most {}", requested, kMemoryMost);
  else if (enough <= memory)
    base::format_to(out,
                    "the system has no memory for {} bytes of the managed heap: {} live, {} in logs, memory_bytes={} "
                    "(set it to what the system has, or give the system more)",
                    requested, live, logs, memory);
  else
    base::format_to(out,
                    "the managed heap is full: {} bytes asked for, {} live, {} in logs, memory_bytes={} (set it to at "
                    "least {})",
                    requested, live, logs, memory, enough);
}

Heap::Heap(const Settings& settings) : settings_(settings), nursery_follows_(settings.nursery_bytes == 0) {
  LOAM_CHECK(settings.memory_bytes >= kMemoryLeast, "memory_bytes={}: a heap has at least {} bytes",
             settings.memory_bytes, kMemoryLeast);
  LOAM_CHECK(settings.memory_bytes <= kMemoryMost, "memory_bytes={}: a heap has at most {} bytes",
             settings.memory_bytes, kMemoryMost);
  if (settings_.nursery_bytes == 0) settings_.nursery_bytes = std::min(settings.memory_bytes / 8, kNurseryMost);
  LOAM_CHECK(settings_.nursery_bytes <= settings.memory_bytes / 2,
             "nursery_bytes={}: at most half of memory_bytes={} (give it less, or the heap more)",
             settings_.nursery_bytes, settings.memory_bytes);
  settings_.nursery_bytes = in_pages(settings_.nursery_bytes);
  // Every object that is not large must fit into an empty nursery.
  LOAM_CHECK(settings_.nursery_bytes >= kLargeBytes, "nursery_bytes={}: at least {}", settings_.nursery_bytes,
             kLargeBytes);
  buffer_bytes_ = std::min(settings.buffer_bytes, settings_.nursery_bytes / 4) & ~std::size_t{7};
  LOAM_CHECK(buffer_bytes_ >= 1024, "buffer_bytes={}: from 1024 to a quarter of the nursery", settings.buffer_bytes);
  reserved_half_ = in_pages((settings_.memory_bytes - settings_.nursery_bytes) / 2);
  // One range of addresses, the nursery first: a short read is an object's place in it (logs/entries.hpp).
  const std::size_t nursery = in_pieces(settings_.nursery_bytes), half = in_pieces(reserved_half_);
  span_bytes_ = nursery + 2 * half;
  nursery_start_ = nursery_top_ = static_cast<std::byte*>(platform::map_lazy_or_die(span_bytes_, "the managed heap"));
  old_.start = old_.top = nursery_start_ + nursery;
  other_.start = other_.top = old_.start + half;
  if (settings_.backend != nullptr) settings_.backend->open(settings_.memory_bytes);
  cut_nursery();
  forks::add(*this);
}

Heap::~Heap() {
  LOAM_CHECK(world_.mutators().empty(), "a heap ends after its threads' Mutators; {} are left",
             world_.mutators().size());
  LOAM_CHECK(globals_ == nullptr, "a heap ends after its Globals");
  forks::remove(*this);
  platform::unmap(nursery_start_, span_bytes_);
}

std::size_t Heap::half_bytes(std::size_t more) const noexcept {
  const std::size_t taken = settings_.nursery_bytes + large_.mapped_bytes() + charged_log_bytes() + more;
  return taken < settings_.memory_bytes ? (settings_.memory_bytes - taken) / 2 : 0;
}

void Heap::cut_nursery() noexcept {
  if (settings_.backend != nullptr) return limit_elsewhere();
  const std::size_t half = half_bytes(), used = old_used();
  const std::size_t room = half > used ? std::min(half - used, settings_.nursery_bytes) : 0;
  nursery_end_ = std::max(nursery_top_, nursery_start_ + (room & ~std::size_t{7}));
}

// While all other threads are stopped, right after a full collection.
OutOfMemory Heap::refusal(const Request::Needs& needs) const noexcept {
  const std::size_t memory = settings_.memory_bytes;
  const std::size_t asked = std::min(needs.bytes, kMemoryMost);
  // A backend does not report live bytes. All of its memory counts as live, because it could not free any.
  if (settings_.backend != nullptr)
    return {needs.bytes, memory, log_bytes_, memory, 2 * (memory + log_bytes_ + asked) + memory / 4};
  const std::size_t beside = large_.mapped_bytes() + charged_log_bytes() + std::min(needs.beside, kMemoryMost);
  std::size_t enough = 2 * (old_used() + needs.in_each_half) + beside;
  // The nursery of a larger heap is larger, too: an eighth of all is a seventh of the rest.
  constexpr std::size_t kPage = platform::kPageBytes;
  if (nursery_follows_ && enough > memory - settings_.nursery_bytes)
    enough += std::min(enough / 7 + kPage, kNurseryMost) + kPage;
  else
    enough += settings_.nursery_bytes;
  return {needs.bytes, live_bytes(), log_bytes_, memory, enough};
}

void Heap::refuse(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  throw OutOfMemory(bytes, live_bytes(), log_bytes_, settings_.memory_bytes, ~std::size_t{0});
}

// A thread that has stopped the world waits afterwards for its other heaps, and then others may collect this one: what it
// has taken may be gone when this returns. collections() tells.
void Heap::obtain(Mutator& mutator, Request& request, bool full) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (request.take()) return;
    }
    if (!collect(mutator, full, &request)) continue;  // another thread has collected, for what it needs itself
    if (request.refusal) throw *request.refusal;
    return;
  }
}

// A buffer of at least `bytes` for a thread whose own is used up. Its contents are not zeroed yet.
bool Heap::take_buffer(Mutator& mutator, std::size_t bytes) noexcept {
  mutator.give_up_buffer();
  std::byte *start = nullptr, *end = nullptr;
  for (std::size_t i = returned_.size(); i-- != 0 && start == nullptr;) {
    const Mutator::Piece piece = returned_[i];
    if (static_cast<std::size_t>(piece.end - piece.start) < bytes) continue;
    returned_.remove_unordered(i);
    start = piece.start;
    end = piece.end;
  }
  if (start == nullptr) {
    const auto room = static_cast<std::size_t>(nursery_end_ - nursery_top_);
    if (room < bytes) return false;
    start = nursery_top_;
    // With collect_every each allocation must come here to be counted, so a buffer has room for one object only.
    const std::size_t wanted = settings_.collect_every != 0 ? bytes : std::max(bytes, buffer_bytes_);
    end = nursery_top_ += std::min(room, wanted);
  }
  mutator.buffer_ = mutator.next_ = start;
  mutator.limit_ = end;
  return true;
}

void Heap::refill(Mutator& mutator, std::size_t bytes) {
  RequestBy request({bytes, bytes, 0}, [&] { return take_buffer(mutator, bytes); });
  obtain(mutator, request, false);
  if (mutator.next_ == nullptr) return;  // obtain() says why; the caller comes again
  // Without the mutex, and while other threads run: it is this thread's own.
  std::memset(mutator.next_, 0, static_cast<std::size_t>(mutator.limit_ - mutator.next_));
}

Object* Heap::allocate_large(Mutator& mutator, std::size_t bytes, const Descriptor& descriptor) {
  const std::size_t mapped = LargeObjects::mapped_bytes_of(bytes);
  Object* object = nullptr;
  std::uint64_t taken_at = 0;
  RequestBy request({bytes, buffer_bytes_, mapped}, [&] {
    if (!fits(mapped)) return false;
    object = large_.add(bytes, descriptor);
    if (object == nullptr) return false;
    cut_nursery();
    statistics_.allocated_bytes += bytes;
    taken_at = collections();
    return true;
  });
  do obtain(mutator, request, true);
  while (collections() != taken_at);
  return object;
}

// An object of the nursery, outside of the buffers of threads.
Object* Heap::allocate_apart(Mutator& mutator, std::size_t bytes, const Descriptor& descriptor) {
  std::byte* start = nullptr;
  std::uint64_t taken_at = 0;
  RequestBy request({bytes, bytes, 0}, [&] {
    if (static_cast<std::size_t>(nursery_end_ - nursery_top_) < bytes) return false;
    start = std::exchange(nursery_top_, nursery_top_ + bytes);
    statistics_.allocated_bytes += bytes;
    taken_at = collections();
    return true;
  });
  do obtain(mutator, request, false);
  while (collections() != taken_at);
  std::memset(start, 0, bytes);
  auto* const object = reinterpret_cast<Object*>(start);
  // relaxed: nobody else has it.
  object->word().store(reinterpret_cast<std::uintptr_t>(&descriptor), std::memory_order_relaxed);
  return object;
}

void Heap::charge_logs(Mutator& mutator, std::size_t bytes) {
  RequestBy request({bytes, buffer_bytes_, bytes}, [&] {
    if (settings_.charge_logs && !fits(bytes)) return false;
    log_bytes_ += bytes;
    statistics_.log_bytes_max = std::max<std::uint64_t>(statistics_.log_bytes_max, log_bytes_);
    cut_nursery();
    return true;
  });
  obtain(mutator, request, true);
}

void Heap::discharge_logs(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  LOAM_ASSERT(log_bytes_ >= bytes, "{} bytes of logs are given back, {} are charged", bytes, log_bytes_);
  log_bytes_ -= bytes;
  cut_nursery();
}

bool Heap::collect(Mutator& mutator, bool full, Request* request) {
  if (settings_.backend != nullptr) return collect_elsewhere(mutator, request);
  std::uint64_t way_ns = 0;
  if (!world_.stop(mutator, way_ns)) return false;
  const std::uint64_t began_ns = platform::monotonic_ns(), cpu_ns = platform::thread_cpu_ns();
  statistics_.time_to_safepoint.add(way_ns);
  {
    const std::lock_guard lock(mutex_);
    bool taken = request == nullptr;
    full = full || settings_.always_full;
    if (!full) {
      Collector(*this, false).run();
      cut_nursery();
      if (is_nursery_short()) give_back_logs();
      full = is_nursery_short();
      if (!full && !taken) full = !(taken = request->take());
    }
    if (full) collect_fully(false);
    taken = taken || request->take();
    if (!taken) {
      collect_fully(true);
      if (!request->take()) request->refusal.emplace(refusal(request->needs()));
    }
  }
  statistics_.collector_cpu_ns += platform::thread_cpu_ns() - cpu_ns;
  statistics_.pauses.add(platform::monotonic_ns() - began_ns);
  world_.resume(mutator);
  return true;
}

// last: a request for memory is refused if this frees too little
void Heap::collect_fully(bool last) {
  statistics_.log_bytes_at_full_max = std::max<std::uint64_t>(statistics_.log_bytes_at_full_max, log_bytes_);
  Collector(*this, true).run(last);
  give_back_logs();  // once more: the collection may have removed duplicates
}

// Only while all other threads are stopped, so that none is about to take a free chunk.
void Heap::give_back_logs() noexcept {
  for (Mutator* const mutator : world_.mutators()) {
    if (mutator->logs() == nullptr) continue;
    const std::size_t bytes = mutator->logs()->give_back();
    log_bytes_ -= bytes;
    statistics_.returned_log_bytes += bytes;
  }
  cut_nursery();
}

void Heap::run_finalizers(Mutator& mutator) {
  for (;;) {
    Finalizable next;
    {
      const std::lock_guard lock(mutex_);
      if (finalized_ == dead_.size()) {
        finalized_ = 0;
        dead_.clear();
        return;
      }
      next = dead_[finalized_++];
      ++statistics_.finalized;
    }
    Local<Object> object(mutator, next.object);
    next.finalize(object.get());
  }
}

Statistics Heap::statistics() {
  const std::lock_guard lock(mutex_);
  Statistics counts = statistics_;
  if (settings_.backend != nullptr) settings_.backend->count(counts);
  return counts;
}

void Heap::verify(Mutator& mutator) {
  std::uint64_t way_ns = 0;
  while (!world_.stop(mutator, way_ns)) {
  }
  Verifier(*this).before_collection();
  world_.resume(mutator);
}

void Heap::take_over(Mutator& mutator) noexcept {
  mutator.give_up_buffer();
  for (Object* const object : mutator.remembered_) remembered_.push(object);
  mutator.remembered_.clear();
  for (const Finalizable& young : mutator.finalizable_) finalizable_.push(young);
  mutator.finalizable_.clear();
}

void Heap::add_global(GlobalBase& global) {
  const std::lock_guard lock(mutex_);
  global.join(globals_);
  if (settings_.backend != nullptr) settings_.backend->add_root(&global.slot(), &global.slot() + 1);
}

void Heap::remove_global(GlobalBase& global) {
  const std::lock_guard lock(mutex_);
  if (settings_.backend != nullptr) settings_.backend->remove_root(&global.slot(), &global.slot() + 1);
  global.leave(globals_);
}

GlobalBase::GlobalBase(Heap& heap) noexcept : heap_(heap) { heap.add_global(*this); }
GlobalBase::~GlobalBase() { heap_.remove_global(*this); }

}  // namespace loam::gc
