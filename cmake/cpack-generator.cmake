# SPDX-License-Identifier: Apache-2.0
# CPack reads this once for each generator. The archive, which is the bundle, is made of all components that are not for
# Debian; the Debian packages are groups of the others.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each package has its own
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY OFF)
  set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
  set(CPACK_COMPONENTS_ALL Unspecified debian development debian_development)
  set(CPACK_COMPONENT_UNSPECIFIED_GROUP program)
  set(CPACK_COMPONENT_DEBIAN_GROUP program)
  set(CPACK_COMPONENT_DEVELOPMENT_GROUP development)
  set(CPACK_COMPONENT_DEBIAN_DEVELOPMENT_GROUP development)
  if(CPACK_DEBIAN_CUDA_PACKAGE_NAME)
    list(APPEND CPACK_COMPONENTS_ALL cuda debian_cuda)
    set(CPACK_COMPONENT_CUDA_GROUP cuda)
    set(CPACK_COMPONENT_DEBIAN_CUDA_GROUP cuda)
  endif()
endif()
