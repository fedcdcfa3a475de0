// SPDX-License-Identifier: Apache-2.0
#include "members.hpp"

#include <gmock/gmock.h>

#include <memory>

#include "backend.hpp"
#include "support/fake_cuda_device.hpp"

namespace triax::test {

triax::test::Communication communication(const Given& given) {
  reset(given.rules);
  triax::test::Communication out;
  out.plugin = "comm-nccl";
  out.options.set("edge_communicators", given.edge_communicators);
  out.options.set("several_ranks_per_gpu", given.several_ranks_per_gpu);
  out.options.set("register_buffers", given.register_buffers);
  out.device = [process = given.process](int rank) {
    enter(process(rank));
    return make_fake_cuda_device(static_cast<std::uint64_t>(rank) + 1);
  };
  out.backend = [](const PluginContext& context) {
    return std::make_unique<triax::comm_nccl::NcclBackend>(context, fake_nccl());
  };
  out.after = [may_be_wrong = given.may_be_wrong] {
    if (!may_be_wrong) {
      EXPECT_THAT(violations(), ::testing::IsEmpty());
    }
    EXPECT_EQ(counts().alive, 0) << "communicators that nobody ended";
  };
  return out;
}

} // namespace triax::test

namespace triax::test {

Communication under_test() {
  return test::communication();
}

} // namespace triax::test
