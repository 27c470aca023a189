#include "workloads/harness/build_info.hpp"

#include "runtime/base/bits.hpp"

#include <elf.h>
#include <link.h>
#include <cstdint>
#include <cstring>

namespace loam::workloads {
namespace {

struct HexText {
  char digits[2 * 64];
  std::size_t size = 0;
};

// Looks through the notes of one loaded object; a callback of dl_iterate_phdr, which shows the executable first.
int read_build_id(dl_phdr_info* object, std::size_t, void* out) {
  auto& text = *static_cast<HexText*>(out);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
    const auto* const end = at + segment.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const auto* const name = at + sizeof note;
      const auto* const content = name + base::round_up<std::size_t>(note.n_namesz, 4);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
        for (std::size_t b = 0; b < note.n_descsz && text.size + 2 <= sizeof text.digits; ++b) {
          const auto byte = static_cast<unsigned char>(content[b]);
          text.digits[text.size++] = "0123456789abcdef"[byte >> 4];
          text.digits[text.size++] = "0123456789abcdef"[byte & 15];
        }
        return 1;
      }
      at = content + base::round_up<std::size_t>(note.n_descsz, 4);
    }
  }
  return 1;
}

}  // namespace

std::string_view build_id() noexcept {
  static const HexText text = [] {
    HexText read;
    ::dl_iterate_phdr(read_build_id, &read);
    return read;
  }();
  return {text.digits, text.size};
}

}  // namespace loam::workloads
