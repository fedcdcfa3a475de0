# SPDX-License-Identifier: Apache-2.0
# The test of triax_add_plan_test() (TriaxRunTest.cmake), which sets TRIAX, LIBRARY, RUN, CLUSTER, GPUS and WORK.
cmake_minimum_required(VERSION 3.25)

# Runs a command of triax, and stores what it prints. If it fails, the test fails with that.
function(triax out)
  execute_process(COMMAND ${TRIAX} ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE error)
  if(NOT status STREQUAL "0")
    list(JOIN ARGN " " arguments)
    message("triax ${arguments}\n${output}${error}exit status: ${status}")
    message(FATAL_ERROR "a command of triax failed")
  endif()
  set(${out} "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
triax(described plugins describe ${LIBRARY})
triax(planned plan ${RUN} --cluster ${CLUSTER} --gpus ${GPUS} --planner ${LIBRARY})
string(FIND "${planned}" "\ninclude = " begin)
if(begin EQUAL -1)
  message("${planned}")
  message(FATAL_ERROR "triax plan has printed no TOML file")
endif()
string(SUBSTRING "${planned}" ${begin} -1 toml)
file(WRITE ${WORK}/planned.toml "${toml}")
triax(checked check ${WORK}/planned.toml --no-device)
