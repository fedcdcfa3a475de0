// SPDX-License-Identifier: Apache-2.0
// comm-nccl: a communicator over NCCL, for ranks that are processes with one GPU each.
#include "backend.hpp"

namespace triax::comm_nccl {

namespace {

class LinkedBackend final : public NcclBackend {
 public:
  explicit LinkedBackend(const PluginContext& context) : NcclBackend(context, linked_api()) {}
};

} // namespace

} // namespace triax::comm_nccl

TRIAX_PLUGIN(triax::CommBackend, triax::comm_nccl::LinkedBackend, "comm-nccl", "0.1.0",
             "ranks that are processes with a GPU each, over NCCL", triax::comm_nccl::kOptions)
