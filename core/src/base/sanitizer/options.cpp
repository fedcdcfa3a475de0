// What every program of this tree needs under a sanitizer; ASAN_OPTIONS and the environment still have the last word.
#include <cstdlib>

#ifdef __SANITIZE_ADDRESS__
extern "C" const char* __asan_default_options() { // NOLINT(bugprone-reserved-identifier): its name is given
  // Else its search for leaks now and then ends with a signal where a library loaded at run time has thread-local
  // memory: it takes what lies before that memory for a header of glibc 2.19.
  return "intercept_tls_get_addr=0";
}
#endif

#ifdef __SANITIZE_THREAD__
namespace {
/// UCX hooks madvise(), which glibc calls when a thread has ended, and takes a lock in it; by then ThreadSanitizer has
/// forgotten the thread. Plugins are loaded, and children started, after this.
[[gnu::constructor]] void leave_out_memory_hooks() {
  ::setenv("UCX_MEM_EVENTS", "n", 0);
}
} // namespace
#endif
