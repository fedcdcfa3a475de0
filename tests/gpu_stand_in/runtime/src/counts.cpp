// SPDX-License-Identifier: Apache-2.0
// Counts of what kernels did, printed when the process ends, by exit() or by _Exit().
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "gpu_stand_in/runtime.hpp"
#include "launch.hpp"
#include "settings.hpp"

namespace triax::gpu_stand_in {

namespace {

// Calls of one name, such as products of one shape.
struct LibraryWork {
  std::uint64_t launches = 0, flops = 0, bytes = 0;
};

struct Totals {
  std::timed_mutex mutex;
  std::atomic<pid_t> process = 0; // that counts; a child after fork() does not
  bool are_printed = false;
  std::map<LaunchedKernel, Profile> of_kernel;
  std::map<std::string, LibraryWork> of_library;
};
Totals& totals() {
  static Totals& all = *new Totals;
  return all;
}

void print_totals() {
  Profile all;
  for (const auto& [kernel, counts] : totals().of_kernel) all += counts;
  report(std::to_string(all.launches) + " launches, " + std::to_string(all.blocks) + " blocks, " +
         std::to_string(all.instructions) + " warp instructions, " + std::to_string(all.mma) + " mma instructions");
}

// Appends, so that all processes of a run can write to one file.
void append_profile() {
  std::FILE* file = std::fopen(settings().profile_file.c_str(), "a");
  if (!file) return report("TRIAX_GPU_PROFILE: cannot write " + settings().profile_file);
  for (const auto& [kernel, c] : totals().of_kernel) {
    const std::pair<const char*, std::uint64_t> values[] = {{"launches", c.launches},
                                                            {"blocks", c.blocks},
                                                            {"instructions", c.instructions},
                                                            {"lanes", c.lanes},
                                                            {"mma", c.mma},
                                                            {"shuffles", c.shuffles},
                                                            {"barriers", c.barriers},
                                                            {"requests", c.requests},
                                                            {"sectors", c.sectors},
                                                            {"ideal_sectors", c.ideal_sectors},
                                                            {"memory_sectors", c.memory_sectors},
                                                            {"accesses", c.accesses},
                                                            {"wavefronts", c.wavefronts},
                                                            {"ideal_wavefronts", c.ideal_wavefronts},
                                                            {"divergent", c.divergent},
                                                            {"threads", kernel.threads},
                                                            {"registers", kernel.registers},
                                                            {"shared_bytes", kernel.shared_bytes}};
    std::string line = "{\"kernel\": \"" + kernel.name + "\"";
    for (const auto& [key, value] : values) line += ", \"" + std::string(key) + "\": " + std::to_string(value);
    line += ", \"kinds\": {";
    for (std::size_t n = 0; n < kInstructionKinds; ++n) {
      line += (n == 0 ? "\"" : ", \"") + std::string(name_of(InstructionKind{static_cast<std::uint8_t>(n)})) +
              "\": " + std::to_string(c.kinds[n]);
    }
    line += "}}\n";
    std::fwrite(line.data(), 1, line.size(), file);
  }
  for (const auto& [name, work] : totals().of_library) {
    const std::string line = "{\"call\": \"" + name + "\", \"launches\": " + std::to_string(work.launches) +
                             ", \"flops\": " + std::to_string(work.flops) +
                             ", \"bytes\": " + std::to_string(work.bytes) + "}\n";
    std::fwrite(line.data(), 1, line.size(), file);
  }
  std::fclose(file);
}

void print_at_exit() {
  Totals& all = totals();
  if (all.process != getpid()) return;
  // A signal handler that ends the process may have interrupted add_counts().
  const std::unique_lock lock(all.mutex, std::chrono::seconds(1));
  if (!lock || std::exchange(all.are_printed, true)) return;
  if (settings().counts) print_totals();
  if (!settings().profile_file.empty()) append_profile();
}

} // namespace

void add_counts(const LaunchedKernel& kernel, const Profile& counts) {
  if (!settings().counts && settings().profile_file.empty()) return;
  Totals& all = totals();
  std::lock_guard lock(all.mutex);
  if (all.process.exchange(getpid()) == 0) std::atexit(print_at_exit);
  all.of_kernel[kernel] += counts;
}

void count_library_call(const std::string& name, std::uint64_t flops, std::uint64_t bytes) {
  if (settings().profile_file.empty()) return;
  Totals& all = totals();
  std::lock_guard lock(all.mutex);
  if (all.process.exchange(getpid()) == 0) std::atexit(print_at_exit);
  LibraryWork& work = all.of_library[name];
  ++work.launches, work.flops += flops, work.bytes += bytes;
}

} // namespace triax::gpu_stand_in

// Takes the place of the C library's, which runs no exit handlers: triax ends with it.
extern "C" [[noreturn]] void _Exit(int status) noexcept {
  triax::gpu_stand_in::print_at_exit();
  for (;;) syscall(SYS_exit_group, status);
}
