# What is compiled twice comes from ccache, or sccache, where one is installed: a second clean build, with ccache also one
# of another checkout. Another launcher (CMAKE_CXX_COMPILER_LAUNCHER, also from the environment) stays; an empty
# one switches this off.
if(DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  return()
endif()
find_program(LOAM_CCACHE ccache)
find_program(LOAM_SCCACHE sccache)
if(LOAM_CCACHE)
  # Without the first and the last it would compile whatever includes a precompiled header each time (ccache's manual, for
  # GCC). Without the second a compile that is new to it would be preprocessed twice.
  set(loam_launcher env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}"
      "${LOAM_CCACHE}")
  add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fpch-preprocess>)
  # Objects name files from the root of the checkout, so that they are the same in every checkout. A debugger that is
  # started there finds the sources. Of two maps that match, GCC takes the last.
  add_compile_options("-ffile-prefix-map=${CMAKE_SOURCE_DIR}=." "-fdebug-prefix-map=${CMAKE_BINARY_DIR}=.")
  # Later versions hand the compiler the path of a source from the folder of the build.
  execute_process(COMMAND "${LOAM_CCACHE}" --version OUTPUT_VARIABLE loam_ccache_version ERROR_QUIET)
  if("${loam_ccache_version}" MATCHES "ccache version ([0-9.]+)" AND CMAKE_MATCH_1 VERSION_GREATER 4.8)
    cmake_path(RELATIVE_PATH CMAKE_SOURCE_DIR BASE_DIRECTORY "${CMAKE_BINARY_DIR}" OUTPUT_VARIABLE loam_source_from_build)
    add_compile_options("-ffile-prefix-map=${loam_source_from_build}=.")
  endif()
elseif(LOAM_SCCACHE)
  set(loam_launcher "${LOAM_SCCACHE}")
else()
  return()
endif()
set(CMAKE_C_COMPILER_LAUNCHER ${loam_launcher})
set(CMAKE_CXX_COMPILER_LAUNCHER ${loam_launcher})
