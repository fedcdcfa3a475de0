# SPDX-License-Identifier: Apache-2.0
# Part of installing a bundle: copies what `programs` and `modules` need into lib, but for what was built in `build` and
# what belongs to the machine they will run on: glibc, and NVIDIA's libraries.
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${programs} MODULES ${modules}
  RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES "^libcu" "^libnccl" "^libnv" "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv|util)[.]so"
  POST_EXCLUDE_REGEXES "^${build}/")
if(missing)
  message(FATAL_ERROR "the bundle needs libraries that are not on this machine: ${missing}")
endif()
file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/lib" TYPE SHARED_LIBRARY FOLLOW_SYMLINK_CHAIN FILES ${found})
