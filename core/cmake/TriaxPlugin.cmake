# For plugin authors, in this tree and outside it:
#   triax_add_plugin(comm-mine SOURCES src/comm.cpp [LINK MPI::MPI_CXX])
# builds comm-mine.so, which exports the door of triax/abi.h and nothing else, and is never unloaded.
# It is installed beside the engine's own plugins.

function(triax_add_plugin name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "triax_add_plugin(${name}): unknown arguments: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_SOURCES)
    message(FATAL_ERROR "triax_add_plugin(${name}): SOURCES is missing")
  endif()
  set(map ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map)
  add_library(${name} MODULE ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE triax::core ${ARG_LINK})
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_link_options(${name} PRIVATE "LINKER:-z,nodelete,--version-script=${map}")
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${map} INSTALL_RPATH "$ORIGIN/../..")
  if(triax_BINARY_DIR)
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${triax_BINARY_DIR}/lib/triax/plugins)
  endif()

  # Core and plugin have to agree on the sanitizer. In this tree it is a flag of every target.
  get_target_property(sanitize triax::core TRIAX_SANITIZE)
  get_target_property(imported triax::core IMPORTED)
  if(NOT sanitize) # a sanitizer's own symbols come from the host program
    target_link_options(${name} PRIVATE "LINKER:-z,defs")
  elseif(imported)
    string(REPLACE "address" "address,undefined" sanitize ${sanitize})
    target_compile_options(${name} PRIVATE -fsanitize=${sanitize})
    target_link_options(${name} PRIVATE -fsanitize=${sanitize})
  endif()
  install(TARGETS ${name} LIBRARY DESTINATION lib/triax/plugins)
  set_property(GLOBAL APPEND PROPERTY TRIAX_PLUGINS ${name})
endfunction()
