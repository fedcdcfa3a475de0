# SPDX-License-Identifier: Apache-2.0
# The bundle: an archive, made with CPack, that runs on machines where nothing can be installed (docs/bundle.md). It
# contains the installation and a separate component: tests, benchmarks, and the libraries that all of them need, except
# glibc and NVIDIA's.

# triax_bundle_program(target): adds a test or benchmark to the bundle.
function(triax_bundle_program name)
  triax_look_around(${name})
  install(TARGETS ${name} RUNTIME DESTINATION bin COMPONENT bundle EXCLUDE_FROM_ALL)
  set_property(GLOBAL APPEND PROPERTY TRIAX_BUNDLED ${name})
endfunction()

# triax_look_around(target): makes a program find its libraries, and their dependencies, in the folder lib beside its
# own. Uses DT_RPATH, because DT_RUNPATH does not apply to dependencies of libraries.
function(triax_look_around name)
  set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  target_link_options(${name} PRIVATE LINKER:--disable-new-dtags)
endfunction()

# Call it once, after all targets.
function(triax_finish_bundle)
  get_property(programs GLOBAL PROPERTY TRIAX_BUNDLED)
  get_property(plugins GLOBAL PROPERTY TRIAX_PLUGINS)
  add_custom_target(bundle DEPENDS triax triax_pages ${plugins} ${programs} $<TARGET_NAME_IF_EXISTS:gpu_stand_in>)
  install(PROGRAMS scripts/gpu-check scripts/cuda-libraries scripts/bench-attention scripts/bench-gpt DESTINATION scripts
    COMPONENT bundle EXCLUDE_FROM_ALL)
  install(FILES benchmarks/gpt_runs.py DESTINATION benchmarks COMPONENT bundle EXCLUDE_FROM_ALL)
  install(FILES docs/bundle.md DESTINATION . RENAME README.md COMPONENT bundle EXCLUDE_FROM_ALL)

  # UCX finds its transports in the folder `ucx` beside its libraries.
  find_library(UCX_UCS_LIBRARY ucs)
  if(UCX_UCS_LIBRARY)
    file(REAL_PATH "${UCX_UCS_LIBRARY}" ucs)
    cmake_path(GET ucs PARENT_PATH folder)
    file(GLOB modules "${folder}/ucx/*.so.0")
    foreach(module IN LISTS modules)
      cmake_path(GET module FILENAME name)
      file(REAL_PATH "${module}" file)
      install(FILES "${file}" DESTINATION lib/ucx RENAME "${name}" COMPONENT bundle EXCLUDE_FROM_ALL)
    endforeach()
  endif()

  list(TRANSFORM programs REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE program_files)
  list(TRANSFORM plugins REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE plugin_files)
  install(CODE "set(programs \"$<TARGET_FILE:triax>;${program_files}\")
    set(modules \"$<TARGET_FILE:triax_core>;${plugin_files}\")
    set(build \"${PROJECT_BINARY_DIR}\")
    include(\"${triax_SOURCE_DIR}/cmake/install-libraries.cmake\")" COMPONENT bundle EXCLUDE_FROM_ALL)

  set(CPACK_GENERATOR TXZ) # test programs have much code in common, which xz finds and gzip does not
  set(CPACK_THREADS 0)     # all cores compress
  set(CPACK_PACKAGE_FILE_NAME "triax-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")
  set(CPACK_COMPONENTS_ALL Unspecified outside_debian development cuda bundle)
  set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
  set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_VERBATIM_VARIABLES ON)
  triax_debian_packages()
  include(CPack)
endfunction()
