// SPDX-License-Identifier: Apache-2.0
// Accesses of the host to device memory: the handler of SIGSEGV says which allocation, then the signal takes its
// course.
#include <signal.h>
#include <unistd.h>

#include <cstring>

#include "device.hpp"
#include "gpu_stand_in/runtime.hpp"
#include "pinned.hpp"

namespace triax::gpu_stand_in {

namespace {

struct sigaction previous;

void write_text(const char* text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, std::strlen(text));
}

// The process is about to end: what a handler may not do (allocate, lock) is done after the certain part of the
// message is written.
void explain(const void* address) {
  const bool of_device = owner_of(address) != nullptr;
  if (!of_device && pinned_memory().describe(address).empty()) return;
  write_text(of_device
                 ? "[gpu stand-in] SIGSEGV: the host accesses device memory\n"
                 : "[gpu stand-in] SIGSEGV: the host accesses pinned memory out of bounds or after cudaFreeHost\n");
  alarm(5); // if the interrupted thread holds a lock that the description needs
  report("the address is " + describe_memory(address) +
         (of_device ? "; copy it to the host with cudaMemcpyAsync" : ""));
  alarm(0);
}

void handle(int signal, siginfo_t* info, void*) {
  explain(info->si_addr);
  sigaction(signal, &previous, nullptr); // the access runs again, and meets the handler that was there before
}

} // namespace

void install_host_access_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction own = {};
    own.sa_sigaction = handle;
    own.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&own.sa_mask);
    sigaction(SIGSEGV, &own, &previous);
  });
}

} // namespace triax::gpu_stand_in
