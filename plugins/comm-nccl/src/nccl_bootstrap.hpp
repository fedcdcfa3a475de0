// SPDX-License-Identifier: Apache-2.0
// How the members of a group join: they publish and compare what must be equal (triax/rendezvous.hpp). The first member
// distributes NCCL's unique id, and all create the communicator together, and then those of the edges. Pipeline
// neighbours then exchange a byte, so that no connection is made during a step.
//
// Threads: the rank's main thread. Blocking: until the deadline; runs the progress loop, and checks the rank's abort
// flag. Errors: Error that names the missing ranks; ranks that join later get an error that the others have left.
//
// Each group has a communicator with its own id, and not an ncclCommSplit of a world communicator: all ranks of the
// parent must call a split, but a group may be joined by its members only. All ranks join groups in the order of the
// layout's axes, so two ranks cannot wait for each other in different groups. Edge communicators are splits, because
// all members of their group take part.
#pragma once

#include <memory>
#include <string>
#include <triax/rendezvous.hpp>
#include <vector>

#include "edges.hpp"
#include "handle.hpp"
#include "nccl_settings.hpp"

namespace triax::comm_nccl {

/// The result of joining: the communicators.
struct GroupHandles {
  struct EdgeHandle {
    Edge edge;
    std::unique_ptr<Handle> handle;
  };
  std::string key; // prefix of the store's keys for this join
  std::unique_ptr<Handle> group;
  std::vector<EdgeHandle> edges; // the edges of this member

  /// Starts all aborts, and waits until all have completed.
  void abandon() noexcept;
};

class Bootstrap {
 public:
  Bootstrap(const NcclApi& api, const Settings& settings, Device& device, const Group& group, Store& store,
            Deadline deadline);
  GroupHandles join();

 private:
  void publish();
  void agree(const std::vector<Rendezvous::Entry>& peers) const;
  void agree_on_gpus(const std::vector<Rendezvous::Entry>& peers) const;
  ncclUniqueId unique_id();
  void make_group(GroupHandles& handles);
  void make_edges(GroupHandles& handles);
  void warm_up(GroupHandles& handles);
  void warm_up_neighbours(Handle& group, std::byte* data, Stream& stream);
  void warm_up_edge(const GroupHandles::EdgeHandle& one, std::byte* data, Stream& stream);
  /// Called repeatedly while NCCL is busy: checks the deadline, the abort flag, and whether the others have left.
  void poll(const char* what);
  std::string rank_text(int member) const { return rendezvous_.rank_text(member); }

  const NcclApi& api_;
  const Settings& settings_;
  Device& device_;
  const Group& group_;
  Rendezvous rendezvous_;
};

} // namespace triax::comm_nccl
