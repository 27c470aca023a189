// glibc 2.34 dropped the malloc hooks that Hoard's wrapper sets at start; these take their place and nobody reads them.
#pragma once
#include <cstddef>

static void* (*__malloc_hook)(std::size_t, const void*);
static void (*__free_hook)(void*, const void*);
static void* (*__realloc_hook)(void*, std::size_t, const void*);
static void* (*__memalign_hook)(std::size_t, std::size_t, const void*);
