# The lab's native parts: the interposition probe, and the allocators with a planted slow-down that the tests measure.
set(LOAM_LAB_LIBRARIES "" CACHE INTERNAL "name=target of every shared object the lab loads")
if(EXISTS "${CMAKE_SOURCE_DIR}/lab/probe/probe.c")
  add_library(loam-probe SHARED "${CMAKE_SOURCE_DIR}/lab/probe/probe.c")
  target_compile_options(loam-probe PRIVATE -Wall -Wextra -Werror -O2)
  target_link_libraries(loam-probe PRIVATE ${CMAKE_DL_LIBS})
  set(LOAM_LAB_LIBRARIES "probe=loam-probe" CACHE INTERNAL "")
endif()
# Measures which processors share a core, for `loam doctor`.
add_executable(loam-siblings "${CMAKE_SOURCE_DIR}/lab/probe/siblings.cpp")
target_link_libraries(loam-siblings PRIVATE loam-platform)
set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} siblings=loam-siblings CACHE INTERNAL "")
# A program of known length: hardware counters are believed only after they counted it.
add_executable(loam-counted-loop "${CMAKE_SOURCE_DIR}/lab/probe/counted_loop.c")
target_compile_options(loam-counted-loop PRIVATE -Wall -Wextra -Werror -O2)
target_link_libraries(loam-counted-loop PRIVATE Threads::Threads)
set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} counted-loop=loam-counted-loop CACHE INTERNAL "")
# A model of translation buffers, fed by valgrind: where hardware counters do not count their misses.
add_executable(loam-tlb "${CMAKE_SOURCE_DIR}/lab/probe/tlb.cpp")
target_compile_options(loam-tlb PRIVATE -Wall -Wextra -Werror -O2)
set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} tlb=loam-tlb CACHE INTERNAL "")
# Makes mistakes with memory, for allocators to find.
add_executable(loam-corruption "${CMAKE_SOURCE_DIR}/lab/probe/corruption.c")
target_compile_options(loam-corruption PRIVATE -Wall -Wextra -Werror -O1 -fno-builtin -Wno-use-after-free
                       -Wno-free-nonheap-object)
set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} corruption=loam-corruption CACHE INTERNAL "")
# Frees its memory, then sleeps: how much stays resident?
add_executable(loam-idle "${CMAKE_SOURCE_DIR}/lab/probe/idle.c")
target_compile_options(loam-idle PRIVATE -Wall -Wextra -Werror -O1 -fno-builtin)
set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} idle=loam-idle CACHE INTERNAL "")
# The allocator `bump`: what paper 001 measured its schemes with.
add_library(loam-bump SHARED "${CMAKE_SOURCE_DIR}/lab/bump/bump.c")
target_compile_options(loam-bump PRIVATE -Wall -Wextra -Werror -O2 -fvisibility=hidden -fno-plt -fno-builtin-malloc -fno-builtin-calloc
                       -fno-builtin-realloc -fno-builtin-free -fno-builtin-aligned_alloc)
target_link_libraries(loam-bump PRIVATE Threads::Threads)
target_link_options(loam-bump PRIVATE "LINKER:--build-id=sha1")
set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} bump=loam-bump CACHE INTERNAL "")
# In front of an allocator: what a program asks of it is counted, or written into a trace; and who asks it again.
# -nodefaultlibs: no C++ library, which would bring operators of its own into the measured process.
# A mode is a file; profile-sample is profile.cpp without the part that looks at every block.
function(loam_interposer mode source)
  add_library(loam-${mode} SHARED "${CMAKE_SOURCE_DIR}/lab/interposer/${source}.cpp")
  target_compile_options(loam-${mode} PRIVATE
    -Wall -Wextra -Werror -O3 -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free
    -ftls-model=initial-exec -fno-plt -fno-exceptions -fno-rtti -fasynchronous-unwind-tables -fvisibility=hidden)
  target_link_options(loam-${mode} PRIVATE -nodefaultlibs)
  # gcc_s walks stacks, m has the logarithm of sampling; neither is linked where it is not used.
  target_link_libraries(loam-${mode} PRIVATE -Wl,--as-needed c m gcc_s gcc)
  set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} ${mode}=loam-${mode} CACHE INTERNAL "")
endfunction()
foreach(mode profile profile-sample record stacks)
  string(REPLACE "-sample" "" source ${mode})
  loam_interposer(${mode} ${source})
endforeach()
target_compile_definitions(loam-profile-sample PRIVATE LOAM_SAMPLED)
# Which cache lines threads share. It decodes instructions of x86-64, by Zydis, which is installed when it is first asked for.
find_library(LOAM_ZYDIS Zydis)
find_path(LOAM_ZYDIS_HEADER Zydis/Zydis.h)
if(LOAM_ZYDIS AND LOAM_ZYDIS_HEADER AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  loam_interposer(sharing sharing)
  target_include_directories(loam-sharing SYSTEM PRIVATE "${LOAM_ZYDIS_HEADER}")
  target_link_libraries(loam-sharing PRIVATE "${LOAM_ZYDIS}")
endif()
add_executable(loam-replay "${CMAKE_SOURCE_DIR}/lab/interposer/replay.cpp")
target_compile_options(loam-replay PRIVATE -Wall -Wextra -Werror -O2 -fno-builtin-malloc -fno-builtin-free)
target_link_libraries(loam-replay PRIVATE Threads::Threads)
set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} replay=loam-replay CACHE INTERNAL "")
# Programs that are compiled to be run under allocators: lab/programs/NAME.cpp. One that includes gmp.h needs GMP.
find_library(LOAM_GMP gmp)
find_path(LOAM_GMP_HEADER gmp.h)
file(GLOB loam_programs CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/lab/programs/*.cpp")
foreach(source IN LISTS loam_programs)
  get_filename_component(name "${source}" NAME_WE)
  file(STRINGS "${source}" needs_gmp REGEX "<gmp.h>")
  if(needs_gmp AND NOT (LOAM_GMP AND LOAM_GMP_HEADER))
    continue()
  endif()
  add_executable(loam-program-${name} "${source}")
  target_compile_options(loam-program-${name} PRIVATE -Wall -Wextra -Werror -O2)
  if(needs_gmp)
    target_link_libraries(loam-program-${name} PRIVATE "${LOAM_GMP}")
    target_include_directories(loam-program-${name} SYSTEM PRIVATE "${LOAM_GMP_HEADER}")
  endif()
  set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} program-${name}=loam-program-${name} CACHE INTERNAL "")
endforeach()
include("${CMAKE_SOURCE_DIR}/tests/planted/planted.cmake" OPTIONAL)
# Of the preset sim alone.
if(LOAM_SIMULATED)
  set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} simulator=loam-simulator CACHE INTERNAL "")
endif()
foreach(name IN LISTS LOAM_SIMULATED_PROGRAMS)
  loam_simulated_program(${name})
  set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} ${name}=${name} CACHE INTERNAL "")
endforeach()
