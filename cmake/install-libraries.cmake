# SPDX-License-Identifier: Apache-2.0
# Part of installing a bundle: copies the libraries that `programs` and `modules` need to lib, except those built in
# `build`, and except glibc and NVIDIA's libraries, which the target machine has.
string(REGEX REPLACE "([][+.*()^$?|])" "\\\\\\1" build_pattern "${build}") # the folder may be named c++
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${programs} MODULES ${modules}
  RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES "^libcu" "^libnccl" "^libnv" "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv|util)[.]so"
  POST_EXCLUDE_REGEXES "^${build_pattern}/")
if(missing)
  message(FATAL_ERROR "the bundle needs libraries that are not on this machine: ${missing}")
endif()
file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/lib" TYPE SHARED_LIBRARY FOLLOW_SYMLINK_CHAIN FILES ${found})

# The license texts of these libraries, and of the headers that the programs contain (THIRD_PARTY_NOTICES.md). Debian's
# packages have them; some refer to a text in common-licenses. dpkg knows a file by one of two paths, with or without
# /usr.
set(licenses "${CMAKE_INSTALL_PREFIX}/share/doc/triax/licenses")
foreach(library IN LISTS found ITEMS /usr/include/boost/dll/shared_library.hpp /usr/include/CLI/CLI.hpp
    /usr/include/nlohmann/json.hpp /usr/include/gtest/gtest.h)
  file(REAL_PATH "${library}" file)
  string(REGEX REPLACE "^/usr" "" short "${file}")
  set(text "")
  execute_process(COMMAND dpkg-query -S "${file}" "${short}" OUTPUT_VARIABLE owner ERROR_QUIET RESULT_VARIABLE ignored)
  if(owner MATCHES "^([^:, ]+)")
    set(package ${CMAKE_MATCH_1})
    set(text /usr/share/doc/${package}/copyright)
  endif()
  if(text AND EXISTS ${text})
    file(REAL_PATH ${text} text)
    file(INSTALL DESTINATION "${licenses}" TYPE FILE RENAME ${package} FILES ${text})
  elseif(EXISTS "${file}")
    message(WARNING "the license text of ${library} was not found: add it to ${licenses} before you distribute the bundle")
  endif()
endforeach()
foreach(text Apache-2.0 GPL-3 LGPL-2.1)
  if(EXISTS /usr/share/common-licenses/${text})
    file(INSTALL DESTINATION "${licenses}/common-licenses" TYPE FILE FILES /usr/share/common-licenses/${text})
  endif()
endforeach()
