# SPDX-License-Identifier: Apache-2.0
# Debian packages, made with `cpack -G DEB`: triax; triax-dev, for authors of plugins; and triax-cuda, where the CUDA
# parts are built. dpkg-shlibdeps finds the libraries that they depend on.

# triax_debian_documents(package component): the copyright and changelog that Debian requires of each package.
function(triax_debian_documents package component)
  install(FILES packaging/debian/copyright ${CMAKE_CURRENT_BINARY_DIR}/debian/changelog.Debian.gz
    ${CMAKE_CURRENT_BINARY_DIR}/debian/changelog.gz
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES packaging/debian/${package}.overrides RENAME ${package}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

# triax_debian_shlibs(package library): a control file for dpkg-shlibdeps: packages that need the library depend on this
# version of the package. CPack makes one, too, and warns of each plugin, because plugins have no soname.
function(triax_debian_shlibs package library)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/debian/${package}/shlibs @ONLY
    CONTENT "${library} @PROJECT_VERSION_MAJOR@.@PROJECT_VERSION_MINOR@ ${package} (= @PROJECT_VERSION@-1)\n")
endfunction()

# Writes what the packages contain beside the installation.
function(triax_make_debian_documents)
  find_program(GZIP_PROGRAM gzip REQUIRED)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/debian)
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH, if it is set
  configure_file(packaging/debian/changelog.in ${folder}/changelog.Debian @ONLY)
  configure_file(CHANGELOG.md ${folder}/changelog COPYONLY)
  execute_process(COMMAND ${GZIP_PROGRAM} -9nkf changelog.Debian changelog WORKING_DIRECTORY ${folder}
    COMMAND_ERROR_IS_FATAL ANY)
  file(CREATE_LINK ../../triax/examples ${folder}/examples SYMBOLIC)
endfunction()

# Fields of the packages. CPack reads them for its DEB generator; cmake/cpack-generator.cmake selects the components.
# A macro: include(CPack) has to see the variables.
macro(triax_debian_packages)
  if(NOT CPACK_PACKAGE_CONTACT)
    set(CPACK_PACKAGE_CONTACT "Triax maintainers <maintainers@triax.invalid>")
  endif()
  triax_make_debian_documents()
  triax_debian_documents(triax debian)
  triax_debian_shlibs(triax libtriax_core)
  triax_debian_documents(triax-dev debian_development)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/debian/examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
    COMPONENT debian EXCLUDE_FROM_ALL)
  install(FILES ${PROJECT_BINARY_DIR}/share/zsh/site-functions/_triax
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT debian EXCLUDE_FROM_ALL)

  set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/cpack-generator.cmake)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
  set(CPACK_DEBIAN_PACKAGE_SECTION science)
  set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
  set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
  set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)

  set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME triax)
  set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "trains GPT models with pipeline, tensor and data parallelism
A run is one TOML file, which names plugins: communicator, pipeline schedule,
kernel set, model and optimizer. This package has the program and the plugins
that need no GPU, manual pages, completions, examples and documentation.")

  set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_BINARY_DIR}/debian/triax/shlibs)

  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME triax-dev)
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "headers for plugins of triax
Headers and CMake package for shared libraries that triax loads:
communicators, pipeline schedules, kernel sets, models and optimizers. If it
was built with CUDA, it also has the GPU stand-in, which tests plugins for
GPUs on machines without one.")
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "triax (= ${PROJECT_VERSION}-1)")

  if(TRIAX_WITH_CUDA)
    triax_debian_documents(triax-cuda debian_cuda)
    triax_debian_shlibs(triax-cuda libtriax_cuda)
    list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CUDAToolkit_LIBRARY_DIR})
    set(CPACK_DEBIAN_CUDA_PACKAGE_NAME triax-cuda)
    set(CPACK_DEBIAN_CUDA_DESCRIPTION "plugins of triax for NVIDIA GPUs
Kernel sets and communicators for GPUs, and the headers for plugins that
compute on GPUs. They need the driver and the libraries of a CUDA 13 runtime.")
    set(CPACK_DEBIAN_CUDA_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_BINARY_DIR}/debian/triax-cuda/shlibs)
    set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "triax (= ${PROJECT_VERSION}-1)")
  endif()
endmacro()
