// SPDX-License-Identifier: Apache-2.0
// The plugin's backend, over any table of NCCL calls. supports() refuses what the machine or the environment does not
// permit.
#pragma once

#include <memory>
#include <triax/plugin.hpp>

#include "api.hpp"
#include "nccl_settings.hpp"

namespace triax::comm_nccl {

class NcclBackend : public CommBackend {
 public:
  NcclBackend(const PluginContext& context, const NcclApi& api);

  CommTraits traits() const override;
  Refusals supports(const CommRequest& request) const override;
  void start(Device& device) override;
  std::unique_ptr<Communicator> join(const Group& group, Store& store, Deadline deadline) override;

 private:
  int version() const;
  void set_launch_order();
  void set(const Variable& variable);

  const NcclApi& api_;
  Log& log_;
  const int rank_;
  const Settings settings_;
  Device* device_ = nullptr;
};

/// The plugin's option table.
inline constexpr triax_option kOptions[] = {
    option_bool("edge_communicators", "false",
                "pipeline groups: a communicator for each edge to a neighbour, so that transfers of different edges do "
                "not wait for each other"),
    option_bool("several_ranks_per_gpu", "false",
                "allows ranks to share a GPU; only for tests: slow, and not supported by NCCL"),
    option_bool("register_buffers", "false", "registers the rank's memory with NCCL, which may save copies"),
};

} // namespace triax::comm_nccl
