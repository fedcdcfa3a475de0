// SPDX-License-Identifier: Apache-2.0
#include "members.hpp"

#include <gmock/gmock.h>

#include <memory>

#include "backend.hpp"
#include "support/fake_cuda_device.hpp"

namespace triax::test {

Communication communication(const FakeNcclOptions& options) {
  reset(options.rules);
  Communication out;
  out.plugin = "comm-nccl";
  out.options.set("edge_communicators", options.edge_communicators);
  out.options.set("several_ranks_per_gpu", options.several_ranks_per_gpu);
  out.options.set("register_buffers", options.register_buffers);
  out.device = [process = options.process](int rank) {
    enter(process(rank));
    return make_fake_cuda_device(static_cast<std::uint64_t>(rank) + 1);
  };
  out.backend = [](const PluginContext& context) {
    return std::make_unique<triax::comm_nccl::NcclBackend>(context, fake_nccl());
  };
  out.after = [expects_violations = options.expects_violations] {
    if (!expects_violations) {
      EXPECT_THAT(violations(), ::testing::IsEmpty());
    }
    EXPECT_EQ(counts().alive, 0) << "NCCL communicators not destroyed";
  };
  return out;
}

Communication under_test() {
  return communication();
}

} // namespace triax::test
