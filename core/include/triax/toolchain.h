/* SPDX-License-Identifier: Apache-2.0 */
/* TRIAX_TOOLCHAIN: the properties in which two C++ libraries must agree to share classes, as text.
 *
 * Must be equal: the library family, its string ABI, _GLIBCXX_DEBUG, the sanitizer. Must be at least C++20: the
 * language version. Reported but not compared: the release of the library. (A symbol that is too new is detected when
 * the plugin is loaded, and requiring equality would reject every plugin built with a newer compiler.) The compiler's
 * name is left out intentionally: plugins built with g++ and clang++ work in each other's core.
 */
#ifndef TRIAX_TOOLCHAIN_H
#define TRIAX_TOOLCHAIN_H

/* x as a literal, without expansion. */
#define TRIAX_STRING_2(x) #x
/* The expansion of x as a literal. */
#define TRIAX_STRING(x) TRIAX_STRING_2(x)

#if defined(__cplusplus)
#include <version>
#endif

/* A part of TRIAX_TOOLCHAIN: the C++ library with its ABI. */
#if defined(_LIBCPP_VERSION)
#define TRIAX_TOOLCHAIN_LIBRARY "libc++" TRIAX_STRING(_LIBCPP_ABI_VERSION)
#define TRIAX_TOOLCHAIN_RELEASE TRIAX_STRING(_LIBCPP_VERSION)
#elif defined(__GLIBCXX__)
#if defined(_GLIBCXX_DEBUG)
#define TRIAX_TOOLCHAIN_LIBRARY "libstdc++-cxx11abi" TRIAX_STRING(_GLIBCXX_USE_CXX11_ABI) "-debug"
#else
#define TRIAX_TOOLCHAIN_LIBRARY "libstdc++-cxx11abi" TRIAX_STRING(_GLIBCXX_USE_CXX11_ABI)
#endif
#define TRIAX_TOOLCHAIN_RELEASE TRIAX_STRING(_GLIBCXX_RELEASE)
#else
#define TRIAX_TOOLCHAIN_LIBRARY "c"
/* A part of TRIAX_TOOLCHAIN: the release of the library, or "0" in a C file. */
#define TRIAX_TOOLCHAIN_RELEASE "0"
#endif

/* clang reports a sanitizer as a feature, g++ as a macro. */
#if defined(__has_feature)
#define TRIAX_HAS_FEATURE(x) __has_feature(x)
#else
#define TRIAX_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || TRIAX_HAS_FEATURE(address_sanitizer)
#define TRIAX_TOOLCHAIN_SANITIZER "address"
#elif defined(__SANITIZE_THREAD__) || TRIAX_HAS_FEATURE(thread_sanitizer)
#define TRIAX_TOOLCHAIN_SANITIZER "thread"
#else
/* A part of TRIAX_TOOLCHAIN: the sanitizer. */
#define TRIAX_TOOLCHAIN_SANITIZER "none"
#endif

/* A part of TRIAX_TOOLCHAIN: the language version. */
#if !defined(__cplusplus)
#define TRIAX_TOOLCHAIN_LANGUAGE "c"
#elif __cplusplus > 202002L
#define TRIAX_TOOLCHAIN_LANGUAGE "c++23"
#elif __cplusplus >= 202002L
#define TRIAX_TOOLCHAIN_LANGUAGE "c++20"
#elif __cplusplus >= 201703L
#define TRIAX_TOOLCHAIN_LANGUAGE "c++17"
#else
#define TRIAX_TOOLCHAIN_LANGUAGE "c++14"
#endif

/* "libstdc++-cxx11abi1;sanitizer=none;c++20;release=12" */
#define TRIAX_TOOLCHAIN                                                                        \
  TRIAX_TOOLCHAIN_LIBRARY ";sanitizer=" TRIAX_TOOLCHAIN_SANITIZER ";" TRIAX_TOOLCHAIN_LANGUAGE \
                          ";release=" TRIAX_TOOLCHAIN_RELEASE

#endif
