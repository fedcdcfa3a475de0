// SPDX-License-Identifier: Apache-2.0
// A communicator that forwards every call to another, and reports it to a StepTrace.
//
// Threads, blocking, errors: those of the other communicator. Ownership: borrows communicator and trace. Arguments are
// checked twice.
#pragma once

#include "train/step_trace.hpp"
#include "triax/communicator.hpp"

namespace triax::train {

class TracedCommunicator final : public Communicator {
 public:
  TracedCommunicator(Communicator& inner, StepTrace& trace)
      : Communicator(inner.group()), inner_(inner), trace_(trace) {}

  void barrier(Deadline deadline) override { inner_.barrier(deadline); }
  void abort(std::string_view why) noexcept override { inner_.abort(why); }
  void* extension(std::string_view id) noexcept override { return inner_.extension(id); }
  void progress() noexcept override {} // the other communicator is registered as a progress source

 protected:
  Work do_collective(const Collective& collective, const TensorView& in, const TensorView& out, Stream& stream,
                     ActionId action) override;
  Work do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) override;

 private:
  CallShape shape_of(const Collective& collective, const TensorView& out) const;
  CallShape shape_of(std::span<const Transfer> transfers) const;
  template <class Shape, class Post>
  Work traced(Shape shape, Stream& stream, Post post);

  Communicator& inner_;
  StepTrace& trace_;
};

} // namespace triax::train
