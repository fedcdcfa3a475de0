# SPDX-License-Identifier: Apache-2.0
# For plugin authors, with an installed Triax:
#   triax_add_run_test(sched-mine RUN run.toml TEXT README.md SAME_LOSSES schedule.plugin=sched-gpipe)
# adds a test that checks and trains RUN with the plugin of this build folder. TEXT becomes the training data: each of
# its bytes is a token. With SAME_LOSSES it trains once more with these settings, and with BASELINE the run of another
# TOML file; losses and gradient norms must then have the same bits. GPU: without a GPU, the test runs on the GPU
# stand-in; where that is not installed, it is skipped.
#
#   triax_add_plan_test(plan-mine RUN run.toml CLUSTER ${triax_CLUSTERS}/a100-dgx.toml GPUS 8)
# adds a test that plans RUN with the planner of this build folder; triax check must accept the plan. triax_CLUSTERS is
# the folder of the cluster files of Triax.

set(triax_run_test_script ${CMAKE_CURRENT_LIST_DIR}/run-test.cmake)
set(triax_plan_test_script ${CMAKE_CURRENT_LIST_DIR}/plan-test.cmake)

function(triax_add_run_test name)
  cmake_parse_arguments(ARG "GPU" "RUN;TEXT;BASELINE" "SAME_LOSSES" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_RUN OR NOT ARG_TEXT)
    message(FATAL_ERROR "triax_add_run_test(${name}): RUN and TEXT are needed; unknown arguments: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  set(library "")
  if(TARGET ${name})
    set(library $<TARGET_FILE:${name}>)
  endif()
  string(REPLACE ";" "," same_losses "${ARG_SAME_LOSSES}")
  add_test(NAME ${name}.run COMMAND ${CMAKE_COMMAND} -DTRIAX=${triax_PROGRAM} -DLIBRARY=${library} -DGPU=${ARG_GPU}
    -DRUN=${CMAKE_CURRENT_SOURCE_DIR}/${ARG_RUN} -DTEXT=${CMAKE_CURRENT_SOURCE_DIR}/${ARG_TEXT}
    -DBASELINE=${ARG_BASELINE} -DSAME_LOSSES=${same_losses} -DPLUGINS=${CMAKE_CURRENT_BINARY_DIR}
    -DWORK=${CMAKE_CURRENT_BINARY_DIR}/run-test -P ${triax_run_test_script})
  set_tests_properties(${name}.run PROPERTIES TIMEOUT 300 SKIP_REGULAR_EXPRESSION "^skipped: ")
endfunction()

function(triax_add_plan_test name)
  cmake_parse_arguments(ARG "" "RUN;CLUSTER;GPUS" "" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_RUN OR NOT ARG_CLUSTER OR NOT ARG_GPUS)
    message(FATAL_ERROR "triax_add_plan_test(${name}): RUN, CLUSTER and GPUS are needed; unknown arguments: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  cmake_path(ABSOLUTE_PATH ARG_CLUSTER BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  add_test(NAME ${name}.plan COMMAND ${CMAKE_COMMAND} -DTRIAX=${triax_PROGRAM} -DLIBRARY=$<TARGET_FILE:${name}>
    -DRUN=${CMAKE_CURRENT_SOURCE_DIR}/${ARG_RUN} -DCLUSTER=${ARG_CLUSTER} -DGPUS=${ARG_GPUS}
    -DWORK=${CMAKE_CURRENT_BINARY_DIR}/plan-test -P ${triax_plan_test_script})
  set_tests_properties(${name}.plan PROPERTIES TIMEOUT 300)
endfunction()
