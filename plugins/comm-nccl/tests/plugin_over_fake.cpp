// SPDX-License-Identifier: Apache-2.0
// comm-nccl-fake: comm-nccl over the fake NCCL, as a plugin, for training runs whose ranks are threads with fake CUDA
// devices. Each rank has its own fake process and GPU. A violation ends the process, because a training run does not
// check for violations.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "backend.hpp"
#include "fake_nccl.hpp"

namespace triax::comm_nccl {

namespace {

const PluginContext& entered(const PluginContext& context) {
  test::enter({.rank = context.rank, .gpu = text("GPU {}", context.rank)});
  return context;
}

class FakeBackend final : public NcclBackend {
 public:
  explicit FakeBackend(const PluginContext& context) : NcclBackend(entered(context), test::fake_nccl()) {}
  FakeBackend(const FakeBackend&) = delete;
  FakeBackend& operator=(const FakeBackend&) = delete;
  ~FakeBackend() override {
    const std::vector<std::string> wrong = test::violations();
    if (wrong.empty()) return;
    for (const std::string& one : wrong) std::fprintf(stderr, "comm-nccl-fake: %s\n", one.c_str());
    std::abort();
  }
};

} // namespace

} // namespace triax::comm_nccl

TRIAX_PLUGIN(triax::CommBackend, triax::comm_nccl::FakeBackend, "comm-nccl-fake", "0.1.0",
             "ranks that are threads with fake CUDA devices, over a fake NCCL", triax::comm_nccl::kOptions)
