# SPDX-License-Identifier: Apache-2.0
# The test of triax_add_plan_test() (TriaxRunTest.cmake), which sets TRIAX, LIBRARY, RUN, CLUSTER, GPUS and WORK.
cmake_minimum_required(VERSION 3.25)

include(${CMAKE_CURRENT_LIST_DIR}/triax-command.cmake)

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
triax(plugins describe ${LIBRARY})
triax(plan ${RUN} --cluster ${CLUSTER} --gpus ${GPUS} --planner ${LIBRARY})
set(planned "${triax_output}")
string(FIND "${planned}" "\ninclude = " begin)
if(begin EQUAL -1)
  message("${planned}")
  message(FATAL_ERROR "triax plan has printed no TOML file")
endif()
string(SUBSTRING "${planned}" ${begin} -1 toml)
file(WRITE ${WORK}/planned.toml "${toml}")
triax(check ${WORK}/planned.toml --no-device)
