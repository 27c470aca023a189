# libitm.so.1: the interface of GCC's transactional memory over our algorithms, in a folder of its own, so that the folder
# in front of LD_LIBRARY_PATH is all that replaces GCC's library (docs/libitm.md). Not where the thread sanitizer or the
# simulator must see each jump, because they know nothing of a function that returns twice; on x86-64 alone, whose begin is
# written.
if("${LOAM_SANITIZE}" MATCHES "thread" OR LOAM_SIMULATED OR NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  return()
endif()
loam_layer_sources(itm loam_itm_sources)
loam_layer_dependencies(itm loam_itm_layers)
list(REVERSE loam_itm_layers)
list(TRANSFORM loam_itm_layers PREPEND loam-)
set(loam_itm_script "${CMAKE_SOURCE_DIR}/cmake/loam-itm.map")
add_library(loam-itm SHARED ${loam_itm_sources})
target_link_libraries(loam-itm PRIVATE ${loam_itm_layers})
target_compile_options(loam-itm PRIVATE -O3 -fno-builtin-malloc -fno-builtin-free -ftls-model=initial-exec -fvisibility=hidden
                       -fvisibility-inlines-hidden -Wno-psabi)
target_link_options(loam-itm PRIVATE "LINKER:--version-script=${loam_itm_script}" "LINKER:-z,defs" "LINKER:-z,now"
                    "LINKER:-z,nodelete" "LINKER:--build-id=sha1")
# The file itself has the name that programs ask for: a link beside it would be missing where the file alone is built.
set_target_properties(loam-itm PROPERTIES OUTPUT_NAME itm SUFFIX .so.1 LINK_DEPENDS "${loam_itm_script}"
                      LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/itm")
set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} itm=loam-itm CACHE INTERNAL "")
