// SPDX-License-Identifier: Apache-2.0
// Marks the symbols that libtriax_core.so exports; all others are hidden. Also checks the language version: every C++
// header of Triax includes this file, so a wrong -std is the first error that a plugin author sees.
#pragma once

#if __cplusplus < 202002L
#error "Triax headers require C++20: build the plugin with triax_add_plugin(), or compile it with -std=c++20"
#endif

#if defined(__GNUC__)
/// Exports a class or function from libtriax_core.so.
#define TRIAX_API __attribute__((visibility("default")))
#else
#error "triax builds with g++ or clang++"
#endif
