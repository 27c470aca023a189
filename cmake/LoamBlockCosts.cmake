# Block costs (preset sim-blocks): the plug-in simulator/plugin/block_costs.cpp, compiled while CMake configures, because
# everything else is compiled with it. Where GCC or its plug-in's headers are missing (Debian: gcc-12-plugin-dev), accesses alone
# are charged, and each result says so.
#   LOAM_PLUGIN_INCLUDE  a folder with gcc-plugin.h, where the compiler does not know of one
function(loam_block_costs target)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    message(WARNING "block costs: ${CMAKE_CXX_COMPILER_ID} loads no plug-in of GCC; accesses alone are charged")
    return()
  endif()
  if(NOT LOAM_PLUGIN_INCLUDE)
    execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=plugin OUTPUT_VARIABLE folder
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(LOAM_PLUGIN_INCLUDE "${folder}/include")
  endif()
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -dumpfullversion OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(source "${CMAKE_SOURCE_DIR}/simulator/plugin/block_costs.cpp")
  set(plugin "${CMAKE_BINARY_DIR}/loam-block-costs.so")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  execute_process(
    COMMAND "${CMAKE_CXX_COMPILER}" -std=c++17 -O2 -shared -fPIC -fno-rtti -Wno-literal-suffix
            -DLOAM_GCC_VERSION="${version}" -isystem "${LOAM_PLUGIN_INCLUDE}" -o "${plugin}" "${source}"
    RESULT_VARIABLE failed ERROR_VARIABLE problem)
  if(failed)
    string(SUBSTRING "${problem}" 0 400 problem)
    message(WARNING "block costs: the plug-in does not compile, so accesses alone are charged; install gcc-12-plugin-dev or "
                    "set LOAM_PLUGIN_INCLUDE (${problem})")
    return()
  endif()
  target_compile_options(${target} INTERFACE -fplugin=${plugin})
  target_compile_definitions(${target} INTERFACE LOAM_BLOCK_COSTS=1)
  set(LOAM_BLOCK_COSTS TRUE PARENT_SCOPE)
endfunction()
