#include "simulator/engine/call_costs.hpp"

#include "simulator/engine/arena.hpp"
#include "simulator/engine/fail.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace loam::simulator {
namespace {

constexpr std::size_t kOwnersFirst = 4096;

// Numbers with commas between them. returns whether they are exactly so many
bool numbers(std::string_view text, std::uint64_t* into, unsigned count) noexcept {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (unsigned i = 0; i < count; ++i) {
    if (i != 0 && (at == end || *at++ != ',')) return false;
    const auto [stopped, problem] = std::from_chars(at, end, into[i]);
    if (problem != std::errc{}) return false;
    at = stopped;
  }
  return at == end;
}

std::size_t hashed(const void* block) noexcept {
  const std::uint64_t mixed = reinterpret_cast<std::uintptr_t>(block) * 0x9E37'79B9'7F4A'7C15;
  return mixed >> 20;
}

}  // namespace

// Read before this object's constructors would have run.
constinit CallCosts call_costs;

void CallCosts::read(const char* text) {
  const std::string_view whole = text;
  const auto wrong = [&](std::string_view part) {
    fail(
        "LOAM_SIM_ALLOCATION: {}: must be MALLOC,FREE, for example 60,40; or "
        "NAME;BYTES=STOCK,MALLOC,FREE,MALLOC_MISS,FREE_MISS,REMOTE_FREE;..., the sizes rising, at most {} of them",
        part, kSizesMax);
  };
  auto semicolon = whole.find(';');
  if (semicolon == std::string_view::npos) {
    std::uint64_t both[2];
    if (!numbers(whole, both, 2)) wrong(whole);
    malloc_ = both[0];
    free_ = both[1];
    return;
  }
  const std::string_view name = whole.substr(0, std::min(semicolon, kKindBytes - sizeof "counted: "));
  std::memcpy(kind_, "counted: ", sizeof "counted: ");
  std::memcpy(kind_ + sizeof "counted: " - 1, name.data(), name.size());
  kind_[sizeof "counted: " - 1 + name.size()] = 0;
  for (std::string_view rest = whole.substr(semicolon + 1); !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const auto equals = part.find('=');
    std::uint64_t one[7];
    if (equals == std::string_view::npos || sizes_ == kSizesMax || !numbers(part.substr(0, equals), one, 1) ||
        !numbers(part.substr(equals + 1), one + 1, 6) || (sizes_ != 0 && one[0] <= size_[sizes_ - 1].bytes))
      wrong(part);
    size_[sizes_++] = {one[0], one[1], one[2], one[3], one[4], one[5], one[6]};
  }
  if (sizes_ == 0) wrong(whole);
  stocks_ = static_cast<std::uint32_t*>(simulator::take(kThreadsMax * kSizesMax * sizeof *stocks_));
}

// The place of the smallest size that holds so many bytes; of more than all, the largest.
unsigned CallCosts::size_of(std::size_t bytes) const noexcept {
  unsigned at = 0;
  while (at + 1 < sizes_ && size_[at].bytes < bytes) ++at;
  return at;
}

// Where the owner of a block is, or goes.
CallCosts::Owner& CallCosts::place(const void* block) const noexcept {
  std::size_t at = hashed(block) & (owners_room_ - 1);
  while (owners_[at].block != nullptr && owners_[at].block != block) at = (at + 1) & (owners_room_ - 1);
  return owners_[at];
}

void CallCosts::grow() noexcept {
  const Owner* const before = owners_;
  const std::size_t room = owners_room_;
  owners_room_ = room == 0 ? kOwnersFirst : 2 * room;
  owners_ = static_cast<Owner*>(simulator::take(owners_room_ * sizeof(Owner)));
  for (std::size_t at = 0; at < room; ++at)
    if (before[at].block != nullptr) place(before[at].block) = before[at];
}

std::uint64_t CallCosts::take(unsigned thread, std::size_t bytes) noexcept {
  if (sizes_ == 0) return malloc_;
  const unsigned at = size_of(bytes);
  std::uint32_t& left = stock(thread, at);
  if (left == 0) return size_[at].malloc_miss;
  --left;
  return size_[at].malloc;
}

void CallCosts::taken(unsigned thread, const void* block, std::size_t bytes) noexcept {
  if (sizes_ == 0) return;
  if (2 * owners_used_ >= owners_room_) grow();
  Owner& owner = place(block);
  if (owner.block == nullptr) ++owners_used_;
  owner = {block, static_cast<std::uint16_t>(thread), static_cast<std::uint16_t>(size_of(bytes))};
}

std::uint64_t CallCosts::give(unsigned thread, const void* block) noexcept {
  if (sizes_ == 0) return free_;
  if (block == nullptr || owners_room_ == 0) return 0;
  const Owner& owner = place(block);
  if (owner.block == nullptr) return size_[0].free;  // taken before the program was simulated
  const Size& size = size_[owner.size];
  if (owner.thread != thread) return size.remote;
  std::uint32_t& left = stock(thread, owner.size);
  if (left >= size.stock) return size.free_miss;
  ++left;
  return size.free;
}

}  // namespace loam::simulator
