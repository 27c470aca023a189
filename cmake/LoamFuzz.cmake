# heap_fuzz, managed_fuzz, delegation_fuzz: sequences of operations, found by clang's libFuzzer. LOAM_FUZZ: the preset `fuzz`.
# PART_fuzz_planted: a part with a planted fault.
#   LOAM_FUZZ_OVERLAY_PART  a folder whose runtime/... stands before that of the tree; part: open, guarded, managed, delegation
option(LOAM_FUZZ "fuzz targets; needs clang" OFF)
if(NOT LOAM_FUZZ)
  return()
endif()

# loam_fuzz_target(NAME PROGRAM LAYER OVERLAY): tests/fuzz/PROGRAM.cpp. The sources of the layer are compiled into the target,
# so that libFuzzer sees which of their branches an input takes; those of the overlay stand in the place of the tree's.
function(loam_fuzz_target name program layer overlay)
  loam_layer_sources(${layer} sources)
  set(own "")
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH relative "${CMAKE_SOURCE_DIR}" "${source}")
    if(overlay AND EXISTS "${overlay}/${relative}")
      list(APPEND own "${overlay}/${relative}")
    else()
      list(APPEND own "${source}")
    endif()
  endforeach()
  add_executable(${name} EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/fuzz/${program}.cpp" ${own})
  if(overlay)
    target_include_directories(${name} BEFORE PRIVATE "${overlay}")
    target_compile_options(${name} PRIVATE -w)  # a fault leaves things unused
  endif()
  loam_layer_dependencies(${layer} layers)
  list(REVERSE layers)
  list(TRANSFORM layers PREPEND loam-)
  target_link_libraries(${name} PRIVATE ${layers} loam-flags)
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}/include" "${LOAM_GENERATED}")  # as the layer itself
  target_compile_options(${name} PRIVATE -O1 -fno-builtin-malloc -fno-builtin-free -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()

loam_fuzz_target(heap_fuzz heap_fuzz heap "")
loam_fuzz_target(managed_fuzz managed_fuzz gc "")
loam_fuzz_target(delegation_fuzz delegation_fuzz delegation "")
function(loam_planted_fuzz_target part program layer)
  set(LOAM_FUZZ_OVERLAY_${part} "" CACHE PATH "sources with a fault planted in the part ${part}")
  if(LOAM_FUZZ_OVERLAY_${part})
    loam_fuzz_target(${part}_fuzz_planted ${program} ${layer} "${LOAM_FUZZ_OVERLAY_${part}}")
  endif()
endfunction()
loam_planted_fuzz_target(open heap_fuzz heap)
loam_planted_fuzz_target(guarded heap_fuzz heap)
loam_planted_fuzz_target(managed managed_fuzz gc)
loam_planted_fuzz_target(delegation delegation_fuzz delegation)
