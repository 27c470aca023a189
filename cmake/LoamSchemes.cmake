# The delegation schemes are the files of runtime/delegation/schemes/. This makes LOAM_GENERATED/runtime/delegation/schemes.hpp,
# which names all of them as loam::delegation::Schemes, and lists them in LOAM_SCHEME_HEADERS.
# Also a script: cmake -DLOAM_SOURCE=. -DLOAM_GENERATED=FOLDER -P cmake/LoamSchemes.cmake
include("${CMAKE_CURRENT_LIST_DIR}/LoamAlgorithms.cmake")

file(GLOB LOAM_SCHEME_HEADERS ${on_change} "${LOAM_SOURCE}/runtime/delegation/schemes/*.hpp")
loam_class_list(runtime/delegation/schemes includes classes ${LOAM_SCHEME_HEADERS})
file(CONFIGURE OUTPUT "${LOAM_GENERATED}/runtime/delegation/schemes.hpp" CONTENT "// Made by cmake/LoamSchemes.cmake: all schemes.
#pragma once

#include \"runtime/delegation/scheme_list.hpp\"
${includes}
namespace loam::delegation {

using Schemes = SchemeList<${classes}>;

}  // namespace loam::delegation
")
