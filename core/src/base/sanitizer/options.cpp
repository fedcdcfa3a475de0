// Options of AddressSanitizer that every program of this tree needs; ASAN_OPTIONS still adds to them.

extern "C" const char* __asan_default_options() { // NOLINT(bugprone-reserved-identifier): its name is given
  // Else its search for leaks now and then ends with a signal where a library loaded at run time has thread-local
  // memory: it takes what lies before that memory for a header of glibc 2.19.
  return "intercept_tls_get_addr=0";
}
