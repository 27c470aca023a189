#include "simulator/engine/allocator.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <cstdlib>
#include <cstring>

namespace loam::simulator {
namespace {

// An entry of the dynamic section; the loader has made addresses of most values, but not everywhere.
template <class Pointer>
Pointer* address_of(const link_map& object, const ElfW(Dyn) & entry) {
  const ElfW(Addr) value = entry.d_un.d_ptr;
  return reinterpret_cast<Pointer*>(value < object.l_addr ? object.l_addr + value : value);
}

// The relocations of calls through the procedure linkage table and of addresses in the table beside it name every
// function that an object takes from elsewhere.
bool relocations_name(const ElfW(Rela) * first, std::size_t count, const ElfW(Sym) * symbols, const char* names,
                      const char* prefix) {
  for (std::size_t i = 0; i < count; ++i) {
    const ElfW(Sym) & symbol = symbols[ELF64_R_SYM(first[i].r_info)];
    if (symbol.st_shndx == SHN_UNDEF && std::strncmp(names + symbol.st_name, prefix, std::strlen(prefix)) == 0)
      return true;
  }
  return false;
}

bool refers_to(const link_map& object, const char* prefix) {
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela)* calls = nullptr, *data = nullptr;
  std::size_t calls_bytes = 0, data_bytes = 0;
  for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) switch (entry->d_tag) {
      case DT_SYMTAB:
        symbols = address_of<const ElfW(Sym)>(object, *entry);
        break;
      case DT_STRTAB:
        names = address_of<const char>(object, *entry);
        break;
      case DT_JMPREL:
        calls = address_of<const ElfW(Rela)>(object, *entry);
        break;
      case DT_RELA:
        data = address_of<const ElfW(Rela)>(object, *entry);
        break;
      case DT_PLTRELSZ:
        calls_bytes = entry->d_un.d_val;
        break;
      case DT_RELASZ:
        data_bytes = entry->d_un.d_val;
        break;
      default:
        break;
    }
  if (symbols == nullptr || names == nullptr) return false;
  return relocations_name(calls, calls_bytes / sizeof *calls, symbols, names, prefix) ||
         relocations_name(data, data_bytes / sizeof *data, symbols, names, prefix);
}

}  // namespace

bool calls_hooks(const void* address) {
  Dl_info found{};
  link_map* object = nullptr;
  return dladdr1(address, &found, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) != 0 && object != nullptr &&
         refers_to(*object, "__tsan_");
}

bool allocator_is_native() {
  static const bool native = !calls_hooks(dlsym(RTLD_DEFAULT, "malloc"));
  return native;
}

}  // namespace loam::simulator
