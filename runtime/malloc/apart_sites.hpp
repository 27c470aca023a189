// The allocation sites whose blocks are apart, from the file that LOAM_MALLOC_APART names.
//   loam-apart 1
//   program /usr/bin/victims                              whose sites they are: at its end those never reached are named
//   module build-id 5f0c...e1 /usr/bin/victims            number 0
//   module file 81234 1700000000123456789 /lib/libx.so    number 1: without a build ID, size and time of change in ns
//   site 0+11d3 # 8-byte blocks made at victims.cpp:24    where malloc returns to: an address as the file's tables have it
//   site 1+2f40 0+1260                                    a stack: malloc's caller, then that one's
// `./loam explain --apart FILE -- COMMAND` writes such a file. A module of another build has its code elsewhere, so its
// sites are refused. Allocates nothing; the text stays where it is.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace loam::malloc {

class ApartSites {
 public:
  static constexpr std::size_t kModules = 64, kSites = 512, kFrames = 2048, kDepth = 16;

  enum class Seen : std::uint8_t { unseen, found, refused };

  struct Module {
    std::string_view path, build_id;  // in lower-case digits; empty: judged by the file
    std::uint64_t bytes = 0, changed_ns = 0;
    std::atomic<std::uintptr_t> base{0};  // what an address of the process has more than in the file's tables
    std::atomic<Seen> state{Seen::unseen};
  };
  struct Frame {
    std::uint64_t offset;
    std::uint16_t module;
  };
  struct Site {
    std::string_view line;  // of the file
    std::uint16_t first = 0, depth = 0;
    std::uint16_t next = 0;  // of the same low bits, plus one; 0: none
    std::atomic<bool> reached{false};
  };

  // What is wrong with a text, and in which line, from 1 on; what: nullptr where nothing is
  struct Problem {
    unsigned line = 0;
    const char* what = nullptr;
  };

  // Once, on an empty object. Where a problem is returned, no site is listed.
  Problem parse(std::string_view text) noexcept;

  // Whether a call of an allocation function that returns to `caller` is of a site; marks the site as reached.
  //   see(address): learns of the module in which the address lies (note_module())
  //   walk(): the return addresses of the call, the caller among them
  template <class See, class Walk>
  bool lists(std::uintptr_t caller, See see, Walk walk) noexcept {
    const std::uint16_t head = heads_[caller % kHeads];
    return head != 0 && lists_slow(head, caller, see, walk);
  }

  // A module of the process. path: as canonical as the file's; build_id: its bytes, empty where it has none. For a module
  // of the file that has no build ID, same_file(module, bytes, changed_ns) says whether it is that file, and of which size.
  // returns the module of the file that is refused for it; nullptr: none
  template <class SameFile>
  Module* note_module(std::string_view path, std::span<const std::uint8_t> build_id, std::uintptr_t base,
                      SameFile same_file) noexcept {
    for (Module& module : modules()) {
      if (module.state.load(std::memory_order_acquire) != Seen::unseen) continue;  // pairs with sites.A
      bool same;
      if (!module.build_id.empty()) {
        same = is_id(module.build_id, build_id);
        if (!same && module.path != path) continue;
      } else {
        std::uint64_t bytes = 0, changed_ns = 0;
        if (!same_file(module, bytes, changed_ns)) continue;
        same = bytes == module.bytes && changed_ns == module.changed_ns;
      }
      module.base.store(base, std::memory_order_relaxed);  // relaxed: sites.A orders it
      // sites.A (publishes): the base. Threads that see the module at once store the same.
      module.state.store(same ? Seen::found : Seen::refused, std::memory_order_release);
      return same ? nullptr : &module;
    }
    return nullptr;
  }

  std::span<Module> modules() noexcept { return {modules_.data(), module_count_}; }
  std::span<Site> sites() noexcept { return {sites_.data(), site_count_}; }
  Module& module_of(const Site& site) noexcept { return modules_[frames_[site.first].module]; }
  std::string_view program() const noexcept { return program_; }
  // Whether the stack of a site is longer than its caller.
  bool needs_stacks() const noexcept { return needs_stacks_; }

 private:
  // Modules lie on whole pages, so an address and its offset have these low bits in common.
  static constexpr std::size_t kHeads = 4096;

  template <class See, class Walk>
  [[gnu::noinline]] bool lists_slow(std::uint16_t head, std::uintptr_t caller, See see, Walk walk) noexcept {
    for (std::uint16_t number = head; number != 0; number = sites_[number - 1].next) {
      Site& site = sites_[number - 1];
      if (!is_at(frames_[site.first], caller, see)) continue;
      if (site.depth > 1 && !is_on(site, caller, see, walk())) continue;
      // relaxed: a mark for the end of the process.
      if (!site.reached.load(std::memory_order_relaxed)) site.reached.store(true, std::memory_order_relaxed);
      return true;
    }
    return false;
  }
  template <class See>
  bool is_at(const Frame& frame, std::uintptr_t address, See see) noexcept {
    const Module& module = modules_[frame.module];
    // acquire: pairs with sites.A.
    if (module.state.load(std::memory_order_acquire) == Seen::unseen) see(address);
    return module.state.load(std::memory_order_acquire) == Seen::found &&
           address - module.base.load(std::memory_order_relaxed) == frame.offset;
  }
  template <class See, class Stack>
  bool is_on(const Site& site, std::uintptr_t caller, See see, const Stack& stack) noexcept {
    std::size_t at = 0;
    while (at < stack.size() && stack[at] != caller) ++at;
    for (std::size_t i = 0; i < site.depth; ++i)
      if (at + i >= stack.size() || !is_at(frames_[site.first + i], stack[at + i], see)) return false;
    return true;
  }

  static bool is_id(std::string_view digits, std::span<const std::uint8_t> bytes) noexcept;
  const char* take_module(std::string_view rest) noexcept;
  const char* take_site(std::string_view line, std::string_view rest) noexcept;

  std::array<Module, kModules> modules_{};
  std::array<Site, kSites> sites_{};
  std::array<Frame, kFrames> frames_{};
  std::array<std::uint16_t, kHeads> heads_{};
  std::size_t module_count_ = 0, site_count_ = 0, frame_count_ = 0;
  std::string_view program_;
  bool needs_stacks_ = false;
};

}  // namespace loam::malloc
