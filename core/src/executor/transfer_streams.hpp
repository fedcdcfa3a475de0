// SPDX-License-Identifier: Apache-2.0
// The transfer streams of a rank, and the events of posted transfers.
//
// Threads: the rank's main thread. Ownership: owns the streams and the events; borrows device and communicators.
// Blocking: only finish(). Errors: Error if a program has transfers and there is no pipeline group, or if it posts in
// sets.
//
// A stream is a queue, so transfers that may overtake each other need separate streams: one per edge and one
// for gradient reductions and gathers of weights. All backends with one call order (`serial`) share one stream.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "schedule/assumptions.hpp"
#include "schedule/program.hpp"
#include "triax/communicator.hpp"
#include "triax/model.hpp"

namespace triax::executor {

class TransferStreams {
 public:
  /// Creates the streams for these programs.
  TransferStreams(Device& device, const Groups& groups, std::span<const schedule::Program* const> programs,
                  const schedule::Assumptions& assumptions);

  /// Sends or receives `views` over the pipeline group, after the current work of `compute`. If boundaries are
  /// scattered, moves this tensor rank's part of each view.
  void send_or_receive(const schedule::ProgramAction& action, ActionId id, Views views, Stream& compute);
  /// Gathers `views` on `compute`; this rank's part of each is already in place.
  void gather(ActionId id, Views views, Stream& compute);
  /// The stream for gradient reductions and UNSHARD, which use the same groups. Work that is added to it starts after
  /// the current work of `compute`.
  Stream& begin_reduction(Stream& compute);
  void end_reduction(ActionId id) { events_[id] = reductions_->record(); }

  /// Later work on `compute` starts after the transfer posted for `id`.
  void make_wait(Stream& compute, ActionId id) { compute.wait(events_[id]); }
  bool pending(ActionId id) const { return !events_[id].fired(); }
  /// Blocks until all transfers have completed.
  void finish(Deadline deadline);

 private:
  using Edge = std::pair<int, bool>; // peer, and whether it is a send
  static Edge edge_of(const schedule::ProgramAction& action);
  Stream* make_stream(const std::string& name);
  TensorView part(const TensorView& view) const;

  Device& device_;
  Communicator* pipeline_;
  Communicator* scattered_over_ = nullptr; // the tensor group, if boundaries are scattered
  std::vector<std::unique_ptr<Stream>> streams_;
  std::map<Edge, Stream*> edges_;
  Stream* reductions_ = nullptr;
  std::vector<Event> events_; // by action
  std::vector<Transfer> set_; // transfers of one action
};

} // namespace triax::executor
