// scalloc maps 1 TiB at its start, which Linux refuses unless it may leave open whether there is memory for it.
#pragma once
#include <sys/mman.h>

#undef MAP_PRIVATE
#define MAP_PRIVATE (0x02 | MAP_NORESERVE)
