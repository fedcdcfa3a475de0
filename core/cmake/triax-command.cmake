# SPDX-License-Identifier: Apache-2.0
# For the scripts of tests: runs a command of the program TRIAX. If it fails, the test fails with what it has printed.
# Sets triax_output in the caller to what it prints on its standard output.
function(triax)
  execute_process(COMMAND ${TRIAX} ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE error)
  if(NOT status STREQUAL "0")
    list(JOIN ARGN " " arguments)
    message("triax ${arguments}\n${output}${error}exit status: ${status}")
    message(FATAL_ERROR "a command of triax failed")
  endif()
  set(triax_output "${output}" PARENT_SCOPE)
endfunction()
