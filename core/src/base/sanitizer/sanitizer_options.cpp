// SPDX-License-Identifier: Apache-2.0
// Default options of sanitizers for all programs of this repository. ASAN_OPTIONS and the environment take precedence.
#include <cstdlib>

#ifdef __SANITIZE_THREAD__
extern "C" const char* __tsan_default_options() { // NOLINT(bugprone-reserved-identifier): the sanitizer's name
  return "external_symbolizer_path=" TRIAX_SYMBOLIZER;
}
#endif

#ifdef __SANITIZE_ADDRESS__
extern "C" const char* __asan_default_options() { // NOLINT(bugprone-reserved-identifier): the sanitizer's name
  // Without this option, the leak check sometimes crashes if a library that was loaded at run time has thread-local
  // memory: the check reads the bytes before that memory as a header of glibc 2.19. Reports name the five innermost
  // functions of each allocation: with ten, `triax fit` takes a sixth more processor time. Freed memory stays poisoned
  // until 32 MB more are freed: with the default of 256 MB, each process touches that much new memory.
  // A check for undefined behaviour traps (cmake/TriaxBuild.cmake); the report names its function and line.
  return "handle_sigill=1:intercept_tls_get_addr=0:malloc_context_size=5:quarantine_size_mb=32:"
         "external_symbolizer_path=" TRIAX_SYMBOLIZER;
}
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
namespace {
/// UCX hooks mmap(), madvise() and the like by patching their code, which the sanitizers replace by their own. In the
/// hook it takes a lock; glibc calls madvise() when a thread has ended, and ThreadSanitizer no longer knows the thread
/// then. This constructor runs before plugins are loaded and child processes are started.
[[gnu::constructor]] void leave_out_memory_hooks() {
  ::setenv("UCX_MEM_EVENTS", "n", 0);
}
} // namespace
#endif
