# libloam-malloc.so: malloc, operator new and their families over the heap. To preload or to link (loam::malloc).
# Not in builds with sanitizers, which bring a malloc of their own.
if(LOAM_SANITIZE)
  return()
endif()

# The layers below are compiled once more, for this library: a call less to each thread-local variable, and nothing of
# theirs shown. What is not called is left out (--gc-sections), so that no part that needs a C++ library comes along.
loam_layer_dependencies(malloc loam_malloc_layers)
set(loam_malloc_sources "")
foreach(layer IN LISTS loam_malloc_layers ITEMS malloc)
  loam_layer_sources(${layer} sources)
  list(APPEND loam_malloc_sources ${sources})
endforeach()

set(loam_malloc_script "${CMAKE_SOURCE_DIR}/cmake/loam-malloc.map")
add_library(loam-malloc SHARED ${loam_malloc_sources})
add_library(loam::malloc ALIAS loam-malloc)
target_link_libraries(loam-malloc PRIVATE $<BUILD_INTERFACE:loam-flags>)
target_include_directories(loam-malloc INTERFACE "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>")
target_compile_definitions(loam-malloc PRIVATE LOAM_MALLOC_VERSION="${PROJECT_VERSION}")
# -fno-builtin-*: GCC would make a call of calloc out of malloc and memset, in calloc itself.
# -fno-tree-slp-vectorize: GCC would move the two words of a freed block into a vector register to store them at once.
# -fasynchronous-unwind-tables: a new-handler's exception passes through operator new.
target_compile_options(loam-malloc PRIVATE
  $<$<NOT:$<CONFIG:Debug>>:-O3> -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free
  -fno-tree-slp-vectorize
  -ftls-model=initial-exec -fno-plt -fno-exceptions -fno-rtti
  -fasynchronous-unwind-tables -fvisibility=hidden -fvisibility-inlines-hidden -ffunction-sections -fdata-sections)
# -nodefaultlibs: no C++ library; GCC 12 has no -nostdlib++.  now: binding a symbol late takes locks and stack.
# nodelete: blocks outlive any dlclose().
target_link_options(loam-malloc PRIVATE -nodefaultlibs "LINKER:--version-script=${loam_malloc_script}" "LINKER:-z,defs"
                    "LINKER:-z,now" "LINKER:-z,nodelete" "LINKER:--gc-sections" "LINKER:--build-id=sha1")
target_link_libraries(loam-malloc PRIVATE c gcc)
set_target_properties(loam-malloc PROPERTIES LOAM_DEFINES_MALLOC ON LINK_DEPENDS "${loam_malloc_script}" EXPORT_NAME malloc)

set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} malloc=loam-malloc CACHE INTERNAL "")
