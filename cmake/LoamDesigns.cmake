# The allocators of lab/design, each a shared object to preload: its own file, exported.cpp, operators.cpp, and the layers
# below, which are compiled once more as for libloam-malloc.so. In the preset `sim` they are instrumented: a part of the program.
if(LOAM_SANITIZE)
  return()
endif()
loam_layer_dependencies(malloc loam_design_layers)
set(loam_design_sources "")
foreach(layer IN LISTS loam_design_layers)
  loam_layer_sources(${layer} sources)
  list(APPEND loam_design_sources ${sources})
endforeach()

# loam_design_library(NAME): lab/design/NAME.cpp is libloam-NAME.so, build:NAME of allocators/*.toml
function(loam_design_library name)
  set(target loam-${name})
  add_library(${target} SHARED "${CMAKE_SOURCE_DIR}/lab/design/${name}.cpp" "${CMAKE_SOURCE_DIR}/lab/design/exported.cpp"
              "${CMAKE_SOURCE_DIR}/lab/design/operators.cpp"
              ${loam_design_sources})
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:loam-flags>)
  target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O3> -fno-builtin-malloc -fno-builtin-calloc
    -fno-builtin-realloc -fno-builtin-free -ftls-model=initial-exec -fno-plt -fno-exceptions -fno-rtti
    -fasynchronous-unwind-tables -fvisibility=hidden -fvisibility-inlines-hidden -ffunction-sections -fdata-sections)
  target_link_options(${target} PRIVATE -nodefaultlibs "LINKER:-z,defs" "LINKER:-z,now" "LINKER:-z,nodelete"
                      "LINKER:--gc-sections" "LINKER:--build-id=sha1")
  target_link_libraries(${target} PRIVATE c gcc)
  set_target_properties(${target} PROPERTIES LOAM_DEFINES_MALLOC ON)
  set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} ${name}=${target} CACHE INTERNAL "")
endfunction()

loam_design_library(pool)
loam_design_library(design)
