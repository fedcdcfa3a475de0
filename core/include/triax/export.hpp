// Marks what libtriax_core.so exports. Everything else in the library is hidden.
#pragma once

#if defined(__GNUC__)
#define TRIAX_API __attribute__((visibility("default")))
#else
#error "triax builds with g++ or clang++"
#endif
