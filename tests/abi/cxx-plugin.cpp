// SPDX-License-Identifier: Apache-2.0
// A plugin with the descriptor of ABI 1.0 and a class built with today's interfaces.
#include <triax/toolchain.h>

#include <triax/scheduler.hpp>

#include "abi_1_0.h"

namespace {

class Idle final : public triax::Scheduler {
 public:
  triax::Refusals supports(const triax::PipelineShape&) const override {
    return triax::make_refusal(triax::ErrorCode::kUnsupported, {}, "ABI 1.0 works");
  }
  triax::Schedule rows(const triax::PipelineShape&) const override { return {}; }
};

void* create(const triax_create_args* args, triax_error*) {
  return args->rank == 3 ? static_cast<triax::Scheduler*>(new Idle) : nullptr;
}

void destroy(void* object) {
  delete static_cast<triax::Scheduler*>(object);
}

} // namespace

extern "C" const triax_plugin* triax_plugin_entry_v1(void) {
  static const triax_plugin entry = {TRIAX_ABI_MAGIC,
                                     sizeof(triax_plugin),
                                     TRIAX_ABI_MAJOR,
                                     TRIAX_ABI_MINOR,
                                     TRIAX_TOOLCHAIN,
                                     "scheduler",
                                     triax::kSchedulerInterface,
                                     0,
                                     "cxx-plugin",
                                     "1.0.0",
                                     "a plugin of ABI 1.0",
                                     nullptr,
                                     0,
                                     0,
                                     create,
                                     destroy};
  return &entry;
}
