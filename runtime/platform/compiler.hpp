// What one compiler spells differently from another.
#pragma once

// A function whose calls are made as written: it is not copied into its callers, and they assume nothing of its body.
#ifdef __clang__
#define LOAM_CALLED_AS_WRITTEN [[gnu::noinline]]
#else
#define LOAM_CALLED_AS_WRITTEN [[gnu::noipa]]
#endif

// The attributes that make a declaration another name of a function. GCC warns where it lacks what the function has.
#ifdef __clang__
#define LOAM_ALIAS_OF(name, function) alias(name)
#else
#define LOAM_ALIAS_OF(name, function) alias(name), copy(function)
#endif
