// objects: the ELF objects mapped into this process, and the symbols that calls can bind to in them.
//   Instead of dlsym: a look-up that fails allocates its message, and a canonical PLT entry would hide the provider.
//   Trusts the dynamic sections, as the dynamic linker has just done.
#ifndef LOAM_PROBE_OBJECTS_H
#define LOAM_PROBE_OBJECTS_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct object {
  const char* name;  // "" is the program itself
  ElfW(Addr) base;
  const ElfW(Phdr) * headers;
  size_t header_count;
  const char* strings;
  const ElfW(Sym) * symbols;
  const ElfW(Half) * versions;
  const uint32_t* gnu_hash;
  const uint32_t* sysv_hash;
  const char* soname;
};

// glibc rewrites the addresses in a dynamic section to absolute ones; the vdso's and other linkers' stay relative.
static const void* absolute(const struct object* object, ElfW(Addr) value) {
  return (const void*)(value < object->base ? object->base + value : value);
}

static bool describe(const struct dl_phdr_info* info, struct object* object) {
  *object = (struct object){
      .name = info->dlpi_name, .base = info->dlpi_addr, .headers = info->dlpi_phdr, .header_count = info->dlpi_phnum};
  const ElfW(Dyn)* dynamic = NULL;
  for (size_t i = 0; i < object->header_count; ++i)
    if (object->headers[i].p_type == PT_DYNAMIC) dynamic = (const void*)(object->base + object->headers[i].p_vaddr);
  if (dynamic == NULL) return false;
  ElfW(Xword) soname_at = 0;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    switch (dynamic->d_tag) {
      case DT_STRTAB:
        object->strings = absolute(object, dynamic->d_un.d_ptr);
        break;
      case DT_SYMTAB:
        object->symbols = absolute(object, dynamic->d_un.d_ptr);
        break;
      case DT_VERSYM:
        object->versions = absolute(object, dynamic->d_un.d_ptr);
        break;
      case DT_GNU_HASH:
        object->gnu_hash = absolute(object, dynamic->d_un.d_ptr);
        break;
      case DT_HASH:
        object->sysv_hash = absolute(object, dynamic->d_un.d_ptr);
        break;
      case DT_SONAME:
        soname_at = dynamic->d_un.d_val;
        break;
      default:
        break;
    }
  }
  if (object->strings == NULL || object->symbols == NULL) return false;
  if (soname_at != 0) object->soname = object->strings + soname_at;
  return true;
}

// A symbol that calls can bind to: defined here, not local, not hidden, in the default version.
static bool binds(const struct object* object, uint32_t index, const char* name) {
  const ElfW(Sym)* symbol = &object->symbols[index];
  const unsigned binding = ELF64_ST_BIND(symbol->st_info), visibility = ELF64_ST_VISIBILITY(symbol->st_other);
  if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0) return false;
  if (binding != STB_GLOBAL && binding != STB_WEAK && binding != STB_GNU_UNIQUE) return false;
  if (visibility == STV_HIDDEN || visibility == STV_INTERNAL) return false;
  if (object->versions != NULL && (object->versions[index] & 0x8000) != 0) return false;
  return strcmp(object->strings + symbol->st_name, name) == 0;
}

static const ElfW(Sym) * find_by_gnu_hash(const struct object* object, const char* name) {
  uint32_t hash = 5381;
  for (const char* c = name; *c != '\0'; ++c) hash = hash * 33 + (unsigned char)*c;
  const uint32_t bucket_count = object->gnu_hash[0], first = object->gnu_hash[1], bloom_words = object->gnu_hash[2];
  const uint32_t* buckets = object->gnu_hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* chain = buckets + bucket_count;
  if (bucket_count == 0) return NULL;
  for (uint32_t index = buckets[hash % bucket_count]; index >= first; ++index) {
    const uint32_t entry = chain[index - first];
    if ((entry | 1) == (hash | 1) && binds(object, index, name)) return &object->symbols[index];
    if ((entry & 1) != 0) break;
  }
  return NULL;
}

static const ElfW(Sym) * find(const struct object* object, const char* name) {
  if (object->gnu_hash != NULL) return find_by_gnu_hash(object, name);
  if (object->sysv_hash != NULL)
    for (uint32_t index = 1; index < object->sysv_hash[1]; ++index)  // [1] is the length of the chain = of the table
      if (binds(object, index, name)) return &object->symbols[index];
  return NULL;
}

#endif
