// SPDX-License-Identifier: Apache-2.0
// A member of a group: passes each call to the wrapped communicator, and injects the faults of its plan.
//
// Threads: the rank's main thread; abort() from any thread. Ownership: owns the wrapped communicator, and shares the
// pool of its tasks with the streams that have not finished them. Blocking: as the wrapped communicator, and as long as
// a fault says.
#pragma once

#include <memory>
#include <vector>

#include "bit_flip.hpp"
#include "fault.hpp"
#include "hold.hpp"
#include "triax/communicator.hpp"
#include "triax/log.hpp"

namespace triax::comm_faulty {

class FaultyCommunicator final : public Communicator {
 public:
  /// `traits`: of the wrapped backend.
  FaultyCommunicator(std::unique_ptr<Communicator> inner, const CommTraits& traits, const FaultOptions& options,
                     Device& device, Log& log);
  ~FaultyCommunicator() override;

  void barrier(Deadline deadline) override { inner_->barrier(deadline); }
  void abort(std::string_view why) noexcept override;
  void progress() noexcept override;
  void* extension(std::string_view id) noexcept override { return inner_->extension(id); }

 protected:
  Work do_collective(const Collective& collective, const TensorView& in, const TensorView& out, Stream& stream,
                     ActionId action) override;
  Work do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) override;

 private:
  /// Large from the start, so that differences in timing cause no allocation during a step.
  struct Pool {
    Holding holding;
    std::vector<std::unique_ptr<Hold>> holds;
    std::vector<std::unique_ptr<BitFlip>> flips;
  };
  /// A post of the wrapped communicator that was counted, or refused because the group has failed.
  struct Posted {
    Work work;
    bool is_refused = false;
  };

  void inject_in_post(const Injection& injection, const char* call);
  /// Null if the fault holds no calls.
  Hold* hold_back(const Injection& injection, Stream& stream);
  Hold& idle_hold();
  BitFlip& idle_flip();
  void report(const Injection& injection, const char* call);
  std::span<const Transfer> reordered(std::span<const Transfer> transfers, std::uint32_t order);
  template <class Post>
  Work inject(const Injection& injection, const char* call, const TensorView& received, Stream& stream, ActionId action,
              Post post);
  template <class Post>
  Posted post_inner(Post post);

  const std::unique_ptr<Communicator> inner_;
  const FaultOptions& options_;
  const bool may_overtake_;
  Device& device_;
  Log& log_;
  InjectionPlan plan_;
  std::shared_ptr<Pool> pool_;
  std::vector<Transfer> transfers_; // in another order
};

} // namespace triax::comm_faulty
