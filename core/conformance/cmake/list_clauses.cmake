# SPDX-License-Identifier: Apache-2.0
# Writes clauses() of triax/conformance/clause.hpp: every comment of a public header that begins with an id such as
# [C7], with its line, and the struct that follows the comment.
# Usage: cmake -D INCLUDE=FOLDER -D OUTPUT=FILE -P list_clauses.cmake
file(GLOB headers RELATIVE ${INCLUDE} ${INCLUDE}/triax/*.hpp)
set(rows "")
set(id "")

# Ends the clause that is being read. `of`: the struct behind it.
macro(end_clause of)
  if(id)
    string(REPLACE "\\" "\\\\" sentence "${sentence}")
    string(REPLACE "\"" "\\\"" sentence "${sentence}")
    string(APPEND rows "    {\"${id}\", \"${sentence}\", \"${header}\", ${begin}, \"${of}\"},\n")
  endif()
  set(id "")
endmacro()

foreach(header IN LISTS headers)
  file(READ ${INCLUDE}/${header} rest)
  if(NOT rest MATCHES "// \\[[A-Z][0-9]+\\] ")
    continue()
  endif()
  # CMake's lists give brackets and semicolons a meaning, so lines are cut one by one.
  set(number 0)
  while(NOT rest STREQUAL "")
    string(FIND "${rest}" "\n" end)
    if(end EQUAL -1)
      break()
    endif()
    string(SUBSTRING "${rest}" 0 ${end} line)
    math(EXPR behind "${end} + 1")
    string(SUBSTRING "${rest}" ${behind} -1 rest)
    math(EXPR number "${number} + 1")
    if(line MATCHES "^ *///? \\[([A-Z][0-9]+)\\] (.+)$")
      set(next_id "${CMAKE_MATCH_1}")
      set(next_sentence "${CMAKE_MATCH_2}")
      end_clause("")
      set(id "${next_id}")
      set(sentence "${next_sentence}")
      set(begin ${number})
    elseif(id AND line MATCHES "^ *///?  +([^ ].*)$")
      string(APPEND sentence " ${CMAKE_MATCH_1}")
    elseif(line MATCHES "^struct ([A-Za-z0-9_]+) ")
      end_clause("${CMAKE_MATCH_1}")
    else()
      end_clause("")
    endif()
  endwhile()
  end_clause("")
endforeach()

string(CONFIGURE [[
// SPDX-License-Identifier: Apache-2.0
// Written by core/conformance/cmake/list_clauses.cmake.
#include "triax/conformance/clause.hpp"

namespace triax::conformance {

std::span<const Clause> clauses() noexcept {
  static constexpr Clause kClauses[] = {
@rows@  };
  return kClauses;
}

} // namespace triax::conformance
]] source @ONLY)
file(WRITE ${OUTPUT} "${source}")
