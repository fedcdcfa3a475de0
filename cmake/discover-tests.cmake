# SPDX-License-Identifier: Apache-2.0
# ctest runs this at its start, once per test program. If the program, this file or the one that includes it is newer
# than the file of entries, writes the entries; then reads them. See triax_discover_tests(). Variables: program, folder
# (working directory), prefix (of names), labels, environment, launcher (list; may be empty), entries (the file).

if(NOT EXISTS "${program}")
  cmake_path(GET program FILENAME name)
  add_test("${name}_NOT_BUILT" "${name}_NOT_BUILT")
  return()
endif()

if("${program}" IS_NEWER_THAN "${entries}" OR "${CMAKE_PARENT_LIST_FILE}" IS_NEWER_THAN "${entries}"
   OR "${CMAKE_CURRENT_LIST_FILE}" IS_NEWER_THAN "${entries}")
  execute_process(COMMAND "${program}" --gtest_list_tests WORKING_DIRECTORY "${folder}" TIMEOUT 60
    OUTPUT_VARIABLE listing ERROR_VARIABLE problem RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${program} --gtest_list_tests: ${result}\n${listing}${problem}")
  endif()

  set(script "")
  set(names "")
  string(REGEX REPLACE " *#[^\n]*" "" listing "${listing}") # values of parameters
  string(REPLACE "\n" ";" lines "${listing}")
  foreach(line IN LISTS lines)
    if(line MATCHES "^([^ ]+)\\.$")
      set(suite "${CMAKE_MATCH_1}")
    elseif(line MATCHES "^  ([^ ]+)$")
      set(name "${suite}.${CMAKE_MATCH_1}")
      set(filter "${name}")
      if(suite MATCHES "/" OR "${labels}" MATCHES "(^|;)unit(;|$)") # "/": parameterized
        set(name "${suite}")
        set(filter "${suite}.*")
      elseif(line MATCHES "^  ([^ .]+)\\.")
        set(name "${suite}.${CMAKE_MATCH_1}")
        set(filter "${name}.*")
      endif()
      list(FIND names "${name}" listed)
      if(NOT listed EQUAL -1 OR "${suite}${line}" MATCHES "DISABLED_")
        continue()
      endif()
      list(APPEND names "${name}")
      set(command "")
      if(NOT name MATCHES "NoDriver|WithoutADriver")
        foreach(part IN LISTS launcher)
          string(APPEND command "[==[${part}]==] ")
        endforeach()
      endif()
      string(APPEND script
        "add_test([==[${prefix}${name}]==] ${command}[==[${program}]==] [==[--gtest_filter=${filter}]==])\n"
        "set_tests_properties([==[${prefix}${name}]==] PROPERTIES WORKING_DIRECTORY [==[${folder}]==] TIMEOUT 300 "
        "LABELS [==[${labels}]==] ENVIRONMENT_MODIFICATION [==[${environment}]==] "
        # All tests were skipped, and none failed.
        "SKIP_REGULAR_EXPRESSION [==[PASSED  \\] 0 tests\\.\n(\\[  SKIPPED \\][^\n]*\n)+$]==])\n")
    endif()
  endforeach()
  # In one piece: another ctest may read the file now.
  string(RANDOM LENGTH 12 suffix)
  file(WRITE "${entries}.${suffix}" "${script}")
  file(RENAME "${entries}.${suffix}" "${entries}")
endif()
include("${entries}")
