#include "runtime/malloc/apart.hpp"

#include "runtime/base/format.hpp"
#include "runtime/malloc/apart_sites.hpp"
#include "runtime/malloc/entry.hpp"
#include "runtime/malloc/guard_pages.hpp"
#include "runtime/malloc/last_words.hpp"
#include "runtime/malloc/message.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <atomic>
#include <cstdlib>
#include <cstring>

extern "C" LOAM_MAY_BE_MISSING int _dl_find_object(void*, dl_find_object*) noexcept;  // since glibc 2.35; takes no lock

namespace loam::malloc {
namespace {

constexpr std::size_t kFileMax = 1 << 20;
constexpr unsigned kNamedMax = 8;

constinit ApartSites sites{};
enum class Phase : std::uint8_t { unread, reading, read };
constinit std::atomic<Phase> phase{Phase::unread};
constinit ApartSites::Problem problem{};
constinit int refused_number = 0;  // errno where the file could not be read
constinit bool is_own_program = false;
constinit pid_t process = 0;
// The library whose malloc the process calls, where it is not this one: what it returns to is asked of the stack.
constinit std::uintptr_t front_start = 0, front_bytes = 0;
bool is_in_front(std::uintptr_t address) noexcept { return address - front_start < front_bytes; }
// Where the module begins that was looked at last and is none of the file's.
constinit std::atomic<const void*> passed_over{nullptr};

using Message = char[1024];

void say_of_module(const ApartSites::Module& module) noexcept {
  Message buffer;
  say(STDERR_FILENO,
      base::format_to(buffer,
                      "loam malloc: LOAM_MALLOC_APART: {} is another build than the one whose sites the file has: they "
                      "are not used\n  write the file anew: ./loam explain --apart FILE -- COMMAND\n",
                      module.path));
}

std::string_view own_program(char (&path)[4096]) noexcept {
  const ssize_t bytes = readlink("/proc/self/exe", path, sizeof path);
  return {path, bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
}

std::span<const std::uint8_t> build_id(std::uintptr_t base, const ElfW(Phdr) * headers, std::size_t count) noexcept {
  for (const ElfW(Phdr) & header : std::span(headers, count)) {
    if (header.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const std::uint8_t*>(base + header.p_vaddr);
    const auto* const end = at + header.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const auto* const name = at + sizeof note;
      const auto* const value = name + base::round_up(std::size_t{note.n_namesz}, std::size_t{4});
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
        return {value, note.n_descsz};
      at = value + base::round_up(std::size_t{note.n_descsz}, std::size_t{4});
    }
  }
  return {};
}

// name: as the dynamic linker has it, "" for the program
void note_module(const char* name, std::uintptr_t base, std::span<const std::uint8_t> id) noexcept {
  char program[4096];
  const std::string_view path = name == nullptr || *name == '\0' ? own_program(program) : std::string_view(name);
  const auto same_file = [path](const ApartSites::Module& module, std::uint64_t& bytes, std::uint64_t& changed_ns) {
    char listed[4096];
    struct stat there, here;
    if (module.path.size() >= sizeof listed) return false;
    std::memcpy(listed, module.path.data(), module.path.size());
    listed[module.path.size()] = '\0';
    // The program is at the end of its own link, also where its file was replaced.
    char own[4096];
    if (path.size() >= sizeof own) return false;
    std::memcpy(own, path.data(), path.size());
    own[path.size()] = '\0';
    if (stat(own, &here) != 0 || (module.path != path && (stat(listed, &there) != 0 || there.st_dev != here.st_dev ||
                                                          there.st_ino != here.st_ino)))
      return false;
    bytes = static_cast<std::uint64_t>(here.st_size);
    changed_ns = static_cast<std::uint64_t>(here.st_mtim.tv_sec) * 1'000'000'000 +
                 static_cast<std::uint64_t>(here.st_mtim.tv_nsec);
    return true;
  };
  while (const ApartSites::Module* const refused = sites.note_module(path, id, base, same_file))
    say_of_module(*refused);
}

// Those that are loaded now. Not under a lock of ours: the dynamic linker has one of its own.
void note_modules() noexcept {
  dl_iterate_phdr(
      [](dl_phdr_info* module, std::size_t, void*) {
        note_module(module->dlpi_name, module->dlpi_addr,
                    build_id(module->dlpi_addr, module->dlpi_phdr, module->dlpi_phnum));
        return 0;
      },
      nullptr);
}

// A module that was loaded later than the process began.
void see(std::uintptr_t address) noexcept {
  if (&_dl_find_object == nullptr) return;
  dl_find_object found;
  if (_dl_find_object(reinterpret_cast<void*>(address - 1), &found) != 0) return;
  // relaxed, here and below: only the address is compared.
  if (passed_over.load(std::memory_order_relaxed) == found.dlfo_map_start) return;
  const auto* const head = static_cast<const ElfW(Ehdr)*>(found.dlfo_map_start);
  if (std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) return;
  const auto* const headers =
      reinterpret_cast<const ElfW(Phdr)*>(static_cast<const char*>(found.dlfo_map_start) + head->e_phoff);
  const std::uintptr_t base = found.dlfo_link_map->l_addr;
  note_module(found.dlfo_link_map->l_name, base, build_id(base, headers, head->e_phnum));
  passed_over.store(found.dlfo_map_start, std::memory_order_relaxed);
}

// One thread reads; allocations of others meanwhile, and its own, are of no site.
void read_once_only() noexcept {
  const platform::KeepErrno keep;
  Phase expected = Phase::unread;
  if (!phase.compare_exchange_strong(expected, Phase::reading, std::memory_order_acquire)) return;
  const char* const path = apart_file();
  const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  struct stat about;
  if (file < 0 || fstat(file, &about) != 0) {
    refused_number = errno;
  } else if (!S_ISREG(about.st_mode) || static_cast<std::uint64_t>(about.st_size) > kFileMax) {
    refused_number = EFBIG;
  } else {
    const auto bytes = static_cast<std::size_t>(about.st_size);
    void* const room = mmap(nullptr, bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::size_t got = 0;
    if (room != MAP_FAILED)
      for (ssize_t n; got < bytes && (n = ::read(file, static_cast<char*>(room) + got, bytes - got)) > 0;)
        got += static_cast<std::size_t>(n);
    if (got < bytes)
      refused_number = errno;
    else
      problem = sites.parse({static_cast<const char*>(room), got});
  }
  if (file >= 0) close(file);
  // apart.A (publishes): the sites.
  phase.store(Phase::read, std::memory_order_release);
}

struct Stack {
  heap::CallStack frames;
  std::size_t size() const noexcept { return frames.count; }
  std::uintptr_t operator[](std::size_t i) const noexcept { return heap::address_of(frames.frames[i]); }
};

// Who called the library in front; 0: not known
std::uintptr_t caller_of_front(std::uintptr_t caller) noexcept {
  const Stack stack{call_stack()};
  std::size_t at = 0;
  while (at < stack.size() && stack[at] != caller) ++at;
  while (at < stack.size() && is_in_front(stack[at])) ++at;
  return at < stack.size() ? stack[at] : 0;
}

// A library in front of this one, such as a profiler's.
void find_front() noexcept {
  dl_find_object found;
  if (serves_process() || &_dl_find_object == nullptr ||
      _dl_find_object(reinterpret_cast<void*>(&::malloc), &found) != 0)
    return;
  load_call_stacks();
  front_start = heap::address_of(found.dlfo_map_start);
  front_bytes = heap::address_of(found.dlfo_map_end) - front_start;
}

bool is_listed(const void* returns_to) noexcept {
  // acquire: pairs with apart.A.
  if (phase.load(std::memory_order_acquire) != Phase::read) [[unlikely]] {
    read_once_only();
    if (phase.load(std::memory_order_acquire) != Phase::read) return false;
  }
  std::uintptr_t caller = heap::address_of(returns_to);
  if (is_in_front(caller)) [[unlikely]]
    caller = caller_of_front(caller);
  return sites.lists(caller, see, [] { return Stack{call_stack()}; });
}

}  // namespace

void* serve_caller(const void* caller) noexcept {
  if (!apart()) return nullptr;
  return Composition::Apart::serve([caller] { return is_listed(caller); });
}

void* zeroed_block_for(const void* caller) noexcept {
  void* const block = apart() ? Composition::Apart::serve_zeroed([caller] { return is_listed(caller); }) : nullptr;
  return block != nullptr ? block : out_of_memory();
}

void begin_apart() noexcept {
  read_once_only();
  Message buffer;
  const std::string_view file = apart_file() != nullptr ? apart_file() : "";
  if (refused_number != 0)
    return say(STDERR_FILENO,
               base::format_to(buffer, "loam malloc: LOAM_MALLOC_APART={}: cannot be read ({}); no block is apart\n",
                               file, std::string_view(strerrordesc_np(refused_number))));
  if (problem.what != nullptr)
    return say(STDERR_FILENO,
               base::format_to(buffer, "loam malloc: LOAM_MALLOC_APART={}: line {} {}; no block is apart\n", file,
                               problem.line, std::string_view(problem.what)));
  char path[4096];
  is_own_program = sites.program() == own_program(path);
  process = getpid();
  keep_standard_error();
  note_modules();
  if (sites.needs_stacks()) load_call_stacks();
  find_front();
}

void end_apart() noexcept {
  if (!is_own_program || process != getpid()) return;
  note_modules();
  unsigned missing = 0;
  for (const ApartSites::Site& site : sites.sites())
    missing += !site.reached.load(std::memory_order_relaxed) &&
               sites.module_of(site).state.load(std::memory_order_acquire) != ApartSites::Seen::refused;
  if (missing == 0) return;
  const int to = descriptor_for_last_words();
  Message buffer;
  say(to, base::format_to(buffer, "loam malloc: LOAM_MALLOC_APART: {} of {} sites were never reached:\n", missing,
                          sites.sites().size()));
  unsigned named = 0;
  for (const ApartSites::Site& site : sites.sites()) {
    const ApartSites::Module& module = sites.module_of(site);
    const auto state = module.state.load(std::memory_order_acquire);
    if (site.reached.load(std::memory_order_relaxed) || state == ApartSites::Seen::refused) continue;
    if (++named > kNamedMax) break;
    say(to, base::format_to(buffer, "  {} in {}{}\n", site.line, module.path,
                            std::string_view(state == ApartSites::Seen::unseen ? ", which was never loaded" : "")));
  }
  if (named > kNamedMax) say(to, base::format_to(buffer, "  and {} more\n", missing - kNamedMax));
}

}  // namespace loam::malloc
