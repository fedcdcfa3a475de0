// SPDX-License-Identifier: Apache-2.0
// A plugin with a name, a kind and an option table, for tests of configuration. create() always fails. The build
// defines SAMPLE_NAME, SAMPLE_KIND and SAMPLE_OPTIONS.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "triax/communicator.hpp"
#include "triax/kernels.hpp"
#include "triax/model.hpp"
#include "triax/optimizer.hpp"
#include "triax/plugin.hpp"
#include "triax/scheduler.hpp"

namespace {

using namespace triax;

[[maybe_unused]] constexpr triax_option kAlpha[] = {
    option_int("timeout_s", "600", 1, 86400, "seconds before a stuck collective aborts the run"),
    option_string("wait", "spin", "spin|yield|event", "how a rank waits"),
    option_float("ratio", "0.5", 0, 1, "a number"),
    option_bool("fast", "false", "a flag"),
    option_path("trace", "", "a file"),
    option_list(option_string("links", "[]", nullptr, "names of links")),
};
[[maybe_unused]] constexpr triax_option kBeta[] = {
    option_int("window", "4", 1, 64, "transfers in flight"),
    option_int("timeout_s", "30", 1, 86400, "seconds before a stuck collective aborts the run"),
};
[[maybe_unused]] constexpr triax_option kModel[] = {
    option_int("layers", nullptr, 1, 1000, "blocks"),
    option_float("dropout", "0.0", 0, 0.99, "of the residual branches"),
};
[[maybe_unused]] constexpr triax_option kLr[] = {option_float("lr", "0.5", 0, 1, "a separate learning rate")};
[[maybe_unused]] constexpr std::nullptr_t kNone = nullptr;

constexpr std::uint32_t version_of(std::string_view kind) {
  if (kind == CommBackend::kKind) return CommBackend::kInterfaceVersion;
  if (kind == Scheduler::kKind) return Scheduler::kInterfaceVersion;
  if (kind == KernelSet::kKind) return KernelSet::kInterfaceVersion;
  if (kind == Model::kKind) return Model::kInterfaceVersion;
  return Optimizer::kInterfaceVersion;
}

void* refuse(const triax_create_args*, triax_error* error) {
  plugin_detail::report(error, "a sample plugin cannot be created");
  return nullptr;
}
void nothing(void*) {}

#ifdef SAMPLE_DIES
__attribute__((constructor)) void run_by_dlopen() {
  if (const char* log = std::getenv("SAMPLE_LOG")) std::fprintf(stderr, "failed to open '%s'\n", log);
  std::raise(SIGKILL);
}
#endif

} // namespace

extern "C" TRIAX_ENTRY const triax_plugin* triax_plugin_entry_v1(void) {
  static const triax_plugin descriptor = {TRIAX_ABI_MAGIC,
                                          sizeof(triax_plugin),
                                          TRIAX_ABI_MAJOR,
                                          TRIAX_ABI_MINOR,
                                          TRIAX_TOOLCHAIN,
                                          SAMPLE_KIND,
                                          version_of(SAMPLE_KIND),
                                          0,
                                          SAMPLE_NAME,
                                          "1.0",
                                          "a sample plugin",
                                          SAMPLE_OPTIONS,
                                          plugin_detail::count(SAMPLE_OPTIONS),
                                          sizeof(triax_option),
                                          &refuse,
                                          &nothing};
  return &descriptor;
}
