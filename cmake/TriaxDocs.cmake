# SPDX-License-Identifier: Apache-2.0
# Target docs: the API reference, web pages of the public headers and of docs/plugins. Built on request only.
#   cmake --build BUILD --target docs      writes BUILD/reference/html/index.html
find_program(DOXYGEN_EXECUTABLE doxygen)
find_package(Python3 3.9 COMPONENTS Interpreter QUIET)
if(NOT DOXYGEN_EXECUTABLE OR NOT Python3_Interpreter_FOUND)
  add_custom_target(docs
    COMMAND ${CMAKE_COMMAND} -E echo "docs: doxygen or python3 is missing: run scripts/install-deps --test, then configure again"
    COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
  return()
endif()

# triax_docs_list(result path...): absolute, as the settings of Doxygen want a list.
function(triax_docs_list result)
  list(TRANSFORM ARGN REPLACE "(.+)" "\"${triax_SOURCE_DIR}/\\1\"")
  list(JOIN ARGN " " text)
  set(${result} "${text}" PARENT_SCOPE)
endfunction()
set(triax_docs_headers core/include core/p2p/include core/reference_kernels/include core/conformance/include core/cuda/include)
triax_docs_list(triax_docs_prefixes ${triax_docs_headers})
triax_docs_list(triax_docs_input docs/plugins ${triax_docs_headers})
triax_docs_list(triax_docs_main_page docs/plugins/reference.md)
set(triax_docs_sources ${triax_SOURCE_DIR}/cmake/doxygen)
set(triax_docs_folder ${triax_BINARY_DIR}/reference)
configure_file(${triax_docs_sources}/Doxyfile.in ${triax_docs_folder}/Doxyfile @ONLY)

# The folder is removed first: Doxygen keeps pages of classes that are gone.
add_custom_target(docs
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${triax_docs_folder}/html ${triax_docs_folder}/xml
  COMMAND ${DOXYGEN_EXECUTABLE} ${triax_docs_folder}/Doxyfile
  COMMAND ${Python3_EXECUTABLE} ${triax_docs_sources}/check-documented ${triax_docs_folder}/xml
  COMMAND ${CMAKE_COMMAND} -E echo "the API reference is ${triax_docs_folder}/html/index.html"
  COMMENT "Making the API reference" VERBATIM)
