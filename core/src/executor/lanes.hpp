// SPDX-License-Identifier: Apache-2.0
// The streams of a rank's transfers, and what has been posted on them.
//
// Threads: the rank's main thread. Ownership: owns the streams and the list of events; device and communicators are
// borrowed. Blocking: finish() alone. Errors: Error for a program with transfers and no pipeline group, and for one
// that posts in sets.
//
// A stream is a queue, so transfers that may overtake one another are on streams of their own: one for each directed
// edge and one for gradient reductions, but one for all whose backends keep a single order (`serial`).
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

class Lanes {
 public:
  /// For the transfers of these programs.
  Lanes(Device& device, const Groups& groups, std::span<const schedule::Program* const> programs,
        const schedule::Assumptions& assumptions);

  /// Sends or receives `views` over the pipeline group, after what `compute` has been given so far; where boundaries
  /// are scattered, this tensor rank's part of each.
  void send_or_receive(const schedule::ProgramAction& action, ActionId id, Views views, Stream& compute);
  /// Makes `views`, of which this tensor rank's parts are there, whole, on `compute`.
  void gather(ActionId id, Views views, Stream& compute);
  /// The stream for gradient reductions; what is put on it starts after what `compute` has been given so far.
  Stream& begin_reduction(Stream& compute);
  void end_reduction(ActionId id) { events_[id] = reductions_->record(); }

  /// Later items of `compute` start after the transfer posted for `id`.
  void make_wait(Stream& compute, ActionId id) { compute.wait(events_[id]); }
  bool pending(ActionId id) const { return !events_[id].fired(); }
  /// Blocks until everything has gone.
  void finish(Deadline deadline);

 private:
  using Edge = std::pair<int, bool>; // peer, and whether it is sent
  static Edge edge_of(const schedule::ProgramAction& action);
  Stream* make_stream(const std::string& name);
  TensorView part(const TensorView& view) const;

  Device& device_;
  Communicator* pipeline_;
  Communicator* scattered_over_ = nullptr; // the tensor group, where boundaries are scattered
  std::vector<std::unique_ptr<Stream>> streams_;
  std::map<Edge, Stream*> edges_;
  Stream* reductions_ = nullptr;
  std::vector<Event> events_; // by action
  std::vector<Transfer> set_; // what one action moves
};

} // namespace triax::executor
